//! Fleet datasets: what DuckDB, Spark and the console answer about them, and how many processes build them together.

mod cluster;
mod compact;
pub mod console;
mod damaged;
mod engines;
mod memory;
mod published;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use handlescope_tests::folders::files;

/// Returns the files of a dataset's tables and extracts, without work in progress.
fn contents(dataset: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(dataset).into_iter();
    let names =
        files.map(|(path, content)| (path.strip_prefix(dataset).unwrap().to_owned(), content));
    let is_written = |path: &Path| !path.starts_with("_locks") && !path.starts_with("_staging");
    names.filter(|(path, _)| is_written(path)).collect()
}
