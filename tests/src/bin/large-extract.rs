//! Writes a large extract for measurements, in ETWAnalyzer's uncompressed form.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use handlescope_tests::rng::Rng;

/// Writes `NAME.json` and its companions, and prints the counts to expect.
#[derive(Debug, Parser)]
struct LargeExtractOptions {
    /// The main file to write, NAME.json
    output: PathBuf,
    /// Size of the handle part, MB
    #[arg(long, default_value_t = 200)]
    megabytes: u64,
    /// Number of distinct stacks
    #[arg(long, default_value_t = 20_000)]
    distinct_stacks: usize,
    /// Frames per stack
    #[arg(long, default_value_t = 25)]
    stack_depth: usize,
    /// How many of 100 created handles are never closed
    #[arg(long, default_value_t = 2)]
    leak_percent: u64,
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Number of processes besides System.
const PROCESSES: u64 = 20;

fn main() -> io::Result<()> {
    let options = LargeExtractOptions::parse();
    let part = |name: &str| {
        let stem = options.output.file_stem().unwrap_or_default().to_string_lossy();
        create(&options.output.with_file_name(format!("{stem}{name}.json")))
    };
    write_main(part("")?)?;
    write_stacks(part("_Derived_HandleStacks")?, &options)?;
    let (objects, events, leaks) = write_handles(part("_Derived_Handle")?, &options)?;
    println!("{objects} objects, {events} handle events, {leaks} leaked handles");
    Ok(())
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new)
}

fn write_main(mut out: impl Write) -> io::Result<()> {
    write!(
        out,
        r#"{{"UsedExtractOptions":"ETWAnalyzer -extract ObjectRef","SessionStart":"2024-05-10T12:46:34+02:00","SessionEnd":"2024-05-10T13:46:34+02:00","Processes":[{{"ProcessID":4,"ProcessName":"System"}}"#
    )?;
    for process in 1..=PROCESSES {
        let pid = process * 4 + 1000;
        write!(
            out,
            r#",{{"ProcessID":{pid},"ProcessName":"worker{process}.exe","CmdLine":"worker"}}"#
        )?;
    }
    out.write_all(b"]}")?;
    out.flush()
}

fn write_stacks(mut out: impl Write, options: &LargeExtractOptions) -> io::Result<()> {
    let mut rng = Rng::new(options.seed);
    out.write_all(br#"{"StackList":["""#)?;
    for _ in 0..options.distinct_stacks {
        out.write_all(b",\"ntoskrnl.exe!ObpCreateHandle\\r\\n")?;
        for _ in 1..options.stack_depth {
            let (module, function) = (rng.below(50), rng.below(400));
            write!(out, "module{module}.dll!Space::Class::Function{function}\\r\\n")?;
        }
        out.write_all(b"\"")?;
    }
    out.write_all(b"]}")?;
    out.flush()
}

fn write_handles(
    mut out: impl Write,
    options: &LargeExtractOptions,
) -> io::Result<(u64, u64, u64)> {
    let mut rng = Rng::new(options.seed);
    let (mut objects, mut events, mut leaks, mut bytes) = (0, 0, 0, 0);
    out.write_all(br#"{"ObjectTypeMap":{"16":"Event"},"ObjectReferences":["#)?;
    while bytes < options.megabytes * 1_000_000 {
        let comma = if objects > 0 { "," } else { "" };
        let pointer = -67_604_145_713_824i64 + rng.below(1 << 30) as i64 * 16;
        let name = if rng.below(2) == 0 {
            format!(r#""Name":"\\BaseNamedObjects\\Name{}","#, rng.below(100_000))
        } else {
            String::new()
        };
        let (process, handle) = (1 + rng.below(PROCESSES), 4 + rng.below(10_000) * 4);
        let event = |rng: &mut Rng, time: u64| {
            format!(
                r#"{{"HandleValue":{handle},"TimeNs":{time},"StackIdx":{},"ProcessIdx":{process},"ThreadId":{}}}"#,
                1 + rng.below(options.distinct_stacks as u64),
                100 + rng.below(1000),
            )
        };
        let start = objects * 1000;
        let create = event(&mut rng, start);
        let mut text = format!(
            r#"{comma}{{"ObjectPtr":{pointer},{name}"ObjectType":16,"HandleCreateEvents":[{create}]"#
        );
        events += 1;
        if rng.below(100) < options.leak_percent {
            leaks += 1;
        } else {
            text += &format!(r#","HandleCloseEvents":[{}]"#, event(&mut rng, start + 500));
            events += 1;
        }
        text.push('}');
        out.write_all(text.as_bytes())?;
        bytes += text.len() as u64;
        objects += 1;
    }
    out.write_all(b"]}")?;
    out.flush()?;
    Ok((objects, events, leaks))
}
