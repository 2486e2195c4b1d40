//! Symbols that were saved with a trace are used without a symbol path, as long as the trace is loaded.

use std::fs::{self, File};
use std::io::Write as _;

use handlescope_tests::binary::{Shell, sample_symbols, sample_trace};
use handlescope_tests::folders::{copy_folder, files};
use zip::write::{SimpleFileOptions, ZipWriter};

const QUERY: &str = ".dump ObjectRef -Leak -TopN 1 -ShowStack";
const NAMED: &str = "leaky.exe!leaky::ThreadPool::StartWorker";
const UNNAMED: &str = "leaky.exe+0x";

#[test]
fn a_folder_beside_the_trace_gives_names_to_the_trace_and_to_its_extract() {
    let shell = Shell::new();
    let run = shell.run(&["leaky.etl", "-c", QUERY]).ok();
    assert!(run.stdout.contains(UNNAMED) && !run.stdout.contains(NAMED), "{run:?}");
    copy_folder(&sample_symbols(), &shell.path("leaky.etl.NGENPDB"));
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
    copy_folder(&sample_symbols(), &shell.path("with.etl.NGENPDB"));
    let all = ["with.etl", "without.etl", "-c", QUERY, "-c", ".unload with.etl", "-c", QUERY];
    let run = shell.run(&all).ok();
    let (named, unnamed) = (run.stdout.rfind(NAMED).unwrap(), run.stdout.find(UNNAMED).unwrap());
    assert!(named < unnamed, "{run:?}");
}

#[test]
fn symbols_in_the_zip_of_a_trace_give_names() {
    let shell = Shell::new();
    let mut zip = ZipWriter::new(File::create(shell.path("leaky.etl.zip")).unwrap());
    let mut add = |name: &str, content: &[u8]| {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    };
    add("leaky.etl", &fs::read(sample_trace()).unwrap());
    for (file, content) in files(&sample_symbols()) {
        let name = file.strip_prefix(sample_symbols()).unwrap().to_string_lossy();
        add(&format!("symbols/{}", name.replace('\\', "/")), &content);
    }
    zip.finish().unwrap();
    let run = shell.run(&["leaky.etl.zip", "-c", QUERY, "-c", ".dump Symbols"]).ok();
    assert!(run.stdout.contains(NAMED), "{run:?}");
    assert!(run.stdout.contains("leaky.etl.zip"), "{run:?}");
}
