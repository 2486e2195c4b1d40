//! Function names stored in an extract, for users without symbols.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use handlescope_extract::{NoObserver, complete};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::folders::copy_folder;
use handlescope_tests::needs_linker;
use handlescope_tests::scenario::TraceBuilder;

const STACKS: &str = ".dump ObjectRef -pn leaky -Leak -ShowStack -ShowLine";
const BY_NAME: &str = ".dump ObjectRef -CreateStack *Session::Connect* -ShowTotal None";

/// Extracts the sample without any symbols.
fn extracted() -> (Shell, PathBuf) {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    let extract = shell.path("leaky.json7z");
    (shell, extract)
}

/// Asks for stacks and for a filter on names, with a symbol path.
fn answers(shell: &Shell, symbols: &str) -> ProgramRun {
    shell.run(&["leaky.json7z", "--symbol-path", symbols, "-c", STACKS, "-c", BY_NAME]).ok()
}

fn symbolize(shell: &Shell, symbols: &Path) -> String {
    let symbols = symbols.to_str().expect("a path");
    shell.run(&["leaky.json7z", "-symfolder", symbols, "-c", ".symbolize"]).ok().stdout
}

/// Returns all tables except the table of symbols.
fn others(extract: &Path) -> Vec<String> {
    let trace = Trace::open(extract).expect("an extract");
    Table::ALL
        .iter()
        .filter(|table| **table != Table::Symbols)
        .map(|table| format!("{:?}", trace.frame(*table).expect("a table")))
        .collect()
}

/// Makes a folder with only one PDB of the sample.
fn only(shell: &Shell, pdb: &str) -> PathBuf {
    let folder = shell.path(&format!("only-{pdb}"));
    let build = fs::read_dir(sample_symbols().join(pdb)).unwrap().flatten().next().unwrap();
    fs::create_dir(&folder).unwrap();
    fs::copy(build.path().join(pdb), folder.join(pdb)).unwrap();
    folder
}

#[test]
fn names_are_stored_and_nothing_else_changes() {
    let (shell, extract) = extracted();
    let before = others(&extract);
    let with_symbols = answers(&shell, sample_symbols().to_str().unwrap());
    assert!(with_symbols.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate leaky.cpp:29"));
    // It is the line of the call, not of the statement after it.
    assert!(with_symbols.stdout.contains("leaky.exe!leaky::ThreadPool::WorkerMain leaky.cpp:97\n"));
    let printed = symbolize(&shell, &sample_symbols());
    assert_eq!(printed, "leaky.json7z: 96 of 96 frames have names, stored\n");
    assert_eq!(others(&extract), before);
    let files = fs::read_dir(shell.path("")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!files.into_iter().any(|name| name.to_string_lossy().starts_with(".handlescope-")));

    for symbols in ["", "nowhere"] {
        let without = answers(&shell, symbols);
        assert_eq!(without.stdout, with_symbols.stdout);
        let is_about_symbols = |line: &&str| line.contains("symbol") && !line.contains("no folder");
        assert_eq!(without.stderr.lines().find(is_about_symbols), None);
        let report = shell.run(&["leaky.json7z", "--symbol-path", symbols, "-c", ".dump Symbols"]);
        let report = report.ok().stdout;
        assert_eq!(report.matches("names are stored in the extract; ").count(), 6, "{report}");
    }
}

#[test]
fn an_extraction_can_store_names_at_once() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    for (index, line) in [
        &["extract", "leaky.etl", "--symbols", "-symFolder", symbols][..],
        &["-extract", "All", "-fd", "leaky.etl", "-symbols", "-symfolder", symbols],
        &["extract", "--symbols", "leaky.etl", "--symbol-path", symbols],
        &["--symfolder", symbols, "extract", "leaky.etl", "-symbols"],
    ]
    .into_iter()
    .enumerate()
    {
        let folder = format!("out{index}");
        let run = shell.run(&[line, &["-outdir", &folder]].concat()).ok();
        assert!(run.stdout.contains("96 of 96 frames have names, stored\n"), "{run:?}");
        assert!(!run.stderr.contains("note:"), "{run:?}");
        let extract = format!("{folder}/leaky.json7z");
        let named = shell.run(&[&extract, "-c", BY_NAME]).ok();
        assert!(named.stdout.contains("Id: "), "{named:?}");
    }
}

#[test]
fn a_later_run_adds_names_and_loses_none() {
    let (shell, _) = extracted();
    let (leaky, ntdll) = (only(&shell, "leaky.pdb"), only(&shell, "ntdll.pdb"));
    assert!(symbolize(&shell, &leaky).contains("31 of 96 frames"));
    let run = answers(&shell, "");
    let app = "leaky.exe!leaky::EventCache::GetOrCreate leaky.cpp:29\n";
    assert!(run.stdout.contains(app) && run.stdout.contains("ntdll.dll+0x"), "{run:?}");
    assert!(!run.stderr.contains("leaky.exe"), "{run:?}");
    // Names from a symbol file and stored names are combined.
    let both = answers(&shell, ntdll.to_str().unwrap());
    assert!(both.stdout.contains(app) && both.stdout.contains("ntdll.dll!RtlUserThreadStart"));
    assert!(symbolize(&shell, &ntdll).contains("40 of 96 frames"));
    assert_eq!(answers(&shell, "").stdout, both.stdout);
    assert!(symbolize(&shell, &sample_symbols()).contains("96 of 96 frames"));
    let nothing = symbolize(&shell, &shell.path("nowhere"));
    assert!(nothing.contains("96 of 96 frames"), "{nothing}");
}

