//! A trace that changes while it is read gets no extract.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use handlescope_extract::{ExtractObserver, ExtractOptions, redact};
use handlescope_model::Cancel;
use handlescope_sources::extract;
use handlescope_tests::containers::{trace_of_handles, write_zip};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;

/// Changes a file after the first events were read.
struct FileChange {
    path: PathBuf,
    how: ChangeFn,
    is_done: Cell<bool>,
}

impl ExtractObserver for FileChange {
    fn on_progress(&self, _bytes: u64) {
        if !self.is_done.replace(true) {
            (self.how)(&self.path);
        }
    }
}

fn opened(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}

fn shrink(path: &Path) {
    opened(path).set_len(100_000).unwrap();
}

fn grow(path: &Path) {
    let mut file = opened(path);
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&[0xFF; 4096]).unwrap();
}

fn overwrite(path: &Path) {
    let mut file = opened(path);
    file.seek(SeekFrom::Start(8192)).unwrap();
    file.write_all(&[0xEE; 4096]).unwrap();
}

fn replace(path: &Path) {
    let other = path.with_extension("other");
    fs::copy(path, &other).unwrap();
    overwrite(&other);
    fs::rename(&other, path).unwrap();
}

/// Builds a trace of many small buffers.
fn trace() -> Vec<u8> {
    let options = FileOptions { buffer_size: 4096, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.noise(20_000, 3);
    trace.create_handle(1_000, (4, 8), 0xffff_8100_0000_1000, 4, 16);
    trace.to_bytes()
}

type ChangeFn = fn(&Path);

const CHANGES: [(&str, ChangeFn); 4] =
    [("shrink", shrink), ("grow", grow), ("overwrite", overwrite), ("replace", replace)];

#[test]
fn a_trace_that_changes_while_it_is_read_is_refused_and_an_older_extract_stays() {
    for (name, how) in CHANGES {
        let folder = tempfile::tempdir().unwrap();
        let (path, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
        fs::write(&path, trace()).unwrap();
        fs::write(&output, "the extract before").unwrap();
        let change = FileChange { path: path.clone(), how, is_done: Cell::default() };
        let (options, cancel) = (ExtractOptions::default(), Cancel::default());
        let error = extract(&path, &output, options, &change, &cancel).map(drop).unwrap_err();
        let error = error.to_string();
        let is_reported = error.contains("a.etl: changed while it was read; extract it again")
            || (name == "shrink" && error.contains("a.etl: cannot read: it became shorter"));
        assert!(is_reported, "{name}: {error}");
        assert_eq!(fs::read(&output).unwrap(), b"the extract before", "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{name}");
    }
}

#[test]
fn an_archive_that_changes_while_its_trace_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join("a.zip"), folder.path().join("a.json7z"));
    write_zip(&path, &[("a.etl", trace_of_handles(3))]);
    let change = FileChange { path: path.clone(), how: grow, is_done: Cell::default() };
    let (options, cancel) = (ExtractOptions::default(), Cancel::default());
    let error = extract(&path, &output, options, &change, &cancel).map(drop).unwrap_err();
    assert!(error.to_string().contains("a.zip: changed while it was read"), "{error}");
    assert!(!output.exists());
}

#[test]
fn a_redacted_copy_is_of_one_trace_too() {
    for (name, how) in CHANGES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.etl");
        fs::write(&path, trace()).unwrap();
        let change = FileChange { path: path.clone(), how, is_done: Cell::default() };
        let limits = ExtractOptions::default().limits;
        let redacted = redact(&path, &limits, &mut Vec::new(), &change, &Cancel::default());
        let error = redacted.unwrap_err().to_string();
        let is_reported = ["changed while it was read", "it became shorter"];
        assert!(is_reported.iter().any(|text| error.contains(text)), "{name}: {error}");
    }
}
