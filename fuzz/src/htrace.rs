//! What is done with any bytes as text of a debugger with the output of `!htrace`: it is extracted, and the archive is read.

use std::fs;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::{extract, is_htrace};

/// Extracts bytes as such a text; says whether it is one.
///
/// # Panics
/// When what looks like one cannot be extracted, or the archive cannot be read.
pub fn read(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (path, output) = (folder.path().join("a.log"), folder.path().join("a.json7z"));
    fs::write(&path, bytes).expect("the text can be written");
    let cancel = Cancel::default();
    // Other files are the business of other targets.
    if !is_htrace(&path, &cancel).expect("any text can be read") {
        return false;
    }
    extract(&path, &output, ExtractOptions::default(), &NoObserver, &cancel)
        .expect("a text with an entry becomes an archive");
    let trace = Trace::open(&output).expect("what was written can be opened");
    for table in Table::ALL {
        trace.frame(table).expect("what was written can be read");
    }
    true
}
