//! Several traces loaded together: each has the same objects and ids as alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use handlescope_tests::binary::{Shell, handlescope, run_script, sample_symbols, sample_trace};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use serde_json::{Deserializer, Value};
use tempfile::TempDir;

const MS: i64 = 1_000_000;

/// Objects by file name.
type ObjectsByFile = BTreeMap<String, Vec<Value>>;

/// Traces in a folder, and the folders of their symbols.
struct TraceFolder {
    home: TempDir,
    symbols: Vec<PathBuf>,
}

impl TraceFolder {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), symbols: Vec::new() }
    }

    /// Returns the objects of a query on these files, by file.
    fn objects(&self, files: &[&str], query: &str) -> ObjectsByFile {
        let mut command = handlescope(self.home.path());
        let symbols: Vec<_> = self.symbols.iter().map(|path| path.to_str().unwrap()).collect();
        command.arg("--symbol-path").arg(symbols.join(";")).args(files);
        let run = run_script(&mut command, &format!(".dump ObjectRef {query} -json\n")).ok();
        let document = Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap();
        by_file(&document)
    }

    /// Checks that every query returns the same objects of a file alone, before the other file and after it.
    fn check(&self, one: &str, other: &str) {
        for query in ["-ShowStack -ShowRef", "-Leak", "-MinMaxDuration 9999", "-MinMaxId 2 4"] {
            let mut alone = self.objects(&[one], query);
            alone.extend(self.objects(&[other], query));
            assert!(alone.values().any(|objects| !objects.is_empty()), "{query}");
            assert_eq!(self.objects(&[one, other], query), alone, "{query}");
            assert_eq!(self.objects(&[other, one], query), alone, "{query}");
        }
    }
}

/// Returns the objects of a document by file, with the frames of their stacks instead of numbers.
fn by_file(document: &Value) -> ObjectsByFile {
    let mut found = ObjectsByFile::new();
    let files = document["files"].as_array().unwrap();
    for file in files {
        let path = Path::new(file["path"].as_str().unwrap());
        found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), Vec::new());
    }
    for object in document["objects"].as_array().unwrap() {
        let file = object["file"].as_u64().unwrap() as usize;
        let path = Path::new(files[file]["path"].as_str().unwrap());
        let mut object = object.clone();
        object.as_object_mut().unwrap().remove("file");
        for event in object["events"].as_array_mut().unwrap() {
            let stack = &document["stacks"][event["stack"].to_string()];
            event["stack"] = stack.clone();
        }
        found.get_mut(path.file_name().unwrap().to_str().unwrap()).unwrap().push(object);
    }
    found
}

/// Builds handles, references and views of a process that is in no other trace.
fn other_trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(7316, "other.exe").started(MS);
    trace.object_type(9, "Event");
    for n in 1..=5_u32 {
        let object = 0xffff_9a0c_51e0_0000 + u64::from(n) * 0x100;
        let ns = MS * i64::from(2 * n);
        trace.create_handle(ns, (7316, 8), object, 4 * n, 9);
        if n % 2 == 0 {
            trace.close_handle(ns + MS, (7316, 8), object, 4 * n, 9, "odd");
        }
    }
    let view =
        MappedView { base: 0x1_0000, size: 0x1000, file_key: 7, misc: 0, offset: 0, pid: 7316 };
    trace.map(20 * MS, (7316, 8), view);
    trace
}

#[test]
fn objects_and_ids_are_the_same_alone_and_with_another_file_in_both_orders() {
    let mut traces = TraceFolder::new();
    std::fs::copy(sample_trace(), traces.home.path().join("leaky.etl")).unwrap();
    other_trace().write(traces.home.path().join("other.etl")).unwrap();
    traces.symbols.push(sample_symbols());
    traces.check("leaky.etl", "other.etl");
}

#[needs_data]
#[test]
fn published_traces_are_the_same_alone_and_with_another_file_in_both_orders() {
    for (one, other) in [("eventleak", "duplicates"), ("filemap", "objectref")] {
        let mut traces = TraceFolder::new();
        let mut pdbs = Vec::new();
        for name in [one, other] {
            let trace = SharedTrace::open(&format!("synthetic/{name}"));
            std::fs::copy(trace.etl(), traces.home.path().join(format!("{name}.etl"))).unwrap();
            pdbs.push(trace.pdbs());
        }
        traces.symbols = pdbs.iter().map(|folder| folder.path().to_owned()).collect();
        traces.check(&format!("{one}.etl"), &format!("{other}.etl"));
    }
}

#[test]
fn totals_of_a_file_are_those_it_has_alone() {
    let mut traces = TraceFolder::new();
    std::fs::copy(sample_trace(), traces.home.path().join("leaky.etl")).unwrap();
    other_trace().write(traces.home.path().join("other.etl")).unwrap();
    traces.symbols.push(sample_symbols());
    let text = |files: &[&str]| {
        let mut command = handlescope(traces.home.path());
        run_script(command.args(files), ".dump ObjectRef\n").ok().stdout
    };
    let (one, other) = (text(&["leaky.etl"]), text(&["other.etl"]));
    // The other one was recorded first. With several traces, the totals of each have a label.
    let both = text(&["leaky.etl", "other.etl"]);
    let unlabelled = both.replace("Totals of leaky\n", "").replace("Totals of other\n", "");
    let sums = unlabelled.strip_prefix(&format!("{other}{one}"));
    let sums = sums.unwrap_or_else(|| panic!("{both}"));
    // 91 objects, 99 handles and 2 duplicates in one, 6 objects and 5 handles in the other.
    assert!(sums.contains("Objects Created/Destroyed: 97/74 Diff: 23,"), "{sums}");
    assert!(sums.contains("Handles Created/Closed/Duplicated: 104/84/2 Diff: 22,"), "{sums}");
}

