//! Files that are cut while a command reads them. The command answers or says in one sentence why it cannot; it never
//! crashes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use handlescope_tests::binary::{ProgramRun, Shell, ended, examples};
use handlescope_tests::dump::SampleDump;
use handlescope_tests::thorough::one_of;

/// A file, and a command that reads it.
struct ReadCommand {
    file: PathBuf,
    arguments: Vec<String>,
}

/// How often each file is cut, each time later.
const ROUNDS: u64 = 30;

fn read(shell: &Shell, file: PathBuf, arguments: &[&str]) -> ReadCommand {
    let _ = shell.run(arguments).ok();
    ReadCommand { file, arguments: arguments.iter().map(|word| (*word).to_owned()).collect() }
}

/// Returns the first file below a folder with a name that ends like this.
fn found(folder: &Path, end: &str) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                return path;
            }
        }
    }
    panic!("no file like {end} in {}", folder.display())
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs the command again and again, and cuts the file later each time.
fn cut(shell: &Shell, what: &str, ReadCommand { file, arguments }: &ReadCommand) {
    let whole = fs::read(file).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for round in (0..ROUNDS).step_by(one_of(6)) {
        fs::write(file, &whole).unwrap();
        let mut command = shell.command(&arguments);
        let mut running =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(round * 5));
        // The file may be gone, such as a part of a dataset that the command replaces.
        if let Ok(file) = File::options().write(true).open(file) {
            file.set_len(whole.len() as u64 * (round % 4) / 4).unwrap();
        }
        let status = ended(&mut running);
        let run: ProgramRun = running.wait_with_output().unwrap().into();
        assert!(matches!(status.code(), Some(0 | 1)), "{what} {round}: {status:?} {run:?}");
        assert!(status.success() || run.stderr.contains("error: "), "{what} {round}: {run:?}");
        assert!(!run.stderr.contains("this is a bug"), "{what} {round}: {run:?}");
    }
    fs::write(file, &whole).unwrap();
}

#[test]
fn no_command_dies_of_a_file_that_is_cut_while_it_is_read() {
    let shell = Shell::new();
    copy_folder(&examples().join("symbols"), &shell.path("symbols"));
    let leaky = &shell.path("leaky.etl");
    cut(
        &shell,
        "trace",
        &read(&shell, leaky.clone(), &["extract", "--force", "leaky.etl", "-o", "out"]),
    );
    let archive = shell.path("out/leaky.json7z");
    cut(&shell, "archive", &read(&shell, archive, &["out/leaky.json7z", "-c", ".why"]));
    let pdb = found(&shell.path("symbols/leaky.pdb"), "leaky.pdb");
    let why = ["out/leaky.json7z", "--symbol-path", "symbols", "-c", ".why"];
    // Without a cache, the PDB is read each time.
    let uncached = [&why[..2], &["symbols"], &why[3..]].concat();
    cut(&shell, "PDB", &read(&shell, pdb, &uncached));
    let symcache = found(&shell.path("cache"), ".symcache");
    cut(&shell, "symbol cache", &read(&shell, symcache, &why));
    let dump = (1..20_000).fold(SampleDump::default(), |dump, number| {
        dump.handle(number * 4, "Event", r"\BaseNamedObjects\Name")
    });
    fs::write(shell.path("a.dmp"), dump.to_bytes()).unwrap();
    cut(
        &shell,
        "dump",
        &read(&shell, shell.path("a.dmp"), &["extract", "--force", "a.dmp", "-o", "dumps"]),
    );
    let _ = shell.run(&["dataset", "add", "fleet", "leaky.etl"]).ok();
    let part = found(&shell.path("fleet"), ".parquet");
    cut(&shell, "part", &read(&shell, part, &["fleet", "-c", ".why"]));
}
