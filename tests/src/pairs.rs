//! Pairs of traces for `handlescope diff`: of a program that did not change, and of one with a new leak.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::file::{BufferOrder, FileOptions, Ring};
use crate::rng::Rng;
use crate::scenario::{KERNEL_HANDLE, TraceBuilder};

const SECOND: i64 = 1_000_000_000;
const EVENT: u16 = 16;
const PID: u32 = 700;
const BASE: u64 = 0x7ff6_0000_0000;

/// How a program opens and leaks its groups of handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Operations at random times, each leaking this many handles one after the other.
    Leaks { at_once: u64, apart_ns: i64 },
    /// Operations at random times, each leaking 1 to 9 handles.
    LeaksMixed,
    /// Operations that leak one handle each, at random times in phases. A phase takes a minute on average, and the
    /// phases are three minutes apart.
    Phases,
    /// Caches that fill in the first seconds; the standard deviation of their sizes is 25 %.
    Fills,
    /// Caches that get entries at random times; an entry lives this many seconds.
    Caches { seconds: i64 },
}

/// How a trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingMode {
    pub seconds: i64,
    /// Number of last buffers to keep, if it is a ring.
    pub ring: Option<usize>,
}

impl RecordingMode {
    /// Records the whole trace of this many seconds.
    #[must_use]
    pub fn whole(seconds: i64) -> Self {
        Self { seconds, ring: None }
    }
}

/// Two traces of a program.
#[derive(Debug, Clone)]
pub struct TracePair {
    /// Name of the row in the table.
    pub name: String,
    pub behaviour: Behaviour,
    /// Number of handle groups in the program.
    pub groups: u64,
    pub before: RecordingMode,
    pub after: RecordingMode,
    /// Number of handles newly leaked in the second trace, one by one at random times.
    pub new: u64,
    /// The new leaks happen in this many seconds from the start.
    pub new_within: i64,
}

/// Returns rows for a program that did not change.
#[must_use]
pub fn unchanged() -> Vec<TracePair> {
    let times = |before, after| (RecordingMode::whole(before), RecordingMode::whole(after));
    let mut rows = Vec::new();
    for (c, behaviour) in [
        ("1", Behaviour::leaks(1)),
        ("2", Behaviour::leaks(2)),
        ("3", Behaviour::leaks(3)),
        ("5", Behaviour::leaks(5)),
        ("1 to 9", Behaviour::LeaksMixed),
    ] {
        for (length, (before, after)) in [
            ("equal", times(600, 600)),
            ("double", times(600, 1_200)),
            ("half", times(600, 300)),
            ("60 s", times(60, 60)),
        ] {
            rows.push(TracePair::unchanged(
                &format!("{c} at once, {length}"),
                behaviour,
                before,
                after,
            ));
        }
    }
    let apart = Behaviour::Leaks { at_once: 3, apart_ns: SECOND / 5 };
    let (before, after) = times(600, 600);
    rows.push(TracePair::unchanged("3 at once, 200 ms apart", apart, before, after));
    for (name, behaviour) in
        [("fills", Behaviour::Fills), ("caches of 900 s", Behaviour::Caches { seconds: 900 })]
    {
        for (length, (before, after)) in
            [("equal", times(600, 600)), ("double", times(600, 1_200)), ("half", times(600, 300))]
        {
            rows.push(TracePair::unchanged(&format!("{name}, {length}"), behaviour, before, after));
        }
    }
    let (file, ring) =
        (RecordingMode::whole(600), RecordingMode { seconds: 3_600, ring: Some(40) });
    for (name, behaviour) in [("2 at once", Behaviour::leaks(2)), ("fills", Behaviour::Fills)] {
        rows.push(TracePair::unchanged(&format!("{name}, file and ring"), behaviour, file, ring));
        rows.push(TracePair::unchanged(&format!("{name}, ring and file"), behaviour, ring, file));
    }
    rows
}

