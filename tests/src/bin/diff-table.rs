//! Prints the table of `docs/statistics.md`: how often `handlescope diff` reports that something got worse.

use std::io;
use std::path::PathBuf;

use clap::Parser;

use handlescope_tests::pairs::{TracePair, leaking_anew, unchanged, unchanged_in_bursts};

/// Prints how often `handlescope diff` says that something got worse, of programs that did and did not
#[derive(Debug, Parser)]
struct DiffTableOptions {
    /// The program
    program: PathBuf,
    /// Pairs of traces in each row
    #[arg(long, default_value_t = 200)]
    pairs: u64,
    /// The seed of the first pair
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder where the last pair stays
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Only rows whose names contain this
    #[arg(long, default_value = "")]
    row: String,
}

fn main() -> io::Result<()> {
    let options = DiffTableOptions::parse();
    let temporary = tempfile::tempdir()?;
    let folder = options.folder.as_deref().unwrap_or(temporary.path());
    let print = |title: &str, rows: Vec<TracePair>| {
        println!("| {title} | Worse |\n|---|---|");
        for pair in rows.iter().filter(|pair| pair.name.contains(&options.row)) {
            let status = |seed| pair.status(seed, &options.program, folder);
            let statuses: Vec<Option<i32>> =
                (0..options.pairs).map(|at| status(options.seed.wrapping_add(at))).collect();
            let count = |wanted| statuses.iter().filter(|status| **status == Some(wanted)).count();
            let (worse, trouble) = (count(1), statuses.len() - count(0) - count(1));
            let percent = worse as f64 * 100.0 / options.pairs.max(1) as f64;
            let trouble =
                if trouble > 0 { format!(", {trouble} in trouble") } else { String::new() };
            println!("| {} | {percent:.1} %{trouble} |", pair.name);
        }
        println!();
    };
    print("Unchanged", unchanged());
    print("Unchanged, in bursts", unchanged_in_bursts());
    print("Leaks anew", leaking_anew());
    Ok(())
}
