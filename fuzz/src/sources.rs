//! Treats any bytes as an input that is not a Windows trace: it becomes an archive, which is then read.

use std::fs;
use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, ContainerLimits, Table, Trace};
use handlescope_sources::{ImportLimits, TextContent, extract, import, recognize};

const MAIN: &[u8] = br#"{"SessionStart":"2024-05-10T12:46:34+02:00","Processes":[{"ProcessID":4},{"ProcessID":8}]}"#;
const STACKS: &[u8] = br#"{"StackList":["","a.exe!F\r\nb.dll+0x12\r\n"]}"#;
const HANDLE: &[u8] = br#"{"ObjectReferences":[{"HandleCreateEvents":[{"StackIdx":1}]}]}"#;

/// Converts an ETWAnalyzer extract made from these bytes; returns whether that succeeded.
///
/// Input that starts like an archive is taken as one. Everything else is the handle part of an extract, or, after a
/// line `main`, `modules` or `stacks`, that part; the other parts are sound.
pub fn import_extract(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).expect("a file");
    };
    let input = if bytes.starts_with(b"7z\xBC\xAF\x27\x1C") {
        write("a.json7z", bytes);
        "a.json7z"
    } else {
        let parts = [
            ("main\n", "a"),
            ("modules\n", "a_Derived_Modules"),
            ("stacks\n", "a_Derived_HandleStacks"),
        ];
        let part = parts
            .iter()
            .find_map(|(line, part)| Some((*part, bytes.strip_prefix(line.as_bytes())?)));
        let (part, content) = part.unwrap_or(("a_Derived_Handle", bytes));
        write("a.json", MAIN);
        write("a_Derived_HandleStacks.json", STACKS);
        write("a_Derived_Handle.json", HANDLE);
        write(&format!("{part}.json"), content);
        "a.json"
    };
    let limits = ImportLimits {
        container: ContainerLimits {
            decoder_bytes: 64 << 20,
            ..ContainerLimits::for_members_of(16 << 20)
        },
        string_bytes: 1 << 20,
        ..ImportLimits::default()
    };
    let output = folder.path().join("out.json7z");
    let converted =
        import(&folder.path().join(input), &output, limits, &NoObserver, &Cancel::default());
    assert_eq!(converted.is_ok(), output.exists());
    converted.is_ok()
}

/// Extracts bytes as a minidump; returns whether that made an archive.
pub fn read_dump(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (path, output) = (folder.path().join("a.dmp"), folder.path().join("a.json7z"));
    // Other kinds of files have their own targets.
    let bytes = [b"MDMP", bytes.get(4..).unwrap_or_default()].concat();
    fs::write(&path, bytes).expect("the dump can be written");
    let (options, cancel) = (ExtractOptions::default(), Cancel::default());
    if extract(&path, &output, options, &NoObserver, &cancel).is_err() {
        return false;
    }
    read_all(&output);
    true
}

/// Extracts bytes as debugger text or a handle list; returns whether it is one.
///
/// # Panics
/// If something that looks like one cannot be extracted, or the archive cannot be read.
pub fn read_text(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (path, output) = (folder.path().join("a.log"), folder.path().join("a.json7z"));
    fs::write(&path, bytes).expect("the text can be written");
    let cancel = Cancel::default();
    // Other kinds of files have their own targets.
    let content = recognize(&path, &cancel).expect("any text can be read");
    if !matches!(content, TextContent::Debugger | TextContent::List) {
        return false;
    }
    extract(&path, &output, ExtractOptions::default(), &NoObserver, &cancel)
        .expect("a text with an entry or a handle becomes an archive");
    read_all(&output);
    true
}

fn read_all(archive: &Path) {
    let trace = Trace::open(archive).expect("what was written can be opened");
    for table in Table::ALL {
        trace.frame(table).expect("what was written can be read");
    }
}
