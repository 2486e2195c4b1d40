//! Pairs of traces for `handlescope diff`: of a program that did not change, and of one that leaks anew.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::file::{FileOptions, Layout, Ring};
use crate::rng::Rng;
use crate::scenario::TraceBuilder;

const SECOND: i64 = 1_000_000_000;
const EVENT: u16 = 16;
const PID: u32 = 700;
const BASE: u64 = 0x7ff6_0000_0000;

/// What the groups of handles of a program do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Operations at random times lose so many handles each, within a millisecond.
    Leaks { at_once: u64 },
    /// Operations at random times lose 1 to 9 handles each.
    LeaksMixed,
    /// Caches are filled in the first seconds, and differ by up to 25 %.
    Fills,
    /// Caches get entries at random times, which live so many seconds.
    Caches { seconds: i64 },
}

/// How a trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    pub seconds: i64,
    /// Only so many of its last buffers are kept, if that is given.
    pub ring: Option<usize>,
}

impl Recorded {
    /// A whole trace of so many seconds.
    #[must_use]
    pub fn whole(seconds: i64) -> Self {
        Self { seconds, ring: None }
    }
}

/// Two traces of a program.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The row of the table.
    pub name: String,
    pub behaviour: Behaviour,
    /// Groups of handles of the program.
    pub groups: u64,
    pub before: Recorded,
    pub after: Recorded,
    /// Handles that are lost anew after, one by one at random times.
    pub new: u64,
}

/// Rows of a program that did not change.
#[must_use]
pub fn unchanged() -> Vec<Pair> {
    let pair = |name: &str, behaviour, before, after| Pair {
        name: name.to_owned(),
        behaviour,
        groups: 6,
        before,
        after,
        new: 0,
    };
    let times = |before, after| (Recorded::whole(before), Recorded::whole(after));
    let mut rows = Vec::new();
    for (c, behaviour) in [
        ("1", Behaviour::Leaks { at_once: 1 }),
        ("2", Behaviour::Leaks { at_once: 2 }),
        ("3", Behaviour::Leaks { at_once: 3 }),
        ("5", Behaviour::Leaks { at_once: 5 }),
        ("1 to 9", Behaviour::LeaksMixed),
    ] {
        for (length, (before, after)) in [
            ("equal", times(600, 600)),
            ("double", times(600, 1_200)),
            ("half", times(600, 300)),
            ("60 s", times(60, 60)),
        ] {
            rows.push(pair(&format!("{c} at once, {length}"), behaviour, before, after));
        }
    }
    for (name, behaviour) in
        [("fills", Behaviour::Fills), ("caches of 900 s", Behaviour::Caches { seconds: 900 })]
    {
        for (length, (before, after)) in
            [("equal", times(600, 600)), ("double", times(600, 1_200)), ("half", times(600, 300))]
        {
            rows.push(pair(&format!("{name}, {length}"), behaviour, before, after));
        }
    }
    let (file, ring) = (Recorded::whole(600), Recorded { seconds: 3_600, ring: Some(40) });
    for (name, behaviour) in
        [("2 at once", Behaviour::Leaks { at_once: 2 }), ("fills", Behaviour::Fills)]
    {
        rows.push(pair(&format!("{name}, file and ring"), behaviour, file, ring));
        rows.push(pair(&format!("{name}, ring and file"), behaviour, ring, file));
    }
    rows
}

/// Rows of a program that loses handles anew, beside what it loses before, one handle at once.
#[must_use]
pub fn leaking_anew() -> Vec<Pair> {
    let row = |groups: u64, new: u64| Pair {
        name: format!("{new} new, {groups} groups"),
        behaviour: Behaviour::Leaks { at_once: 1 },
        groups,
        before: Recorded::whole(600),
        after: Recorded::whole(600),
        new,
    };
    let groups = [2, 16, 56];
    groups.into_iter().flat_map(|groups| [5, 8, 12, 20, 40].map(|new| row(groups, new))).collect()
}

impl Pair {
    /// The exit status of `handlescope diff` of a pair, which lies in a folder.
    ///
    /// # Panics
    /// When it cannot be written or run.
    #[must_use]
    pub fn status(&self, seed: u64, program: &Path, folder: &Path) -> Option<i32> {
        // Rows of one seed would have the same times.
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

    fn trace(&self, recorded: Recorded, new: u64, rng: &mut Rng) -> TraceBuilder {
        let ring = recorded.ring.map(|buffers| {
            Layout::InMemory(Ring { buffers, per_processor: false, renumbered: false })
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
        let mut writer = Writer { trace, end, handles: 0 };
        for group in 0..self.groups {
            writer.group(self.behaviour, 0x100 + group * 0x40, group, rng);
        }
        for _ in 0..new {
            let ns = rng.below(end as u64) as i64;
            writer.open(ns, 0xf000, None);
        }
        writer.trace
    }
}

/// Writes the handles of a program.
struct Writer {
    trace: TraceBuilder,
    end: i64,
    handles: u32,
}

impl Writer {
    /// The handles of one group; groups have rates and sizes of their own.
    fn group(&mut self, behaviour: Behaviour, place: u64, group: u64, rng: &mut Rng) {
        let per_minute = [0.5, 1.0, 2.0, 4.0, 6.0, 12.0][(group % 6) as usize];
        match behaviour {
            Behaviour::Leaks { at_once } => {
                self.operations(per_minute, place, rng, |_| at_once, None);
            }
            Behaviour::LeaksMixed => {
                self.operations(per_minute, place, rng, |rng| 1 + rng.below(9), None);
            }
            Behaviour::Caches { seconds } => {
                self.operations(per_minute, place, rng, |_| 1, Some(seconds * SECOND));
            }
            Behaviour::Fills => {
                let size = [8, 20, 50, 100, 200, 400][(group % 6) as usize];
                for _ in 0..size * (75 + rng.below(51)) / 100 {
                    let ns = rng.below(20 * SECOND as u64) as i64;
                    self.open(ns, place, None);
                }
            }
        }
    }

    /// Operations at random times, so many a minute, each of which opens some handles at once.
    fn operations(
        &mut self,
        per_minute: f64,
        place: u64,
        rng: &mut Rng,
        at_once: impl Fn(&mut Rng) -> u64,
        lived: Option<i64>,
    ) {
        let mut ns = 0.0;
        loop {
            let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            ns -= (1.0 - uniform).ln() * 60.0 / per_minute * SECOND as f64;
            if ns >= self.end as f64 {
                return;
            }
            for number in 0..at_once(rng) {
                self.open(ns as i64 + number as i64 * 60_000, place, lived);
            }
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