#[test]
fn sums_over_all_files_stand_below_a_heading_of_their_own() {
    let traces = TraceFolder::new();
    other_trace().write(traces.home.path().join("one.etl")).unwrap();
    other_trace().write(traces.home.path().join("other.etl")).unwrap();
    for (files, headings) in [(&["one.etl", "other.etl"][..], 1), (&["one.etl"], 0)] {
        let mut command = handlescope(traces.home.path());
        let shown =
            run_script(command.args(files), ".dump ObjectRef -ShowTotal File\n").ok().stdout;
        assert_eq!(
            shown.matches("\nAll 2 files\nHandles not closed ").count(),
            headings,
            "{shown}"
        );
    }
}

#[test]
fn a_range_of_ids_counts_in_each_file() {
    let mut traces = TraceFolder::new();
    std::fs::copy(sample_trace(), traces.home.path().join("leaky.etl")).unwrap();
    other_trace().write(traces.home.path().join("other.etl")).unwrap();
    traces.symbols.push(sample_symbols());
    let found = traces.objects(&["leaky.etl", "other.etl"], "-MinMaxId 3 5");
    for (file, objects) in found {
        let mut ids: Vec<_> = objects.iter().map(|object| object["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [3, 4, 5], "{file}");
    }
}

/// Makes two traces with the same name, and one with a path that is only the name.
fn of_one_name() -> Shell {
    let shell = Shell::new();
    for folder in ["a", "b"] {
        std::fs::create_dir(shell.path(folder)).unwrap();
        std::fs::copy(sample_trace(), shell.path(folder).join("leaky.etl")).unwrap();
    }
    std::fs::copy(sample_trace(), shell.path("leaky.etl")).unwrap();
    shell
}

#[test]
fn two_traces_of_one_name_have_different_names() {
    let shell = of_one_name();
    let script = ".dump ObjectRef -ShowTotal Process\n.converttime -time 1s\n";
    let run = shell.script(&["a/leaky.etl", "b/leaky.etl"], script).ok();
    let name = |folder: &str, name: &str| Path::new(folder).join(name).display().to_string();
    for folder in ["a", "b"] {
        let (stem, file) = (name(folder, "leaky"), name(folder, "leaky.etl"));
        for line in [
            format!("    {stem}\n"),
            format!("Totals of {stem}\n"),
            format!("leaky.exe(7316) in {stem} "),
            format!(" for file {file}\n"),
        ] {
            assert!(run.stdout.contains(&line), "{line}: {}", run.stdout);
        }
    }
    let run = shell.script(&["a/leaky.etl"], script).ok();
    assert!(run.stdout.contains("    leaky\n"), "{}", run.stdout);
    assert!(run.stdout.contains(" for file leaky.etl\n"), "{}", run.stdout);
}

#[test]
fn a_name_unloads_one_trace_and_no_other() {
    let shell = of_one_name();
    let listed = |files: &[&str], command: &str| {
        let run = shell.script(files, &format!("{command}\n.list\n"));
        let names = run.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
        (names.map(str::to_owned).collect::<Vec<_>>(), run.stderr)
    };
    let a = Path::new("a").join("leaky.etl").display().to_string();
    let both = ["leaky.etl", a.as_str()];
    assert_eq!(listed(&both, ".unload leaky.etl").0, [a.as_str()]);
    assert_eq!(listed(&both, &format!(".unload {a}")).0, ["leaky.etl"]);
    assert!(listed(&both, ".unload *leaky.etl").0.is_empty());
    let (_, errors) = listed(&["a/leaky.etl", "b/leaky.etl"], ".unload leaky.etl");
    assert!(errors.contains("'leaky.etl' could be"), "{errors}");
    assert!(errors.contains("use a path instead"), "{errors}");
}

#[test]
fn traces_of_one_name_have_their_folders_in_csv_and_plots() {
    let shell = Shell::new();
    for folder in ["before", "after"] {
        fs::create_dir(shell.path(folder)).unwrap();
        fs::copy(sample_trace(), shell.path(folder).join("leaky.etl")).unwrap();
    }
    let names = |question: &str| {
        let files = ["before/leaky.etl", "after/leaky.etl", "-c", question];
        shell.run(&files).ok().stdout
    };
    let _ = names(".dump ObjectRef -Leak -csv out.csv");
    let csv = fs::read_to_string(shell.path("out.csv")).unwrap();
    let plots = names(".plot");
    let _ = names(".plot out.svg");
    let picture = fs::read_to_string(shell.path("out.svg")).unwrap();
    for text in [csv, plots, picture] {
        for name in ["before", "after"].map(|folder| Path::new(folder).join("leaky")) {
            assert!(text.contains(name.to_str().unwrap()), "{name:?}: {text}");
        }
    }
}