/// Returns rows for an unchanged program with handles that leak together over a longer time than the rule can detect.
#[must_use]
pub fn unchanged_in_bursts() -> Vec<TracePair> {
    let recorded = RecordingMode::whole(600);
    let apart = Behaviour::Leaks { at_once: 5, apart_ns: SECOND };
    vec![
        TracePair::unchanged("5 at once, 1 s apart", apart, recorded, recorded),
        TracePair::unchanged(
            "1 at once, in phases of a minute",
            Behaviour::Phases,
            recorded,
            recorded,
        ),
    ]
}

/// Returns rows for a program with new leaks besides its old ones, one handle at a time: throughout the trace, or when
/// it starts.
#[must_use]
pub fn leaking_anew() -> Vec<TracePair> {
    let row = |name: String, groups: u64, new: u64, seconds: i64, new_within: i64| TracePair {
        name,
        behaviour: Behaviour::leaks(1),
        groups,
        before: RecordingMode::whole(seconds),
        after: RecordingMode::whole(seconds),
        new,
        new_within,
    };
    let mut rows = Vec::new();
    for groups in [2, 16, 56] {
        for new in [5, 8, 12, 20, 40] {
            rows.push(row(format!("{new} new, {groups} groups"), groups, new, 600, 600));
        }
    }
    for (length, hours) in [("1 h", 1), ("24 h", 24)] {
        for new in [20, 40] {
            let name = format!("{new} new in the first 20 s of {length}, 2 groups");
            rows.push(row(name, 2, new, hours * 3_600, 20));
        }
    }
    rows
}

impl Behaviour {
    /// Returns operations that leak this many handles each, within a millisecond.
    fn leaks(at_once: u64) -> Self {
        Self::Leaks { at_once, apart_ns: 60_000 }
    }
}

impl TracePair {
    fn unchanged(
        name: &str,
        behaviour: Behaviour,
        before: RecordingMode,
        after: RecordingMode,
    ) -> Self {
        let (name, groups) = (name.to_owned(), 6);
        Self { name, behaviour, groups, before, after, new: 0, new_within: 0 }
    }

