//! Writes traces of a fleet: many machines, and several builds of a program, some of them leaking; with PDBs and the
//! truth.

use std::io;
use std::path::PathBuf;

use clap::Parser;

use handlescope_tests::fleet::FleetSize;

/// Writes traces of a fleet into FOLDER: traces/, symbols/ and truth.json
#[derive(Debug, Parser)]
struct FleetTracesOptions {
    /// The folder
    folder: PathBuf,
    /// Number of traces
    #[arg(long, default_value_t = 300)]
    traces: usize,
    /// Number of machines, each of which records a trace a day
    #[arg(long, default_value_t = 30)]
    machines: usize,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> io::Result<()> {
    let FleetTracesOptions { folder, traces, machines, seed } = FleetTracesOptions::parse();
    let truth = FleetSize { traces, machines, seed }.write(&folder)?;
    println!("{:#}", truth["leaks"]);
    Ok(())
}
