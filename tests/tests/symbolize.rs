//! Names of functions stored in an extract, for users without symbols.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_model::{Table, Trace};
use handlescope_tests::binary::{Run, Shell, sample_symbols};

const STACKS: &str = ".dump ObjectRef -pn leaky -Leak -ShowStack -ShowLine";
const BY_NAME: &str = ".dump ObjectRef -CreateStack *Session::Connect* -ShowTotal None";

/// The sample, extracted, without any symbols.
fn extracted() -> (Shell, PathBuf) {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    let extract = shell.path("leaky.json7z");
    (shell, extract)
}

/// Stacks and a filter on names, with a symbol path.
fn answers(shell: &Shell, symbols: &str) -> Run {
    shell.run(&["leaky.json7z", "--symbol-path", symbols, "-c", STACKS, "-c", BY_NAME]).ok()
}

fn symbolize(shell: &Shell, symbols: &Path) -> String {
    let symbols = symbols.to_str().expect("a path");
    shell.run(&["leaky.json7z", "-symfolder", symbols, "-c", ".symbolize"]).ok().stdout
}

/// All tables but that of symbols.
fn others(extract: &Path) -> Vec<String> {
    let trace = Trace::open(extract).expect("an extract");
    let tables = Table::ALL.iter().filter(|table| **table != Table::Symbols);
    tables.map(|table| format!("{:?}", trace.frame(*table).expect("a table"))).collect()
}

/// A folder with one PDB of the sample.
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
    // The line of the call, and not that of the statement behind it.
    assert!(with_symbols.stdout.contains("leaky.exe!leaky::ThreadPool::WorkerMain leaky.cpp:97\n"));
    let printed = symbolize(&shell, &sample_symbols());
    assert_eq!(printed, "leaky.json7z: 96 of 96 frames have names, stored\n");
    assert_eq!(others(&extract), before);
    let files = fs::read_dir(shell.path("")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!files.into_iter().any(|name| name.to_string_lossy().starts_with(".handlescope-")));

    for symbols in ["", "nowhere"] {
        let without = answers(&shell, symbols);
        assert_eq!(without.stdout, with_symbols.stdout);
        assert!(!without.stderr.contains("symbol"), "{}", without.stderr);
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
    // Names that a symbol file has, and those that are stored, together.
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
