//! Four programs at once, on every kind of written file: each file is complete, all programs give the same answers, and
//! nothing else is left behind.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use handlescope_model::{Table, Trace};
use handlescope_tests::binary::{ProgramRun, Shell, examples, sample_symbols};
use handlescope_tests::containers::trace_of_handles;
use handlescope_tests::folders;
use handlescope_tests::foreign::ForeignMembers;
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use handlescope_tests::thorough::one_of;
use serde_json::{Deserializer, Value};

const PROCESSES: usize = 4;
const LEAKS: &str = ".dump ObjectRef -Leak -ShowStack";
const LEAKY: &str = "leaky.pdb/641FC44082B9E1ED4C4C44205044422E1/leaky.pdb";

fn start(mut command: Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Runs the program with the same arguments several times at once.
fn at_once(shell: &Shell, arguments: &[&str]) -> Vec<ProgramRun> {
    let programs: Vec<Child> = (0..PROCESSES).map(|_| start(shell.command(arguments))).collect();
    programs
        .into_iter()
        .map(|program| program.wait_with_output().expect("it ends").into())
        .collect()
}

/// Returns the answer that all of them gave.
#[track_caller]
fn same_answer(runs: Vec<ProgramRun>) -> String {
    let answers: BTreeSet<String> = runs.into_iter().map(|run| run.ok().stdout).collect();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    answers.into_iter().next().unwrap_or_default()
}

/// Returns the names of all files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            names.extend(files(&entry.path()));
        } else {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names
}

#[track_caller]
fn assert_nothing_left(shell: &Shell) {
    let left = |name: &String| name.ends_with(".tmp") || name.contains(".partial");
    let left: Vec<_> = files(&shell.path("")).into_iter().filter(left).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn is_whole(extract: &Path) -> bool {
    let trace = Trace::open(extract).expect("an extract");
    Table::ALL.iter().all(|table| trace.frame(*table).is_ok())
}

#[test]
fn the_extract_beside_a_trace_is_written_by_all() {
    let shell = Shell::new();
    for _ in 0..3 {
        let answer = same_answer(at_once(&shell, &["leaky.etl", "-c", LEAKS]));
        assert!(answer.contains("leaky.exe"), "{answer}");
        assert!(is_whole(&shell.path("Extract/leaky.json7z")));
        assert_nothing_left(&shell);
        fs::remove_dir_all(shell.path("Extract")).unwrap();
    }
}

#[test]
fn names_are_stored_by_all() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    let symbols = sample_symbols();
    let symbolize = ["leaky.json7z", "-symFolder", symbols.to_str().unwrap(), "-c", ".symbolize"];
    for _ in 0..3 {
        let answer = same_answer(at_once(&shell, &symbolize));
        assert_eq!(answer, "leaky.json7z: 96 of 96 frames have names, stored\n");
        assert!(is_whole(&shell.path("leaky.json7z")));
        let stacks = shell.run(&["leaky.json7z", "-c", LEAKS]).ok();
        assert!(stacks.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{stacks:?}");
        assert_nothing_left(&shell);
    }
}

#[test]
fn every_output_is_whole_and_as_one_program_writes_it() {
    for command in [
        ".dump ObjectRef -Leak -csv out",
        ".dump ObjectRef -Leak -json > out",
        ".dump ObjectRef -ShowStack > out",
        ".sql SELECT * FROM events -parquet out",
        ".flame out.svg",
        ".flame out.speedscope.json",
        ".flame out.pb.gz",
        ".report out.html",
        ".save out.json7z",
        ".save out.json7z -etwanalyzer",
        ".plot out.svg",
        ".export out -csv -parquet",
        ".redact leaky.etl -o out.etl -Force",
    ] {
        let written = |shell: &Shell| {
            let name = command.split_whitespace().find(|word| word.starts_with("out")).unwrap();
            let path = shell.path(name);
            let paths = if path.is_dir() {
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect()
            } else {
                vec![path]
            };
            let mut files: Vec<_> = paths
                .into_iter()
                .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
                .collect();
            files.sort();
            files
        };
        let shell = Shell::new();
        let _ = shell.run(&["leaky.etl", "-c", command]).ok();
        let alone = written(&shell);
        for _ in 0..2 {
            // They also replace the files of the previous round.
            let _ = same_answer(at_once(&shell, &["leaky.etl", "-c", command]));
            assert!(written(&shell) == alone, "{command}");
            assert_nothing_left(&shell);
        }
    }
}

#[test]
fn output_of_other_programs_is_converted_by_all() {
    for source in ["htrace.log", "demo.json7z"] {
        let shell = Shell::new();
        fs::copy(examples().join("htrace.log"), shell.path("htrace.log")).unwrap();
        ForeignMembers::default().pack(&shell.path("demo.json7z"), "demo");
        let converted = || {
            ["Extract", "cache/handlescope/Converted"]
                .map(|name| shell.path(name))
                .into_iter()
                .filter(|folder| folder.is_dir())
                .flat_map(|folder| folders::files(&folder))
                .collect::<Vec<_>>()
        };
        let question = [source, "-c", ".dump ObjectRef -ShowStack"];
        let alone = shell.run(&question).ok().stdout;
        let [(path, content)] = &converted()[..] else { panic!("one conversion") };
        for _ in 0..2 {
            fs::remove_file(path).unwrap();
            assert_eq!(same_answer(at_once(&shell, &question)), alone, "{source}");
            assert!(converted() == [(path.clone(), content.clone())], "{source}");
            assert_nothing_left(&shell);
        }
    }
}

#[test]
fn a_file_of_one_process_may_be_replaced_by_the_next() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let dump = |file: usize| format!(".dump Process -csv {file}.csv");
    let programs: Vec<Child> = (0..2 * PROCESSES)
        .map(|file| start(shell.command(&["leaky.etl", "-c", &dump(file)])))
        .collect();
    for program in programs {
        let _ = ProgramRun::from(program.wait_with_output().expect("it ends")).ok();
    }
    for file in 0..2 * PROCESSES {
        let _ = shell.run(&["leaky.etl", "-c", &dump(file)]).ok();
    }
}

