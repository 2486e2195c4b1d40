//! Every function of the published PDBs resolves to its own name.

use std::fs;

use handlescope_symbols::{
    ModuleIdentity, PdbIdentity, SearchOutcome, SymbolPath, Symbolizer, SymbolizerOptions,
};
use handlescope_tests::binary::Shell;
use handlescope_tests::data::{SharedTrace, faults};
use handlescope_tests::needs_data;
use serde_json::Value;
use tempfile::TempDir;

/// A module of `NAME.symbols.json` and its functions: RVA, size in bytes, name.
struct ExpectedModule {
    module: ModuleIdentity,
    functions: Vec<(u64, u64, String)>,
}

fn expected(trace: &SharedTrace) -> Vec<ExpectedModule> {
    let text = fs::read_to_string(trace.file(".symbols.json")).expect("the file can be read");
    let document: Value = serde_json::from_str(&text).expect("the file is JSON");
    document
        .as_object()
        .expect("modules by name")
        .iter()
        .map(|(name, module)| ExpectedModule {
            module: identity(name, module),
            functions: module["functions"].as_array().expect("functions").iter().map(row).collect(),
        })
        .collect()
}

fn identity(name: &str, module: &Value) -> ModuleIdentity {
    let text = |key: &str| module[key].as_str().expect("a text");
    let age = module["age"].as_u64().and_then(|age| u32::try_from(age).ok());
    ModuleIdentity {
        name: name.to_owned(),
        path: format!(r"C:\Windows\System32\{name}"),
        size: 0,
        timestamp: None,
        pdb: Some(PdbIdentity {
            name: text("pdb").to_owned(),
            guid: text("guid").parse().expect("a guid"),
            age: age.expect("an age"),
        }),
    }
}

fn row(function: &Value) -> (u64, u64, String) {
    let number = |index: usize| function[index].as_u64().expect("a number");
    (number(0), number(1), function[2].as_str().expect("a name").to_owned())
}

fn session(trace: &SharedTrace) -> (Symbolizer, [TempDir; 2]) {
    let pdbs = trace.pdbs();
    let symcaches = TempDir::new().expect("a temporary folder can be made");
    let path = SymbolPath::parse(&pdbs.path().to_string_lossy());
    let symcache_folder = Some(symcaches.path().to_owned());
    let options = SymbolizerOptions { symcache_folder, ..SymbolizerOptions::default() };
    (Symbolizer::new(path, options), [pdbs, symcaches])
}

fn check(name: &str) {
    let trace = SharedTrace::open(&format!("synthetic/{name}"));
    let (symbolizer, _folders) = session(&trace);
    for ExpectedModule { module, functions } in expected(&trace) {
        let mut rvas = vec![0];
        let mut names = vec![None];
        for (rva, size, name) in &functions {
            for offset in [0, size / 2, size - 1] {
                rvas.push(rva + offset);
                names.push(Some((name.as_str(), offset)));
            }
        }
        let frames = symbolizer.resolve(&module, &rvas);
        let found: Vec<_> = frames
            .iter()
            .map(|chain| chain.last().map(|frame| (&*frame.function, frame.offset)))
            .collect();
        assert_eq!(found, names, "{}", module.name);
    }
    for report in symbolizer.report() {
        assert!(report.is_resolved() && report.refused.is_empty(), "{report}");
    }
}

#[needs_data]
#[test]
fn eventleak() {
    check("eventleak");
}

#[needs_data]
#[test]
fn threadleak() {
    check("threadleak");
}

#[needs_data]
#[test]
fn registry() {
    check("registry");
}

#[needs_data]
#[test]
fn objectref() {
    check("objectref");
}

#[needs_data]
#[test]
fn filemap() {
    check("filemap");
}

#[needs_data]
#[test]
fn duplicates() {
    check("duplicates");
}

#[needs_data]
#[test]
fn an_address_before_the_first_function_is_not_lent_its_name() {
    let trace = SharedTrace::open("synthetic/duplicates");
    let (symbolizer, _folders) = session(&trace);
    for ExpectedModule { module, functions } in expected(&trace) {
        let Some((first, _, name)) = functions.first() else { continue };
        let frames = symbolizer.resolve(&module, &[first - 1]);
        assert!(
            frames.iter().flat_map(|chain| chain.iter()).all(|frame| *frame.function != **name),
            "{}",
            module.name
        );
    }
}

#[needs_data]
#[test]
fn the_pdbs_of_one_trace_do_not_serve_another() {
    let trace = SharedTrace::open("synthetic/eventleak");
    let other = SharedTrace::open("synthetic/registry");
    let (symbolizer, _folders) = session(&trace);
    for ExpectedModule { module, functions } in expected(&other) {
        let rvas: Vec<u64> = functions.iter().map(|(rva, ..)| *rva).collect();
        assert!(
            symbolizer.resolve(&module, &rvas).iter().all(|chain| chain.is_empty()),
            "{}",
            module.name
        );
    }
    assert!(symbolizer.report().iter().all(|report| report.outcome == SearchOutcome::NotFound));
}

#[needs_data]
#[test]
fn identities_that_come_before_all_image_events_are_those_of_the_modules() {
    let (shell, trace) = (Shell::new(), "early-identities.etl.7z");
    fs::copy(faults().join(trace), shell.path(trace)).unwrap();
    let query = ".sql select count(*) as modules, count(pdb_guid) as pdbs from modules";
    let run = shell.run(&[trace, "-c", query]).ok();
    let row: Vec<&str> = run.stdout.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row, ["21", "21"], "{run:?}");
    assert!(!run.stderr.contains("image identit"), "{run:?}");
}
