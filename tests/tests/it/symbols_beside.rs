//! Symbols saved with a trace are used without a symbol path, as long as the trace is loaded.

use std::fs;

use handlescope_tests::binary::{Shell, sample_symbols, sample_trace};
use handlescope_tests::containers::{ContainerWriter, write_7z, write_cab, write_zip};
use handlescope_tests::folders::{copy_folder, files};

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

/// Returns the trace and its symbols in a folder, as members of an archive.
fn members(folder: &str) -> Vec<(String, Vec<u8>)> {
    let trace = ("leaky.etl".to_owned(), fs::read(sample_trace()).unwrap());
    let symbols = files(&sample_symbols()).into_iter().map(|(file, content)| {
        let name = file.strip_prefix(sample_symbols()).unwrap().to_string_lossy().into_owned();
        (format!("{folder}/{}", name.replace('\\', "/")), content)
    });
    [trace].into_iter().chain(symbols).collect()
}

#[test]
fn symbols_in_the_archive_of_a_trace_give_names() {
    let shell = Shell::new();
    for (archive, write, folder) in [
        ("leaky.etl.zip", write_zip as ContainerWriter, "symbols"),
        ("leaky.etl.7z", write_7z, "symbols"),
        ("packed.etl.zip", write_zip, "PDBCache"),
        ("ngen.etl.zip", write_zip, "leaky.etl.NGENPDB"),
        ("leaky.cab", write_cab, "PDBCache"),
        ("leaky.diagsession", write_zip, "symbols"),
    ] {
        let members = members(folder);
        let members: Vec<(&str, Vec<u8>)> =
            members.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
        write(&shell.path(archive), &members);
        let run = shell.run(&[archive, "-c", QUERY, "-c", ".dump Symbols"]).ok();
        assert!(run.stdout.contains(NAMED), "{run:?}");
        assert!(run.stdout.contains(archive), "{run:?}");
    }
}

#[test]
fn a_folder_of_symbols_serves_all_traces_beside_it() {
    let shell = Shell::new();
    fs::copy(sample_trace(), shell.path("other.etl")).unwrap();
    copy_folder(&sample_symbols(), &shell.path("symbols"));
    for trace in ["leaky.etl", "other.etl", "Extract/leaky.json7z"] {
        let run = shell.run(&[trace, "-c", QUERY]).ok();
        assert!(run.stdout.contains(NAMED) && !run.stdout.contains(UNNAMED), "{run:?}");
    }
}
