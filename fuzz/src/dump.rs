//! What is done with any bytes as a minidump: it is extracted, and the archive is read.

use std::fs;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::extract;

/// Extracts bytes as a minidump; says whether that made an archive.
pub fn read(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (path, output) = (folder.path().join("a.dmp"), folder.path().join("a.json7z"));
    // Other files are the business of other targets.
    let bytes = [b"MDMP", bytes.get(4..).unwrap_or_default()].concat();
    fs::write(&path, bytes).expect("the dump can be written");
    let (options, cancel) = (ExtractOptions::default(), Cancel::default());
    if extract(&path, &output, options, &NoObserver, &cancel).is_err() {
        return false;
    }
    let trace = Trace::open(&output).expect("what was written can be opened");
    for table in Table::ALL {
        trace.frame(table).expect("what was written can be read");
    }
    true
}
