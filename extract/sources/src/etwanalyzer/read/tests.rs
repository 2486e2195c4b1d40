//! Whatever the bytes, an import ends with a trace or an error.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_extract::NoObserver;
use handlescope_model::{Cancel, ContainerLimits, Table, Trace};
use sevenz_rust::{
    ArchiveEntry, ArchiveReader, ArchiveWriter, EncoderConfiguration, EncoderMethod, Password,
};

use super::super::write::{SaveOptions, save};
use super::*;

const MAIN: &str = r#"{"SourceETLFileName":"C:\\a.etl","SessionStart":"2024-05-10T12:46:34+02:00",
    "Processes":[{"ProcessID":4,"ProcessName":"System"},{"ProcessID":8,"ParentPid":4,"IsNew":true,
    "StartTime":"2024-05-10T12:46:35+02:00"}]}"#;

const MODULES: &str = r#"{"Modules":[{"ModuleAndPid":"0 1 2 -2 -2 -2 -2 #0 #1","PdbIdx":0}],
    "UnresolvedPdbs":[{"Pdb":"0f8fad5b-d9cb-469f-a165-70867728950e 1 a.pdb"}],
    "SharedStrings":{"Strings":["C:","a.exe","1.0"]}}"#;

const STACKS: &str = r#"{"StackList":["","a.exe!F\r\nb.dll+0x12\r\n<UnknownMethod>\r\n"]}"#;

const HANDLE: &str = r#"{"ObjectTypeMap":{"16":"Event"},"ObjectReferences":[
    {"ObjectPtr":-67604145713824,"Name":"\\X","ObjectType":16,
     "CreateEvent":{"RefCountChange":1,"TimeNs":1,"StackIdx":1,"ProcessIdx":1},
     "HandleCreateEvents":[{"HandleValue":4,"TimeNs":2,"StackIdx":1,"ProcessIdx":1,"ThreadId":7}],
     "HandleDuplicateEvents":[{"HandleValue":4,"SourceHandleValue":4,"SourceProcessIdx":0,
        "TimeNs":3,"StackIdx":0,"ProcessIdx":0}],
     "HandleCloseEvents":[{"HandleValue":4,"TimeNs":4,"StackIdx":1,"ProcessIdx":1}],
     "RefChanges":[{"RefCountChange":-1,"TimeNs":3}],"Existing":[{"Handle":4,"Process":1}]},
    {"ObjectPtr":8192,"ObjectType":1000,"FileMapEvents":[{"ViewBase":4096,"ViewSize":8,
     "TimeNs":5,"ProcessIdx":1}],"FileUnmapEvents":[{"ViewBase":4096,"TimeNs":6,"ProcessIdx":1}]}]}"#;

fn members() -> Vec<(String, Vec<u8>)> {
    [
        ("a_Derived_Modules", MODULES),
        ("a_Derived_Handle", HANDLE),
        ("a_Derived_HandleStacks", STACKS),
        ("a", MAIN),
    ]
    .map(|(name, text)| (format!("{name}.json"), text.as_bytes().to_vec()))
    .into()
}

fn pack(path: &Path, members: &[(String, Vec<u8>)]) {
    let mut archive = ArchiveWriter::create(path).unwrap();
    archive.set_content_methods(vec![EncoderConfiguration::new(EncoderMethod::COPY)]);
    for (name, content) in members {
        let entry = ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(content.as_slice())).unwrap();
    }
    archive.finish().unwrap();
}

/// Imports into the folder of the input.
fn imported(input: &Path) -> Result<PathBuf, ImportError> {
    let output = input.with_file_name("out.json7z");
    import(input, &output, ImportLimits::default(), &NoObserver, &Cancel::default()).map(|_| output)
}

#[test]
fn all_tables_exist_and_their_references_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    pack(&input, &members());
    let trace = Trace::open(&imported(&input).unwrap()).unwrap();
    let heights = [
        Table::Objects,
        Table::Events,
        Table::Frames,
        Table::Symbols,
        Table::Stacks,
        Table::Modules,
        Table::ModuleLoads,
        Table::Processes,
    ]
    .map(|table| trace.height(table).unwrap());
    assert_eq!(heights, [2, 7, 3, 1, 1, 2, 2, 2]);
    // In time order: created, handle created, duplicated, referenced, closed.
    let kinds = trace.column(Table::Events, "kind").unwrap();
    let kinds: Vec<u32> = kinds.u32().unwrap().into_no_null_iter().collect();
    assert_eq!(kinds, [3, 0, 1, 6, 2, 7, 8]);
    let closing = trace.column(Table::Events, "closing_event").unwrap();
    let closing: Vec<Option<u32>> = closing.u32().unwrap().iter().collect();
    assert_eq!(closing, [None, Some(4), None, None, None, Some(6), None]);
}

