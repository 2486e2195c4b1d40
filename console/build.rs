//! Gives the program the commit it is made of, and its date.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit();
    let (hash, date) =
        commit.as_deref().and_then(|it| it.split_once(' ')).unwrap_or(("unknown", ""));
    println!("cargo::rustc-env=HANDLESCOPE_COMMIT={hash}");
    println!("cargo::rustc-env=HANDLESCOPE_DATE={date}");
}

/// The short hash and the date of the commit that is checked out, if this is a clone.
fn commit() -> Option<String> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let workspace = manifest.parent()?.canonicalize().ok()?;
    // Sources without history inside of another repository are not that repository's commit.
    let root = PathBuf::from(git(&workspace, &["rev-parse", "--show-toplevel"])?);
    if root.canonicalize().ok()? != workspace {
        return None;
    }
    // Every commit and checkout adds a line to this file.
    let log = workspace.join(git(&workspace, &["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&workspace, &["log", "-1", "--abbrev=7", "--format=%h %cs"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
