//! `handlescope redact`: the copy reads like the trace, and contains none of its texts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use handlescope_extract::{ExtractOptions, NoObserver, StackChoice};
use handlescope_model::tables::{Allocators, EventCount, EventCounts, ObjectTypes, TraceInfos};
use handlescope_model::{Cancel, Table, TableRows, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::{ProgramRun, handlescope, sample_trace};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::payload::{MethodEvent, MethodRecord};
use handlescope_tests::scenario::TraceBuilder;
use handlescope_tests::thorough::one_of;
use handlescope_tests::{corrupt, needs_data};
use polars::prelude::Column;

/// Columns with text from the machine; all others have to stay as they are.
const TEXTS: [(Table, &[&str]); 7] = [
    (Table::Trace, &["computer"]),
    (Table::Processes, &["name", "image_path", "command_line", "sid"]),
    (Table::Zombies, &["name", "command_line", "sid"]),
    (
        Table::Modules,
        &[
            "name",
            "path",
            "pdb_name",
            "file_version",
            "original_name",
            "product_name",
            "description",
            "company",
        ],
    ),
    (Table::Volumes, &["nt_prefix", "dos_prefix"]),
    (Table::Names, &["name"]),
    (Table::Methods, &["module", "type_name", "name", "signature"]),
];

/// Tables that have fewer rows without event descriptions.
const OF_RESOURCES: [Table; 5] =
    [Table::Allocators, Table::Acquisitions, Table::ResourceMisses, Table::Stacks, Table::Frames];

/// Columns about the file itself.
const FILE: [&str; 7] = [
    "source_path",
    "source_name",
    "source_size",
    "source_modified_filetime",
    "source_modified_ns",
    "source_content",
    "first_offset",
];

/// The redacted copy of a trace, in its own folder.
struct RedactedCopy {
    copy: PathBuf,
    before: Trace,
    after: Trace,
    _home: tempfile::TempDir,
}

fn run(home: &Path, arguments: &[&str]) -> ProgramRun {
    handlescope(home).args(arguments).output().unwrap().into()
}

fn extracted(etl: &Path, output: &Path) -> Trace {
    let options = ExtractOptions { stacks: StackChoice::All, ..ExtractOptions::default() };
    extract(etl, output, options, &NoObserver, &Cancel::default()).unwrap();
    Trace::open(output).unwrap()
}

impl RedactedCopy {
    fn new(etl: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let copy = path("a.redacted.etl");
        fs::copy(etl, path("a.etl")).unwrap();
        let run = run(home.path(), &["redact", "a.etl"]).ok();
        assert!(run.stdout.starts_with("a.redacted.etl: "), "{}{}", run.stdout, run.stderr);
        let before = extracted(etl, &path("before.json7z"));
        let after = extracted(&copy, &path("after.json7z"));
        Self { copy, before, after, _home: home }
    }

    /// Whether the trace has resources known only from event descriptions. The copy drops these descriptions, so the
    /// resources and their stacks are gone, too.
    fn loses_resources(&self) -> bool {
        let providers = Allocators::read(&self.before).unwrap().provider;
        providers.iter().any(Option::is_some)
    }

    /// Asserts that every number in every table, and every text that is not a name, is unchanged.
    fn has_the_structure(&self) -> &Self {
        let loses_resources = self.loses_resources();
        for table in Table::ALL {
            if loses_resources && OF_RESOURCES.contains(&table) {
                let height = |table| self.after.height(table).unwrap();
                let left = match table {
                    Table::Stacks | Table::Frames => 0,
                    Table::Acquisitions => {
                        height(table) - self.after.event_table().unwrap().allocations
                    }
                    table => height(table),
                };
                assert_eq!(left, 0, "{}", table.name());
                continue;
            }
            if table == Table::EventCounts {
                // TraceLogging events no longer have names to tell them apart.
                assert_eq!(counts(&self.before), counts(&self.after));
                let providers = EventCounts::read(&self.after).unwrap().provider;
                assert!(providers.iter().flatten().all(|name| name == "Windows Kernel"));
                continue;
            }
            let [before, after] = [&self.before, &self.after].map(|t| t.frame(table).unwrap());
            assert_eq!(before.height(), after.height(), "{}", table.name());
            for (before, after) in before.columns().iter().zip(after.columns()) {
                let name = before.name().as_str();
                let is_text = TEXTS.iter().any(|(t, texts)| *t == table && texts.contains(&name));
                // Volumes are sorted by name.
                if is_text && table != Table::Volumes {
                    check_names(before, after);
                } else if loses_resources && ["frames_in_modules", "stacks_total"].contains(&name) {
                    // These counts include the dropped stacks.
                } else if !is_text && !FILE.contains(&name) {
                    let [left, right] = [before, after].map(Column::as_materialized_series);
                    assert!(left.equals_missing(right), "{}.{name}", table.name());
                }
            }
        }
        self
    }

    /// Asserts that no name from the trace is left in the bytes of the copy, in either encoding.
    fn has_no_texts(&self) {
        let mut texts = BTreeSet::new();
        for (table, columns) in TEXTS {
            for column in columns {
                let column = self.before.column(table, column).unwrap();
                texts.extend(column.str().unwrap().iter().flatten().map(str::to_owned));
            }
        }
        let separators = ['\\', '/', '"', ' '];
        let words = texts.iter().flat_map(|text| text.split(separators).chain([text.as_str()]));
        // Object types, and the build and product of Windows, stay. Words shorter than this occur in numbers by chance.
        let mut public = ObjectTypes::read(&self.before).unwrap().name;
        for key in [TraceInfos::os_build_string, TraceInfos::product] {
            public.extend(self.before.values(key).unwrap().get(0).map(str::to_owned));
        }
        let is_public = |word: &str| public.iter().any(|text| text.contains(word));
        let is_secret = |word: &&str| word.len() > 5 && !stays(word) && !is_public(word);
        let words: BTreeSet<&str> = words.filter(is_secret).collect();
        assert!(!words.is_empty());
        let copy = fs::read(&self.copy).unwrap();
        let mut by_start: HashMap<[u8; 6], Vec<Vec<u8>>> = HashMap::new();
        for word in words {
            let utf16 = word.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for bytes in [word.as_bytes().to_vec(), utf16] {
                by_start.entry(*bytes.first_chunk().unwrap()).or_default().push(bytes);
            }
        }
        let pair = |bytes: &[u8]| usize::from(bytes[0]) << 8 | usize::from(bytes[1]);
        let mut starts = vec![false; 1 << 16];
        by_start.keys().for_each(|start| starts[pair(start)] = true);
        for at in 0..copy.len().saturating_sub(5) {
            if !starts[pair(&copy[at..])] {
                continue;
            }
            let Some(candidates) = by_start.get(&copy[at..at + 6]) else { continue };
            // Part of a longer word may be the whole of another word.
            let is_letter = |place: &[u8]| place.iter().any(u8::is_ascii_alphanumeric);
            let is_whole = |word: &Vec<u8>| {
                let (before, behind) = (copy[..at].last_chunk::<2>(), &copy[at + word.len()..]);
                !is_letter(before.unwrap()) && !is_letter(&behind[..2])
            };
            let is_there = |word: &&Vec<u8>| copy[at..].starts_with(word) && is_whole(word);
            let found = candidates.iter().find(is_there);
            assert_eq!(found.map(|bytes| String::from_utf8_lossy(bytes)), None, "at {at}");
        }
    }
}

/// Returns the number of events of each kind, with the times of the first and the last.
fn counts(trace: &Trace) -> BTreeMap<String, (u64, Option<i64>, Option<i64>)> {
    let mut counts = BTreeMap::new();
    for EventCount { kind, count, first_ns, last_ns, .. } in
        EventCounts::read(trace).unwrap().rows()
    {
        let of_kind = counts.entry(kind).or_insert((0, first_ns, last_ns));
        *of_kind = (of_kind.0 + count, of_kind.1.min(first_ns), of_kind.2.max(last_ns));
    }
    counts
}

/// Asserts that texts keep their lengths, and that equal texts stay equal.
fn check_names(before: &Column, after: &Column) {
    let (before, after) = (before.str().unwrap(), after.str().unwrap());
    let mut placeholders: HashMap<&str, &str> = HashMap::new();
    for (before, after) in before.iter().zip(after.iter()) {
        assert_eq!(before.is_some(), after.is_some(), "{before:?} {after:?}");
        let (Some(before), Some(after)) = (before, after) else { continue };
        assert_eq!(*placeholders.entry(before).or_insert(after), after, "{before}");
        if !before.starts_with("S-1-") && before.is_ascii() {
            assert_eq!(before.len(), after.len(), "{before} {after}");
        }
    }
    // There may be more short names than short placeholders.
    let long: HashSet<&str> = placeholders.keys().copied().filter(|name| name.len() > 5).collect();
    let distinct: HashSet<&str> = long.iter().map(|name| placeholders[name]).collect();
    assert_eq!(long.len(), distinct.len());
}

/// Whether a word is part of Windows, as the help says, or of a multi-word name that is.
fn stays(word: &str) -> bool {
    let known = include_str!("../../../extract/src/redact/known.rs");
    let known = known.split(['|', '"', '\\', '\n']).map(str::trim);
    let known: HashSet<&str> = known.flat_map(|name| name.split(' ').chain([name])).collect();
    word.to_lowercase().split('\\').all(|part| {
        let (stem, extension) = part.rsplit_once('.').unwrap_or((part, "exe"));
        let is_volume = part.starts_with("harddiskvolume") || part.ends_with(':');
        let is_module = known.contains(stem) && known.contains(extension);
        // A short placeholder may match another name by chance.
        stem.len() < 4 || known.contains(part) || is_volume || is_module
    })
}

/// Builds a trace with a program, its files, handles, .NET code, and a password on its command line.
fn trace(options: FileOptions) -> TraceBuilder {
    const COMPILED: u64 = 0x2000_0000;
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    let command_line = r#""C:\Users\jdoe\secretive.exe" --password hunter2222"#;
    trace.process(700, "secretive.exe").started(1_000).ended(90_000).command_line(command_line);
    let path = r"\Device\HarddiskVolume3\Users\jdoe\secretive.exe";
    trace.module(700, path, 0x40_0000, 0x2_0000).file_version("4.3.0.16111");
    trace.object_type(16, "Event");
    let caller = (700, 701);
    let method = MethodRecord {
        module_id: 9,
        address: COMPILED,
        size: 0x40,
        type_name: "Contoso.Secrets".into(),
        name: "OpenTheSafe".into(),
        signature: "void  (class Contoso.Key)".into(),
    };
    trace.method(2_000, caller, MethodEvent::Load, &method);
    let create = trace.create_handle(3_000, caller, OBJECT, 4, 16);
    create.stack(&[0xffff_f801_0000_1000], &[COMPILED + 5, 0x40_1000]);
    trace.create_handle(4_000, caller, OBJECT + 0x100, 8, 16);
    trace.close_handle(5_000, caller, OBJECT + 0x100, 8, 16, r"\BaseNamedObjects\JdoesMutex");
    trace.reference(6_000, caller, OBJECT, b"Dflt", 1);
    trace.noise(200, 3);
    trace
}

#[test]
fn the_copy_of_the_sample_has_its_structure_and_none_of_its_names() {
    RedactedCopy::new(&sample_trace()).has_the_structure().has_no_texts();
}

#[test]
fn compressed_and_plain_traces_of_both_pointer_sizes_are_copied() {
    for compressed in [false, true] {
        let options = FileOptions { buffer_size: 4096, compressed, ..FileOptions::default() };
        let folder = tempfile::tempdir().unwrap();
        let etl = folder.path().join("trace.etl");
        trace(options).write(&etl).unwrap();
        let redacted = RedactedCopy::new(&etl);
        redacted.has_the_structure().has_no_texts();
        let copy = fs::read(&redacted.copy).unwrap();
        for secret in ["hunter2222", "jdoe", "Contoso", "OpenTheSafe"] {
            let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let is_there = |bytes: &[u8]| copy.windows(bytes.len()).any(|place| place == bytes);
            assert!(!is_there(secret.as_bytes()) && !is_there(&utf16), "{secret}");
        }
        if !compressed {
            assert_eq!(copy.len() as u64, fs::metadata(&etl).unwrap().len());
        }
    }
}

#[test]
fn the_copy_goes_where_it_is_asked_to_and_replaces_nothing_before_it_is_whole() {
    let home = tempfile::tempdir().unwrap();
    fs::copy(sample_trace(), home.path().join("a.etl")).unwrap();
    fs::write(home.path().join("bad.etl"), b"no trace").unwrap();
    fs::write(home.path().join("old.etl"), b"old").unwrap();
    let run = |arguments: &[&str]| run(home.path(), arguments);
    let output = run(&["redact", "a.etl", "-o", "b.etl"]).ok().stdout;
    assert!(output.starts_with("b.etl: ") && output.ends_with(", without names\n"), "{output}");
    let console = run(&["-c", ".redact a.etl -o c.etl"]).ok();
    assert!(console.stdout.starts_with("c.etl: "), "{}", console.stdout);
    let [b, c] = ["b.etl", "c.etl"].map(|name| fs::read(home.path().join(name)).unwrap());
    assert_eq!(b, c);
    for (arguments, status, text) in [
        (&["redact", "bad.etl", "-o", "old.etl", "-Force"][..], 1, "is a text file, not a trace"),
        (&["redact", "missing.etl"], 1, "missing.etl: cannot open"),
        (&["redact", "a.etl", "-o", "a.etl"], 1, "is the trace itself"),
        (&["redact", "a.etl", "-o", "nowhere/b.etl"], 1, "name another file with -o"),
        (&["redact"], 2, "needs a trace"),
        (&["redact", "a.etl", "b.etl"], 2, "one trace"),
        (&["redact", "a.etl", "-x"], 2, "-x"),
    ] {
        let run = run(arguments);
        assert_eq!(run.status, Some(status), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(text), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(fs::read(home.path().join("old.etl")).unwrap(), b"old");
    assert!(run(&["redact", "--help"]).ok().stdout.contains("without names"));
}

#[test]
fn a_damaged_trace_is_copied_with_its_damage_or_refused() {
    for compressed in [false, true] {
        let options = FileOptions { buffer_size: 4096, compressed, ..FileOptions::default() };
        let whole = trace(options).to_bytes();
        for seed in 0..40 {
            let mut bytes = whole.clone();
            let damage = corrupt::damage(&mut bytes, seed);
            let folder = tempfile::tempdir().unwrap();
            let etl = folder.path().join("a.etl");
            fs::write(&etl, &bytes).unwrap();
            let mut copy = Vec::new();
            let limits = ExtractOptions::default().limits;
            let cancel = Cancel::default();
            let done = handlescope_extract::redact(&etl, &limits, &mut copy, &NoObserver, &cancel);
            let output = folder.path().join("x.json7z");
            let options = ExtractOptions::default();
            let extracted = extract(&etl, &output, options.clone(), &NoObserver, &cancel);
            assert_eq!(done.is_ok(), extracted.is_ok(), "{damage:?}");
            let Ok(before) = extracted else { continue };
            fs::write(&etl, &copy).unwrap();
            let after = extract(&etl, &output, options, &NoObserver, &cancel).unwrap();
            assert_eq!(before.handle_events, after.handle_events, "{damage:?}");
            assert_eq!(before.objects, after.objects, "{damage:?}");
        }
    }
}

#[test]
fn of_an_event_with_a_damaged_header_no_part_of_a_name_is_copied() {
    // Placeholders have no vowels.
    let parts: Vec<Vec<u8>> = ["secre", "hunt", "jdoe", "Jdoe", "Cont", "Safe"]
        .iter()
        .flat_map(|part| {
            [part.as_bytes().to_vec(), part.encode_utf16().flat_map(u16::to_le_bytes).collect()]
        })
        .collect();
    let whole = trace(FileOptions { buffer_size: 4096, ..FileOptions::default() }).to_bytes();
    let folder = tempfile::tempdir().unwrap();
    let etl = folder.path().join("a.etl");
    let is_header = |at: &usize| matches!(whole[*at..], [_, _, 1..=21, 0xC0, ..]);
    let headers = (0..whole.len()).step_by(8).filter(is_header);
    // Size, kind and version only. With another id, an event has another layout, and is read accordingly.
    let is_id = |at: usize, byte: usize| match whole[at + 2] {
        10 | 11 | 20 | 21 => byte == 4,
        _ => byte >= 6,
    };
    let bits = headers
        .flat_map(|at| (0..64).map(move |bit| (at, bit / 8, bit % 8)))
        .filter(|(at, byte, _)| !is_id(*at, *byte));
    for (at, byte, bit) in bits.step_by(one_of(11)) {
        let mut bytes = whole.clone();
        bytes[at + byte] ^= 1 << bit;
        fs::write(&etl, &bytes).unwrap();
        let mut copy = Vec::new();
        let limits = ExtractOptions::default().limits;
        let cancel = Cancel::default();
        let _ = handlescope_extract::redact(&etl, &limits, &mut copy, &NoObserver, &cancel);
        let is_there =
            |part: &&Vec<u8>| copy.windows(part.len()).any(|place| place == part.as_slice());
        let found = parts.iter().find(is_there).map(|part| String::from_utf8_lossy(part));
        assert_eq!(found, None, "bit {bit} of byte {byte} at {at}");
    }
}

#[needs_data]
#[test]
fn real_and_synthetic_traces_keep_their_structure_and_lose_their_names() {
    for name in [
        "real/ShutdownPerfDiagLogger",
        "real/TraceLoggingTester",
        "real/slow-ppt-2011",
        "real/net.4.5.2.x64",
        "synthetic/duplicates",
        "synthetic/eventleak",
        "synthetic/filemap",
        "synthetic/generic",
        "synthetic/growth",
        "synthetic/heap",
        "synthetic/objectref",
        "synthetic/registry",
        "synthetic/threadleak",
        "synthetic/valloc",
    ] {
        eprintln!("{name}");
        RedactedCopy::new(SharedTrace::open(name).etl()).has_the_structure().has_no_texts();
    }
}

#[needs_data]
#[test]
fn hostile_traces_end_with_an_error_or_a_copy() {
    let folder = PathBuf::from(std::env::var_os("HANDLESCOPE_DATA").unwrap()).join("hostile");
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let home = tempfile::tempdir().unwrap();
        let run = run(home.path(), &["redact", file.to_str().unwrap(), "-o", "copy.etl"]);
        assert!(matches!(run.status, Some(0 | 1)), "{}: {}", file.display(), run.stderr);
        assert!(!run.stderr.contains("bug"), "{}", run.stderr);
        assert_eq!(home.path().join("copy.etl").exists(), run.status == Some(0));
    }
}