#[test]
fn etwanalyzer_s_way_to_load_symbols_works() {
    let (shell, extract) = extracted();
    let symbols = sample_symbols();
    let line = ["-LoadSymbol", "-fd", "leaky.json7z", "-SymFolder", symbols.to_str().unwrap()];
    let run = shell.run(&line).ok();
    assert_eq!(run.stdout, "leaky.json7z: 96 of 96 frames have names, stored\n");
    assert!(Trace::open(&extract).unwrap().height(Table::Symbols).unwrap() >= 96);
}

#[test]
fn without_any_name_the_extract_stays_as_it_is() {
    let (shell, extract) = extracted();
    let before = fs::read(&extract).unwrap();
    let printed = symbolize(&shell, &shell.path("nowhere"));
    assert_eq!(printed, "leaky.json7z: none of 96 frames has a name, so nothing was stored\n");
    assert_eq!(fs::read(&extract).unwrap(), before);
}

/// Builds a module with a PDB that says by Source Link where to get its source.
fn linked_module(folder: &Path) {
    fs::write(folder.join("m.cpp"), "extern \"C\" int open_it(int n) { return n * 3 + 1; }")
        .unwrap();
    let link = r#"{"documents": {"C:\\build\\*": "https://git.example/raw/abc/*"}}"#;
    fs::write(folder.join("link.json"), link).unwrap();
    let run = |program: &str, options: &[&str]| {
        let status = Command::new(program).args(options).current_dir(folder).status().unwrap();
        assert!(status.success(), "{program}");
    };
    let target = "--target=x86_64-pc-windows-msvc";
    let code = ["-O1", "-g", "-gcodeview", "-ffreestanding", "-fdebug-compilation-dir=C:/build"];
    run("clang++", &[&[target, "-c", "m.cpp", "-o", "m.obj"][..], &code].concat());
    let form = ["/nologo", "/nodefaultlib", "/dll", "/noentry", "/debug", "/opt:noref"];
    let files = ["/export:open_it", "/out:m.dll", "/pdb:m.pdb", "/pdbstream:sourcelink=link.json"];
    run("lld-link", &[&form[..], &files, &["m.obj"]].concat());
}

/// Writes a trace in which the module leaks a handle, with the identity of the module's file.
fn leak_of_module(folder: &Path, etl: &Path) {
    let bytes = fs::read(folder.join("m.dll")).unwrap();
    let field = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let pe = field(0x3C) as usize;
    let (timestamp, code, size) = (field(pe + 8), field(pe + 24 + 20), field(pe + 24 + 56));
    let mut trace = TraceBuilder::new();
    trace.merge_events(false).process(700, "m.exe");
    let base = 0x7ff6_0000_0000;
    trace.module(700, r"C:\build\m.dll", base, size.into()).timestamp(timestamp).loaded(1_000);
    let frames = [base + u64::from(code) + 2];
    trace.create_handle(2_000, (700, 701), 0xFFFF_8000_0000_1000, 4, 16).stack(&[], &frames);
    let raw = folder.join("raw.etl");
    trace.write(&raw).unwrap();
    let mut out = File::create(etl).unwrap();
    let mut locate = |_: &str| Some(folder.join("m.dll"));
    complete(&raw, &[], &mut locate, &mut out, &NoObserver, &Cancel::default()).unwrap();
}

#[needs_linker]
#[test]
fn stored_names_say_where_the_source_can_be_got() {
    let shell = Shell::new();
    let folder = tempfile::tempdir().unwrap();
    linked_module(folder.path());
    leak_of_module(folder.path(), &shell.path("m.etl"));
    let symbols = folder.path().to_str().unwrap();
    let question =
        [".dump ObjectRef -Leak -ShowStack -ShowLine", ".dump ObjectRef -Leak -ShowStack -json"];
    let ask = |symbols: &str| {
        let [lines, json] = question;
        shell.run(&["m.json7z", "--symbol-path", symbols, "-c", lines, "-c", json]).ok().stdout
    };
    let _ = shell.run(&["extract", "m.etl", "-o", "."]).ok();
    let expected = ask(symbols);
    assert!(expected.contains("https://git.example/raw/abc/m.cpp"), "{expected}");
    let _ = shell.run(&["m.json7z", "-symfolder", symbols, "-c", ".symbolize"]).ok();
    assert_eq!(ask("nowhere"), expected);
}

#[test]
fn symbols_beside_a_trace_name_its_frames_in_an_extract_without_loading_it() {
    let shell = Shell::new();
    copy_folder(&sample_symbols(), &shell.path("leaky.etl.NGENPDB"));
    for option in ["--etwanalyzer", "-symbols"] {
        let run = shell.run(&["extract", "leaky.etl", option]).ok();
        assert!(run.stdout.contains("96 of 96 frames have names"), "{option}: {}", run.stdout);
    }
}