    /// Writes the pair into a folder and returns the exit status of `handlescope diff`.
    ///
    /// # Panics
    /// If it cannot be written or run.
    #[must_use]
    pub fn status(&self, seed: u64, program: &Path, folder: &Path) -> Option<i32> {
        // The name goes into the seed, or all rows of one seed would have the same times.
        let row = self
            .name
            .bytes()
            .fold(seed, |row, byte| row.wrapping_mul(257).wrapping_add(byte.into()));
        let mut rng = Rng::new(row);
        let files = ["before.etl", "after.etl"].map(|name| folder.join(name));
        for (at, (file, recorded)) in files.iter().zip([self.before, self.after]).enumerate() {
            let new = if at == 1 { self.new } else { 0 };
            self.trace(recorded, new, &mut rng).write(file).expect("the trace can be written");
        }
        let mut command = Command::new(program);
        command.arg("diff").args(&files).args(["-json", "--color", "never"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().expect("the program starts").code()
    }

    fn trace(&self, recorded: RecordingMode, new: u64, rng: &mut Rng) -> TraceBuilder {
        let ring = recorded.ring.map(|buffers| {
            BufferOrder::InMemory(Ring { buffers, per_processor: false, renumbered: false })
        });
        let mut options = FileOptions::default();
        if let Some(layout) = ring {
            options.layout = layout;
            options.buffer_size = 4_096;
        }
        let mut trace = TraceBuilder::with_options(options);
        trace.process(4, "System");
        trace.process(PID, "server.exe").parent(4);
        trace.module(PID, r"C:\demo\server.exe", BASE, 0x10_0000);
        trace.object_type(EVENT, "Event");
        let end = recorded.seconds * SECOND;
        trace.end(end);
        drivers(&mut trace, end);
        let mut writer = PairWriter { trace, end, phases: phases(end, rng), handles: 0 };
        for group in 0..self.groups {
            writer.group(self.behaviour, 0x100 + group * 0x40, group, rng);
        }
        for _ in 0..new {
            let ns = rng.below((self.new_within * SECOND) as u64) as i64;
            writer.open(ns, 0xf000, None);
        }
        writer.trace
    }
}

/// Adds kernel handles that a driver opens in the context of the program and closes in the context of System.
fn drivers(trace: &mut TraceBuilder, end: i64) {
    let (file, bit) = (0xffff_8a00_0000_0000, KERNEL_HANDLE);
    for ns in (SECOND..end - SECOND).step_by(7 * SECOND as usize) {
        trace
            .create_kernel_handle(ns, (PID, PID + 4), file, 0x40, EVENT)
            .stack(&[], &[BASE + 0xf800])
            .close_handle(ns + 1_000_000, (4, 8), file, 0x40 | bit, EVENT, "");
    }
}

/// Writes the handles of a program.
struct PairWriter {
    trace: TraceBuilder,
    end: i64,
    /// Times at which the program is active.
    phases: Vec<Range<i64>>,
    handles: u32,
}

/// Returns a random number above 0, up to 1.
fn uniform(rng: &mut Rng) -> f64 {
    1.0 - (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns phases of a minute on average, with three minutes between them on average.
fn phases(end: i64, rng: &mut Rng) -> Vec<Range<i64>> {
    let mut random = |seconds: f64| (-uniform(rng).ln() * seconds * SECOND as f64) as i64;
    let mut phases = Vec::new();
    let mut start = random(180.0);
    while start < end {
        let stop = start + random(60.0);
        phases.push(start..stop);
        start = stop + random(180.0);
    }
    phases
}

/// Returns a random number of the standard normal distribution (Box-Muller).
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * uniform(rng).ln()).sqrt() * (std::f64::consts::TAU * uniform(rng)).cos()
}

impl PairWriter {
    /// Writes the handles of one group. Groups have different rates and sizes.
    fn group(&mut self, behaviour: Behaviour, place: u64, group: u64, rng: &mut Rng) {
        let per_minute = [0.5, 1.0, 2.0, 4.0, 6.0, 12.0][(group % 6) as usize];
        match behaviour {
            Behaviour::Leaks { at_once, apart_ns } => {
                for ns in self.times(per_minute, rng) {
                    self.operation(ns, place, at_once, apart_ns);
                }
            }
            Behaviour::LeaksMixed => {
                for ns in self.times(per_minute, rng) {
                    self.operation(ns, place, 1 + rng.below(9), 60_000);
                }
            }
            Behaviour::Phases => {
                for ns in self.times(4.0 * per_minute, rng) {
                    if self.phases.iter().any(|phase| phase.contains(&ns)) {
                        self.open(ns, place, None);
                    }
                }
            }
            Behaviour::Caches { seconds } => {
                for ns in self.times(per_minute, rng) {
                    self.open(ns, place, Some(seconds * SECOND));
                }
            }
            Behaviour::Fills => {
                let size = [8.0, 20.0, 50.0, 100.0, 200.0, 400.0][(group % 6) as usize];
                for _ in 0..(size * (1.0 + 0.25 * normal(rng))).round() as u64 {
                    let ns = rng.below(20 * SECOND as u64) as i64;
                    self.open(ns, place, None);
                }
            }
        }
    }

    /// Returns random times, this many per minute.
    fn times(&self, per_minute: f64, rng: &mut Rng) -> Vec<i64> {
        let mut ns = 0.0;
        let next = || {
            ns -= uniform(rng).ln() * 60.0 / per_minute * SECOND as f64;
            (ns < self.end as f64).then_some(ns as i64)
        };
        std::iter::from_fn(next).collect()
    }

    /// Opens several handles, one after the other.
    fn operation(&mut self, ns: i64, place: u64, handles: u64, apart_ns: i64) {
        for number in 0..handles {
            self.open(ns + number as i64 * apart_ns, place, None);
        }
    }

    fn open(&mut self, ns: i64, place: u64, lived: Option<i64>) {
        self.handles += 1;
        let (caller, handle) = ((PID, PID + 4), self.handles * 4);
        let object = 0xffff_8100_0000_0000 + u64::from(self.handles) * 0x100;
        let ns = ns.min(self.end - 1_000_000);
        self.trace.create_handle(ns, caller, object, handle, EVENT).stack(&[], &[BASE + place]);
        if let Some(closed) = lived.map(|lived| ns + lived).filter(|closed| *closed < self.end) {
            self.trace.close_handle(closed, caller, object, handle, EVENT, "");
        }
    }
}
