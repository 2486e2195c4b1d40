//! Writes `examples/leaky.etl` and `examples/server.etl`: traces of `leaky.exe` and `server.exe` (see
//! `examples/README.md`). [`scenario`] and [`server`] script them; the addresses are real ones from
//! `examples/src/functions.txt`.

mod handles;
mod machine;
mod scenario;
mod server;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use clap::Parser;
use handlescope_tests::file::FileOptions;
use handlescope_tests::functions::FunctionTable;
use handlescope_tests::stacks::Stacks;

use crate::machine::{CPUS, Machine};

/// Writes the sample trace.
#[derive(Debug, Parser)]
struct Args {
    /// The list of functions that `examples/rebuild.sh` makes.
    functions: PathBuf,
    /// The traces to write, of leaky.exe and of server.exe.
    #[arg(num_args = 2)]
    outputs: Vec<PathBuf>,
}

/// The scenarios, in the order of the traces.
const SCENARIOS: [fn(&mut Machine); 2] = [scenario::run, server::run];

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let text = fs::read_to_string(&args.functions)
        .map_err(|source| format!("cannot read {}: {source}", args.functions.display()))?;
    let functions = FunctionTable::parse(&text)
        .map_err(|reason| format!("{}: {reason}", args.functions.display()))?;
    for (output, run) in args.outputs.iter().zip(SCENARIOS) {
        let mut machine = Machine::new(Stacks::new(functions.clone()), options());
        run(&mut machine);
        let summary = machine
            .write(output)
            .map_err(|source| format!("cannot write {}: {source}", output.display()))?;
        println!("{}: {} events, {} bytes", output.display(), summary.events, summary.bytes);
    }
    Ok(())
}

/// Returns options for a small compressed file of a merged session.
fn options() -> FileOptions {
    FileOptions {
        buffer_size: 0x4000,
        cpus: CPUS.into(),
        base: 48_211_930_774,
        start: 134_151_894_000_000_000, // 2026-02-10 09:30 UTC
        boot: 134_151_845_788_069_226,  // the start minus the performance counter
        compressed: true,
        ..FileOptions::default()
    }
}
