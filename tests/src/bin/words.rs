//! Prints how many words of each crate read like a translation.

use std::path::PathBuf;

use clap::Parser;

use handlescope_tests::source::{CRATES, count_words_in};

/// Prints how many words of each crate read like a translation.
#[derive(Debug, Parser)]
struct Options {
    /// The folder of the workspace
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    workspace: PathBuf,
}

fn main() {
    let options = Options::parse();
    println!(
        "{:<8} {:>9} {:>12} {:>7} {:>7} {:>4} {:>13} {:>12}",
        "crate",
        "doc lines",
        "doc comments",
        "openers",
        "share",
        "own",
        "closures/1000",
        "lost handles"
    );
    for name in CRATES {
        let words = count_words_in(&options.workspace.join(name).join("src"));
        println!(
            "{name:<8} {:>9} {:>12} {:>7} {:>6.1}% {:>4} {:>13.1} {:>12}",
            words.doc_lines,
            words.doc_comments,
            words.openers,
            100.0 * words.openers as f64 / words.doc_comments.max(1) as f64,
            words.own,
            1000.0 * words.closures as f64 / words.lines.max(1) as f64,
            words.lost_handles,
        );
    }
}
