//! `.snapshot` and `.diff`: what is still open between two points, and what got worse between two traces.

mod chance;
mod flames;
mod points;
mod traces;

use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const EVENT: u16 = 16;

/// A recording of a program with handles opened at different places in its code.
struct DiffRecording {
    trace: TraceBuilder,
    pid: u32,
    base: u64,
    ns: i64,
    handles: u32,
}

impl DiffRecording {
    fn new(pid: u32, base: u64, seconds: i64) -> Self {
        Self::named("server.exe", pid, base, seconds, FileOptions::default())
    }

    fn named(name: &str, pid: u32, base: u64, seconds: i64, options: FileOptions) -> Self {
        let mut trace = TraceBuilder::with_options(options);
        trace.process(4, "System");
        trace.process(pid, name).parent(4);
        trace.module(pid, r"C:\demo\server.exe", base, 0x10_0000);
        trace.object_type(EVENT, "Event");
        trace.end(seconds * SECOND);
        Self { trace, pid, base, ns: seconds * SECOND, handles: 0 }
    }

    /// Opens this many handles at a place, spread evenly over time, and closes each one `closed_after` later if that is
    /// given.
    fn opens(mut self, place: u64, count: i64, closed_after: Option<i64>) -> Self {
        let caller = (self.pid, self.pid + 4);
        for number in 0..count {
            self.handles += 1;
            let (object, handle) =
                (0xffff_8100_0000_0000 + u64::from(self.handles) * 0x100, self.handles * 4);
            let ns =
                self.ns / 100 + number * (self.ns / 100 * 98) / count + i64::from(self.handles);
            self.trace
                .create_handle(ns, caller, object, handle, EVENT)
                .stack(&[], &[self.base + place, self.base + 0x10]);
            if let Some(lived) = closed_after.filter(|lived| ns + lived < self.ns - MS) {
                self.trace.close_handle(ns + lived, caller, object, handle, EVENT, "");
            }
        }
        self
    }

    /// Records a healthy program: a cache that fills at once, and a pool that closes its handles.
    fn healthy(pid: u32, base: u64, seconds: i64) -> Self {
        let mut recording = Self::new(pid, base, seconds);
        let whole = recording.ns;
        recording.ns = SECOND;
        recording = recording.opens(0x100, 20, None);
        recording.ns = whole;
        recording.opens(0x200, 100 * seconds, Some(300 * MS))
    }
}

/// Makes a folder with `before.etl` and `after.etl`.
fn shell(before: &DiffRecording, after: &DiffRecording) -> Shell {
    let shell = Shell::new();
    before.trace.write(shell.path("before.etl")).unwrap();
    after.trace.write(shell.path("after.etl")).unwrap();
    shell
}

fn compared(before: &DiffRecording, after: &DiffRecording) -> (Value, ProgramRun) {
    let run = shell(before, after).run(&["diff", "before.etl", "after.etl", "-json"]);
    let document = serde_json::from_str(&run.stdout);
    (document.unwrap_or_else(|error| panic!("{error}: {run:?}")), run)
}

fn groups(document: &Value) -> &Vec<Value> {
    document["groups"].as_array().unwrap()
}

fn states(document: &Value) -> Vec<(&str, u64, u64, bool)> {
    let group = |group: &'_ Value| -> (u64, u64, bool) {
        let count = |name: &str| group[name].as_u64().unwrap();
        (count("before"), count("after"), group["got_worse"].as_bool().unwrap())
    };
    groups(document)
        .iter()
        .map(|own| {
            let (before, after, got_worse) = group(own);
            (own["state"].as_str().unwrap(), before, after, got_worse)
        })
        .collect()
}

/// Runs a script over the sample with its symbols.
fn sample(script: &str) -> ProgramRun {
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    Shell::new().script(&arguments, script)
}

fn document(run: ProgramRun) -> Value {
    serde_json::from_str(&run.ok().stdout).unwrap()
}