/// Starts a slow server of the sample's PDBs; also returns the number of files it sent.
fn slow_server() -> (SymbolServer, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let server = SymbolServer::start(move |path| {
        thread::sleep(Duration::from_millis(300));
        let answer = ServerAnswer::from_folder(&sample_symbols(), path);
        if matches!(answer, ServerAnswer::File(_)) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        answer
    });
    (server, sent)
}

#[test]
fn each_symbol_file_is_downloaded_once_and_all_have_its_names() {
    for _ in 0..16 / one_of(4) {
        let (shell, (server, sent)) = (Shell::new(), slow_server());
        let _ = shell.run(&["extract", "leaky.etl"]).ok();
        let arguments = ["leaky.etl", "-SymServer", &server.url, "-symCache", "cache", "-c", LEAKS];
        let runs = at_once(&shell, &arguments);
        let waited = runs.iter().filter(|run| run.stderr.contains("waited for another process"));
        assert!(waited.count() > 0, "{runs:#?}");
        let answer = same_answer(runs);
        assert!(answer.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{answer}");
        let pdbs = files(&shell.path("cache")).into_iter().filter(|name| name.ends_with(".pdb"));
        assert_eq!(sent.load(Ordering::SeqCst), pdbs.count(), "{:?}", server.asked());
        let asked: BTreeSet<String> = server.asked().into_iter().collect();
        assert_eq!(asked.len(), server.asked().len(), "nothing is asked for twice");
        assert_nothing_left(&shell);
    }
}

/// Packs a file into a cabinet, as servers may have it instead of the file.
fn cabinet(name: &str, content: &[u8]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    builder.add_folder(cab::CompressionType::MsZip).add_file(name);
    let mut writer = builder.build(Cursor::new(Vec::new())).unwrap();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_packed_symbol_file_is_unpacked_once_and_all_have_its_names() {
    let sound = fs::read(sample_symbols().join(LEAKY)).expect("a PDB of the sample");
    let (packed, sent) = (cabinet("leaky.pdb", &sound), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&sent);
    let server = SymbolServer::start(move |path| {
        thread::sleep(Duration::from_millis(300));
        if !path.ends_with("leaky.pd_") {
            return ServerAnswer::Status(404);
        }
        counter.fetch_add(1, Ordering::SeqCst);
        ServerAnswer::File(packed.clone())
    });
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let arguments = ["leaky.etl", "-SymServer", &server.url, "-symCache", "cache", "-c", LEAKS];
    let answer = same_answer(at_once(&shell, &arguments));
    assert!(answer.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{answer}");
    assert!(fs::read(shell.path("cache").join(LEAKY)).expect("a PDB") == sound);
    assert_eq!(sent.load(Ordering::SeqCst), 1);
    assert_nothing_left(&shell);
}

#[test]
fn symbols_missing_on_a_server_are_requested_once_and_noted_in_whole_lines() {
    let server = SymbolServer::start(|_| {
        thread::sleep(Duration::from_millis(300));
        ServerAnswer::Status(404)
    });
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let arguments = ["leaky.etl", "-SymServer", &server.url, "-symCache", "cache", "-c", LEAKS];
    let runs = at_once(&shell, &arguments);
    assert!(
        runs.iter().all(|run| !run.stderr.contains("another process to download")),
        "{runs:#?}"
    );
    let answer = same_answer(runs);
    let asked = server.asked();
    let distinct: BTreeSet<&String> = asked.iter().collect();
    assert_eq!(distinct.len(), asked.len(), "{asked:#?}");
    let lists = folders::files(&shell.path("cache"));
    let list = lists.iter().find(|(path, _)| path.ends_with("missing.tsv")).expect("a list");
    let list = str::from_utf8(&list.1).expect("text");
    assert!(
        list.ends_with('\n') && list.lines().all(|line| line.split('\t').count() == 5),
        "{list}"
    );
    // The plain file, the packed one and the pointer for each, and once whether the store has two tiers.
    assert_eq!(3 * (list.lines().count() - 1) + 1, asked.len(), "{list}");
    assert_eq!(shell.run(&arguments).ok().stdout, answer);
    assert_eq!(server.asked().len(), asked.len(), "the next process knows it");
    assert_nothing_left(&shell);
}

#[cfg(unix)]
#[test]
fn a_download_that_is_killed_leaves_no_half_of_a_file_and_the_others_go_on() {
    let sound = fs::read(sample_symbols().join(LEAKY)).expect("a PDB of the sample");
    for delay in (0..1500).step_by(100 * one_of(3)) {
        let (shell, (server, _)) = (Shell::new(), slow_server());
        let _ = shell.run(&["extract", "leaky.etl"]).ok();
        let arguments = ["leaky.etl", "-SymServer", &server.url, "-symCache", "cache", "-c", LEAKS];
        let mut first = start(shell.command(&arguments));
        thread::sleep(Duration::from_millis(delay));
        let others: Vec<Child> = (1..PROCESSES).map(|_| start(shell.command(&arguments))).collect();
        thread::sleep(Duration::from_millis(200));
        first.kill().expect("it is killed");
        let _ = first.wait();
        if let Ok(file) = fs::read(shell.path("cache").join(LEAKY)) {
            assert!(file == sound, "{delay} ms");
        }
        let others = others.into_iter().map(|other| other.wait_with_output().expect("it ends"));
        let answer = same_answer(others.map(ProgramRun::from).collect());
        assert!(answer.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{answer}");
        assert!(fs::read(shell.path("cache").join(LEAKY)).expect("a PDB") == sound);
    }
}

/// Returns the ids in the tables of a folder.
fn ids(folder: &Path) -> Vec<(String, Option<String>)> {
    let id = |table: &Table| {
        let text = fs::read_to_string(folder.join(format!("{}.ndjson", table.name()))).unwrap();
        let rows = Deserializer::from_str(&text).into_iter::<Value>().map(Result::unwrap);
        let ids: BTreeSet<String> =
            rows.map(|row| row["trace_id"].as_str().expect("an id").to_owned()).collect();
        assert!(ids.len() <= 1, "{}: {ids:?}", table.name());
        (table.name().to_owned(), ids.into_iter().next())
    };
    Table::ALL.iter().map(id).collect()
}

#[cfg(unix)]
#[test]
fn an_export_that_is_killed_shows_it_by_the_ids_of_its_tables() {
    let shell = Shell::new();
    for (name, handles) in [("old.etl", 40), ("new.etl", 50)] {
        fs::write(shell.path(name), trace_of_handles(handles)).unwrap();
        let _ = shell.run(&["extract", name]).ok();
    }
    let export = ".export tables -ndjson -csv -parquet";
    let folder = shell.path("tables");
    let _ = shell.run(&["new.etl", "-c", export]).ok();
    let of_new = ids(&folder);
    let _ = shell.run(&["old.etl", "-c", export]).ok();
    let of_old = ids(&folder);
    assert_ne!(of_new, of_old);
    for of in [&of_new, &of_old] {
        let distinct: BTreeSet<_> = of.iter().filter_map(|(_, id)| id.clone()).collect();
        assert_eq!(distinct.len(), 1, "{of:?}");
    }
    for delay in (0..600).step_by(15 * one_of(4)) {
        let mut program = start(shell.command(&["new.etl", "-c", export]));
        thread::sleep(Duration::from_millis(delay));
        let _ = program.kill();
        let _ = program.wait();
        let now = ids(&folder);
        let trace = &now[0];
        assert_eq!(trace.0, "trace");
        if now != of_old && now != of_new {
            let others = now.iter().filter_map(|(_, id)| id.as_ref());
            assert!(others.into_iter().any(|id| Some(id) != trace.1.as_ref()), "{now:?}");
        }
        let _ = shell.run(&["old.etl", "-c", &format!("{export} -Force")]).ok();
        assert_eq!(ids(&folder), of_old);
        assert_nothing_left(&shell);
    }
}
