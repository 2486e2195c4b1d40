//! A fleet: traces of many machines over days, during which a program is updated from build to build, and the truth
//! about its leaks.
//!
//! * Each machine records one trace of five to ten minutes a day. All machines get all builds, some of
//!   them a day later.
//! * Two builds leak handles on known stacks ([`LEAKS`]), at rates that differ between machines. Everything else the
//!   program opens is closed, kept until it exits, or opened only once.
//! * Another program, without symbols or version, closes what it opens.

mod program;
mod session;

use std::ops::Range;
use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

use self::program::{PROGRAM, ProgramBuild, VERSIONS, builds};
use self::session::{FleetSession, FunctionHandles, Leaking};
use crate::rng::Rng;

/// Maximum number of days with traces: October 2026.
const DAYS: usize = 31;

/// A leak in some builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetLeak {
    /// The function that opens the handles.
    pub function: &'static str,
    /// Type of the objects.
    pub kind: &'static str,
    /// Indexes of the builds that leak them, from 0.
    pub builds: Range<usize>,
    /// Whether only every other machine uses the leaking function.
    pub half: bool,
    /// Range of the percentage of opened handles that a machine leaks.
    pub percent: Range<u32>,
}

/// The leaks of the fleet.
pub const LEAKS: [FleetLeak; 2] = [
    FleetLeak {
        function: "fleet::Cache::Open",
        kind: "Event",
        builds: 2..4,
        half: false,
        percent: 30..70,
    },
    FleetLeak {
        function: "fleet::Index::Load",
        kind: "File",
        builds: 3..4,
        half: true,
        percent: 15..90,
    },
];

/// Size of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetSize {
    pub traces: usize,
    pub machines: usize,
    pub seed: u64,
}

impl FleetSize {
    /// Writes `traces/`, `symbols/` and `truth.json` into a folder, and returns the truth.
    ///
    /// # Errors
    /// If a file cannot be written, or the compiler or linker fails.
    ///
    /// # Panics
    /// If the traces cover more than 31 days, or there are no machines.
    pub fn write(self, folder: &Path) -> io::Result<Value> {
        let traces = folder.join("traces");
        fs::create_dir_all(&traces)?;
        let builds = builds(&folder.join("symbols"))?;
        let mut recorded = Vec::new();
        for number in 0..self.traces {
            let recording = self.recording(number);
            let build = &builds[recording.build];
            recorded.push(recording.write(build, &traces.join(&recording.file))?);
        }
        let truth = self.truth(&recorded);
        fs::write(folder.join("truth.json"), format!("{truth:#}\n"))?;
        Ok(truth)
    }

    /// Returns the recording with this number: one per machine, then the next day.
    fn recording(self, number: usize) -> FleetRecording {
        let days = self.traces.div_ceil(self.machines);
        assert!(days <= DAYS, "{days} days are more than {DAYS}");
        let (machine, day) = (number % self.machines, number / self.machines);
        // A third of the machines is updated first, the others half a build and a whole build later.
        let position = (2 * day + 2 - machine % 3) * VERSIONS.len() / (2 * days);
        let build = position.min(VERSIONS.len() - 1);
        let mut of_machine = Rng::new(self.seed ^ (machine as u64) << 32);
        let hour = 6 + of_machine.below(12) as i64;
        let leaks = LEAKS.iter().map(|leak| {
            let Range { start, end } = leak.percent;
            let percent = start + of_machine.below((end - start).into()) as u32;
            let leaks = leak.builds.contains(&build) && !(leak.half && machine % 2 == 0);
            Leaking { function: leak.function, percent: if leaks { percent } else { 0 } }
        });
        FleetRecording {
            number,
            file: format!("FLEET-{:03}-10-{:02}.etl", machine + 1, day + 1),
            computer: format!("FLEET-{:03}", machine + 1),
            build,
            day: day as i64,
            hour,
            leaks: leaks.collect(),
            seed: self.seed.wrapping_mul(1_000_003).wrapping_add(number as u64),
        }
    }

    fn truth(self, recorded: &[Value]) -> Value {
        let leaks = LEAKS.iter().map(|leak| {
            let leaking = |trace: &&Value| {
                trace["leaks"][leak.function]["leaked"].as_u64().unwrap_or_default() > 0
            };
            let traces: Vec<&Value> = recorded.iter().filter(leaking).collect();
            let mut machines: Vec<&str> =
                traces.iter().filter_map(|trace| trace["machine"].as_str()).collect();
            machines.sort_unstable();
            machines.dedup();
            let leaked = |trace: &&Value| trace["leaks"][leak.function]["leaked"].as_u64();
            json!({
                "process": PROGRAM,
                "type": leak.kind,
                "function": format!("{PROGRAM}!{}", leak.function),
                "first_build": VERSIONS[leak.builds.start],
                "fixed_in": VERSIONS[leak.builds.end],
                "builds": VERSIONS[leak.builds.clone()],
                "machines": machines,
                "first_day": traces.iter().filter_map(|trace| trace["day"].as_str()).min(),
                "traces": traces.len(),
                "leaked": traces.iter().filter_map(leaked).sum::<u64>(),
            })
        });
        json!({
            "seed": self.seed,
            "builds": VERSIONS,
            "leaks": leaks.collect::<Vec<Value>>(),
            "traces": recorded,
        })
    }
}

/// A trace to write.
#[derive(Debug)]
struct FleetRecording {
    number: usize,
    file: String,
    computer: String,
    /// Index of the build.
    build: usize,
    /// Day and hour at which it starts.
    day: i64,
    hour: i64,
    leaks: Vec<Leaking>,
    seed: u64,
}

impl FleetRecording {
    /// Writes the trace, and returns the truth about it.
    fn write(&self, build: &ProgramBuild, path: &Path) -> io::Result<Value> {
        let start_s = (self.day * 24 + self.hour) * 3_600 + self.number as i64 % 60;
        let mut session = FleetSession::new(build, &self.computer, start_s, self.seed);
        let opened = session.run(&self.leaks);
        session.write(path)?;
        let leaks = opened.into_iter().map(|FunctionHandles { function, leaked, opened }| {
            (function.to_owned(), json!({ "leaked": leaked, "opened": opened }))
        });
        Ok(json!({
            "file": self.file,
            "machine": self.computer,
            "build": build.version,
            "day": format!("2026-10-{:02}", self.day + 1),
            "seconds": session.seconds(),
            "leaks": leaks.collect::<serde_json::Map<String, Value>>(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_machine_gets_every_build_in_order() {
        for (traces, machines) in [(300, 30), (40, 4), (30, 3)] {
            let fleet = FleetSize { traces, machines, seed: 1 };
            let all: Vec<FleetRecording> =
                (0..traces).map(|number| fleet.recording(number)).collect();
            for machine in 0..machines {
                let builds: Vec<usize> =
                    all.iter().skip(machine).step_by(machines).map(|trace| trace.build).collect();
                assert!(builds.is_sorted(), "{builds:?}");
                let distinct: BTreeSet<usize> = builds.into_iter().collect();
                assert_eq!(distinct.len(), VERSIONS.len());
            }
        }
    }

    #[test]
    fn a_leak_is_of_its_builds_and_machines() {
        let fleet = FleetSize { traces: 300, machines: 30, seed: 1 };
        for number in 0..300 {
            let FleetRecording { build, leaks, .. } = fleet.recording(number);
            assert_eq!(leaks[0].percent > 0, build == 2 || build == 3);
            assert_eq!(leaks[1].percent > 0, build == 3 && number % 2 == 1);
        }
    }
}
