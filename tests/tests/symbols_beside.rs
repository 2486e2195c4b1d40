//! Symbols that were saved with a trace are used without a symbol path, as long as the trace is loaded.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use handlescope_tests::binary::{Shell, sample_symbols, sample_trace};
use zip::write::{SimpleFileOptions, ZipWriter};

const QUERY: &str = ".dump ObjectRef -Leak -TopN 1 -ShowStack";
const NAMED: &str = "leaky.exe!leaky::ThreadPool::StartWorker";
const UNNAMED: &str = "leaky.exe+0x";

/// All files below a folder, by their relative paths.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        match entry.is_dir() {
            true => {
                found.extend(files(&entry).into_iter().map(|(p, f)| (format!("{name}/{p}"), f)));
            }
            false => found.push((name, entry)),
        }
    }
    found
}

fn copy_symbols(target: &Path) {
    for (name, file) in files(&sample_symbols()) {
        let copy = target.join(name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }
}

#[test]
fn a_folder_beside_the_trace_gives_names_to_the_trace_and_to_its_extract() {
    let shell = Shell::new();
    let run = shell.run(&["leaky.etl", "-c", QUERY]).ok();
    assert!(run.stdout.contains(UNNAMED) && !run.stdout.contains(NAMED), "{run:?}");
    copy_symbols(&shell.path("leaky.etl.NGENPDB"));
    for trace in ["leaky.etl", "Extract/leaky.json7z"] {
        let run = shell.run(&[trace, "-c", ".cd Extract", "-c", QUERY]).ok();
        assert!(run.stdout.contains(NAMED) && !run.stdout.contains(UNNAMED), "{run:?}");
    }
}

#[test]
fn symbols_of_an_unloaded_trace_no_longer_count() {
    let shell = Shell::new();
    for name in ["with.etl", "without.etl"] {
        fs::copy(sample_trace(), shell.path(name)).unwrap();
    }
    copy_symbols(&shell.path("with.etl.NGENPDB"));
    let all = ["with.etl", "without.etl", "-c", QUERY, "-c", ".unload with.etl", "-c", QUERY];
    let run = shell.run(&all).ok();
    let (named, unnamed) = (run.stdout.rfind(NAMED).unwrap(), run.stdout.find(UNNAMED).unwrap());
    assert!(named < unnamed, "{run:?}");
}

#[test]
fn symbols_in_the_zip_of_a_trace_give_names() {
    let shell = Shell::new();
    let mut zip = ZipWriter::new(File::create(shell.path("leaky.etl.zip")).unwrap());
    let mut add = |name: &str, file: &Path| {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(&fs::read(file).unwrap()).unwrap();
    };
    add("leaky.etl", &sample_trace());
    for (name, file) in files(&sample_symbols()) {
        add(&format!("symbols/{name}"), &file);
    }
    zip.finish().unwrap();
    let run = shell.run(&["leaky.etl.zip", "-c", QUERY, "-c", ".dump Symbols"]).ok();
    assert!(run.stdout.contains(NAMED), "{run:?}");
    assert!(run.stdout.contains("leaky.etl.zip"), "{run:?}");
}
