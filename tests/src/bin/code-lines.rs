//! Prints how many lines of code each crate has, without empty lines and comments.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use handlescope_tests::source::{CRATES, Crate, Lines, count_lines};

/// Prints how many lines of code each crate has, without empty lines and comments.
#[derive(Debug, Parser)]
struct Options {
    /// The folder of the workspace
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    workspace: PathBuf,
}

fn main() {
    let options = Options::parse();
    let mut total = Lines::default();
    println!("{:<8} {:>7} {:>7}", "crate", "code", "tests");
    for name in CRATES {
        let lines = lines_of_crate(&options.workspace.join(name));
        println!("{name:<8} {:>7} {:>7}", lines.code, lines.tests);
        total += lines;
    }
    println!("{:<8} {:>7} {:>7}", "total", total.code, total.tests);
}

fn lines_of_crate(folder: &Path) -> Lines {
    let source = folder.join("src");
    let loaded = Crate::read(&source);
    let mut shipped: HashSet<PathBuf> = loaded.files().map(|file| source.join(file)).collect();
    shipped.insert(folder.join("build.rs"));
    let mut total = Lines::default();
    for file in rust_files(folder) {
        let text = fs::read_to_string(&file).expect("a source file can be read");
        total += count_lines(&file, &text, !shipped.contains(&file));
    }
    total
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources can be read");
    let paths = entries.map(|entry| entry.expect("a folder of sources can be read").path());
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
