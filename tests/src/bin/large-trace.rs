//! Writes a large trace for measurements and prints the counts to expect.

use std::io;
use std::path::PathBuf;

use clap::Parser;

use handlescope_tests::bench::{LargeTrace, write_large_trace};

/// Writes a large trace of handle events and prints the counts to expect.
#[derive(Debug, Parser)]
struct LargeTraceOptions {
    /// The .etl file to write
    output: PathBuf,
    /// Number of create, duplicate and close events
    #[arg(long, default_value_t = 5_000_000)]
    handle_events: u64,
    /// Number of events of heap blocks after them
    #[arg(long, default_value_t = 0)]
    heap_events: u64,
    /// Number of context switches and reads of disks after them
    #[arg(long, default_value_t = 0)]
    other_events: u64,
    /// Number of processors
    #[arg(long, default_value_t = 8)]
    cpus: u16,
    /// Number of distinct stacks
    #[arg(long, default_value_t = 20_000)]
    distinct_stacks: usize,
    /// Frames per stack
    #[arg(long, default_value_t = 25)]
    stack_depth: usize,
    /// How many of 100 created handles are never closed
    #[arg(long, default_value_t = 2)]
    leak_percent: u32,
    /// Number of processes
    #[arg(long, default_value_t = 20)]
    processes: u32,
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write compressed buffers
    #[arg(long)]
    compressed: bool,
}

fn main() -> io::Result<()> {
    let options = LargeTraceOptions::parse();
    let trace = LargeTrace {
        handle_events: options.handle_events,
        heap_events: options.heap_events,
        other_events: options.other_events,
        cpus: options.cpus,
        distinct_stacks: options.distinct_stacks,
        stack_depth: options.stack_depth,
        leak_percent: options.leak_percent,
        processes: options.processes,
        seed: options.seed,
        compressed: options.compressed,
    };
    let counts = write_large_trace(&options.output, &trace)?;
    println!("{counts:#?}");
    Ok(())
}