#[test]
fn records_may_not_take_more_memory_than_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.json7z"), folder.path().join("out.json7z"));
    let mut members = members();
    let processes = format!(r#"{{"Processes":[{{}}{}]}}"#, ",{}".repeat(10_000));
    members[3].1 = processes.into_bytes();
    pack(&input, &members);
    let import = |record_bytes| {
        let usual = ImportLimits::default();
        let limits = ImportLimits { record_bytes, record_bytes_per_byte: 0, ..usual };
        import(&input, &output, limits, &NoObserver, &Cancel::default()).map(drop)
    };
    import(100 << 20).unwrap();
    let error = import(1 << 20).unwrap_err();
    assert!(matches!(error, ImportError::TooMuch { .. }) && error.is_about_size(), "{error}");
}

#[test]
fn damage_anywhere_in_a_member_is_read_or_refused() {
    damage(&members(), 12);
}

#[test]
fn a_damaged_extract_of_this_program_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    pack(&input, &members());
    let trace = Trace::open(&imported(&input).unwrap()).unwrap();
    let written = folder.path().join("written.json7z");
    let options = SaveOptions { names: None, etwanalyzer: true };
    save(&trace, &written, options, &NoObserver, &Cancel::default()).unwrap();
    let mut archive = ArchiveReader::open(&written, Password::empty()).unwrap();
    let mut written = Vec::new();
    for name in members().into_iter().map(|(name, _)| name) {
        let content = archive.read_file(&name.replacen('a', "written", 1)).unwrap();
        written.push((name, content));
    }
    damage(&written, 56);
}

/// Imports members with a damaged byte in every `step` bytes.
fn damage(members: &[(String, Vec<u8>)], step: usize) {
    let folder = tempfile::tempdir().unwrap();
    let write = |members: &[(String, Vec<u8>)]| {
        for (name, content) in members {
            fs::write(folder.path().join(name), content).unwrap();
        }
    };
    write(members);
    let input = folder.path().join("a.json");
    imported(&input).unwrap();
    for (name, good) in members {
        for at in 0..good.len() {
            // Some positions get characters with a meaning in JSON.
            const BYTES: &[u8] = b"\"{[0-,\\]}x";
            if at % step == 0 {
                let mut bad = good.clone();
                bad[at] = BYTES[at / step % BYTES.len()];
                write(&[(name.clone(), bad)]);
                if let Ok(imported) = imported(&input) {
                    let trace = Trace::open(&imported).unwrap();
                    let _ = Table::ALL.map(|table| trace.frame(table).unwrap());
                }
            }
            if at % (step * 8 - 1) == 0 {
                write(&[(name.clone(), good[..at].to_vec())]);
                assert!(imported(&input).is_err(), "{name} cut at {at}");
            }
        }
        write(&[(name.clone(), good.clone())]);
    }
}

#[test]
fn damage_anywhere_in_an_archive_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    pack(&input, &members());
    let good = fs::read(&input).unwrap();
    for at in (0..good.len()).step_by(9) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        fs::write(&input, &bad).unwrap();
        let _ = imported(&input);
        if at % 6 == 0 {
            fs::write(&input, &good[..at]).unwrap();
            assert!(imported(&input).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn a_long_table_of_contents_is_refused_before_it_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    let mut seed = 1u64;
    let mut name = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{seed:x}{:x}", seed.rotate_left(32).wrapping_mul(seed | 1))
    };
    let many: Vec<_> = (0..40_000).map(|_| (name(), Vec::new())).collect();
    pack(&input, &many);
    let error = imported(&input).unwrap_err().to_string();
    assert!(
        error.contains("table of contents has") && error.contains("more than 2097152"),
        "{error}"
    );
}

#[test]
fn limits_are_those_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    pack(&input, &members());
    let output = folder.path().join("out.json7z");
    let import =
        |limits| import(&input, &output, limits, &NoObserver, &Cancel::default()).map(|_| ());
    let usual = ImportLimits::default();
    let within = |container| import(ImportLimits { container, ..usual });
    let error = within(usual.container.trusted_with(300)).unwrap_err().to_string();
    assert!(error.contains("Handle.json has ") && error.contains("the limit of 300"), "{error}");
    assert!(within(ContainerLimits { total_bytes: 500, ..usual.container }).is_err());
    assert!(import(ImportLimits { depth: 3, ..usual }).is_err());
    assert!(import(ImportLimits { string_bytes: 8, ..usual }).is_err());
    import(usual).unwrap();
}

#[test]
fn a_cancelled_import_leaves_no_archive() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.json7z");
    pack(&input, &members());
    let output = folder.path().join("out.json7z");
    let result = import(&input, &output, ImportLimits::default(), &NoObserver, &Cancel::after(0));
    assert!(matches!(result, Err(ImportError::Cancelled(_))));
    assert!(!output.exists());
}
