//! The history of several listings, which may print the same event more than once.
//!
//! Tracing keeps the last events of each process, in order, and forgets the oldest. A full listing prints all events
//! kept; a listing of a handle prints the events of that handle. `-diff` prints the last open of each handle that was
//! opened since the previous snapshot and is still open, and the number of events since then. `timeline` puts the full
//! listings of a process on an axis of event numbers. `differences` finds the positions of snapshots and differences on
//! it, and `window` those of listings of a handle. Events are equal if handle, operation, thread, process and return
//! addresses are.

use std::collections::{BTreeMap, BTreeSet};

use super::differences::Differences;
use super::output::{CommandStep, Fact, Output};
use super::timeline::{HandleTimeline, SequencePosition};
use super::window;
use crate::operations::OperationEntry;

/// Maximum number of events assumed missing between two listings.
const WIDEST: i64 = 1 << 12;

/// Maximum number of events whose positions are recomputed for that, so that no text takes hours.
const TRIALS: usize = 20_000_000;

/// The events of all listings in the order they happened.
#[derive(Debug, Default)]
pub struct HandleHistory {
    events: Vec<OperationEntry>,
    /// The first step that proves that each event has happened, ascending.
    known: Vec<usize>,
    snapshots: Vec<u32>,
    /// Number of snapshots at an ambiguous position.
    pub uncertain: u64,
}

/// Events of one process since a start of tracing, and the snapshots among them.
struct Stretch {
    /// Events with the first step that proves that they have happened.
    events: Vec<(usize, OperationEntry)>,
    /// Step of each snapshot, and the number of events before it.
    snapshots: Vec<(usize, usize)>,
    uncertain: u64,
}

impl HandleHistory {
    pub fn new(steps: Vec<CommandStep>) -> Self {
        let mut uncertain = 0;
        // The events of a process keep their order. Events of several processes are ordered by when they are known.
        let (mut events, mut snapshots) = (Vec::new(), Vec::new());
        for (process, facts) in facts_of_processes(steps) {
            let mut before = 0;
            for facts in stretches(facts) {
                let stretch = Stretch::new(&facts);
                uncertain += stretch.uncertain;
                let indexes = stretch.snapshots.into_iter();
                snapshots.extend(indexes.map(|(step, index)| (step, process, before + index)));
                for (step, entry) in stretch.events {
                    events.push((step, process, before, entry));
                    before += 1;
                }
            }
        }
        let mut steps_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for &(step, process, ..) in &events {
            steps_of.entry(process).or_default().push(step);
        }
        events.sort_by_key(|&(step, process, number, _)| (step, process, number));
        snapshots.sort_unstable();
        // Events of other processes came before a snapshot if they were known before it.
        let position = |(step, process, before): (usize, u32, usize)| {
            let known = events.partition_point(|event| event.0 < step);
            let steps = steps_of.get(&process).map_or(&[][..], |steps| steps);
            let of_process = steps.partition_point(|of_event| *of_event < step);
            (known - of_process + before) as u32
        };
        let snapshots = snapshots.into_iter().map(position).collect();
        let known = events.iter().map(|&(step, ..)| step).collect();
        let events = events.into_iter().map(|(_, _, _, entry)| entry).collect();
        Self { events, known, snapshots, uncertain }
    }

    /// The first step that proves that each event has happened.
    pub fn known(&self) -> &[usize] {
        &self.known
    }

    /// Number of events before each snapshot.
    pub fn snapshots(&self) -> &[u32] {
        &self.snapshots
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The events in the order they happened.
    pub fn events(&self) -> impl Iterator<Item = &OperationEntry> {
        self.events.iter()
    }
}

impl Stretch {
    fn new(facts: &[Fact]) -> Self {
        let mut timeline = HandleTimeline::new(facts);
        let differences = fitted(facts, &mut timeline);
        timeline.index();
        for (number, fact) in facts.iter().enumerate() {
            match &fact.output {
                Output::Difference { .. } => differences.add_opens(number, facts, &mut timeline),
                Output::Some { entries, .. } => {
                    let span = differences.span(number);
                    window::add_entries(fact.step, entries, span, &mut timeline);
                }
                Output::Enabled | Output::Snapshot | Output::All { .. } => {}
            }
        }
        let positions: Vec<&SequencePosition> = timeline.known.keys().collect();
        let is_snapshot = |(_, fact): &(usize, &Fact)| matches!(fact.output, Output::Snapshot);
        let (spans, mut uncertain) = (timeline.spans(), 0);
        let snapshots = facts.iter().enumerate().filter(is_snapshot).map(|(number, fact)| {
            uncertain += u64::from(spans.are_open(differences.allowed(number)));
            let start = (differences.time(number), 0);
            (fact.step, positions.partition_point(|position| **position < start))
        });
        let snapshots = snapshots.collect();
        let mut events: Vec<(usize, OperationEntry)> = timeline.known.into_values().collect();
        // When an event is known, all events before it have happened.
        let mut first = events.last().map_or(0, |(step, _)| *step);
        for (step, _) in events.iter_mut().rev() {
            first = first.min(*step);
            *step = first;
        }
        Self { events, snapshots, uncertain }
    }
}

/// Finds the positions of all differences. If full listings have no events in common, the differences determine how
/// many events are missing in between.
fn fitted(facts: &[Fact], timeline: &mut HandleTimeline) -> Differences {
    let mut differences = Differences::new(facts, timeline);
    let mut trials = TRIALS / (timeline.known.len() + facts.len()).max(1);
    for gap in 0..timeline.gaps() {
        for by in 1..=WIDEST {
            if differences.contradictions == 0 || trials == 0 {
                break;
            }
            trials -= 1;
            timeline.widen(gap, by);
            let wider = Differences::new(facts, timeline);
            if wider.contradictions < differences.contradictions {
                differences = wider;
                break;
            }
            timeline.widen(gap, -by);
        }
    }
    differences
}

/// Groups the facts in the steps by process. Steps without entries belong to the process of the next listing, or else
/// of the last one.
fn facts_of_processes(mut steps: Vec<CommandStep>) -> BTreeMap<u32, Vec<Fact>> {
    let processes: BTreeSet<u32> =
        steps.iter().flat_map(|step| step.output.entries()).map(|entry| entry.process).collect();
    if processes.len() > 1 {
        // The text does not tell the number of traced entries of each process.
        for step in &mut steps {
            if let Output::Some { traced, .. } = &mut step.output {
                *traced = None;
            }
        }
    }
    let mut next: Vec<Option<u32>> =
        steps.iter().map(|step| step.output.entries().next().map(|entry| entry.process)).collect();
    let mut known = next.iter().flatten().next_back().copied().or(Some(0));
    for process in next.iter_mut().rev() {
        known = process.or(known);
        *process = known;
    }
    let mut facts: BTreeMap<u32, Vec<Fact>> = BTreeMap::new();
    // The step of each process's last fact, and how often the program may have run before it.
    let (mut runs, mut runs_until) = (0_usize, BTreeMap::<u32, usize>::new());
    for ((number, step), process) in steps.into_iter().enumerate().zip(next) {
        runs += usize::from(step.may_have_run);
        let mut add = |process: u32, output: Output| {
            let may_have_run = runs_until.insert(process, runs) != Some(runs);
            facts.entry(process).or_default().push(Fact { step: number, may_have_run, output });
        };
        let mut processes: Vec<u32> = step.output.entries().map(|entry| entry.process).collect();
        processes.sort_unstable();
        processes.dedup();
        match processes.as_slice() {
            [] | [_] => add(process.unwrap_or_default(), step.output),
            several => {
                several.iter().for_each(|&process| add(process, step.output.of_process(process)));
            }
        }
    }
    facts
}

/// Splits the facts at each start of tracing.
fn stretches(facts: Vec<Fact>) -> Vec<Vec<Fact>> {
    let mut stretches: Vec<Vec<Fact>> = Vec::new();
    for fact in facts {
        match stretches.last_mut().filter(|_| !matches!(fact.output, Output::Enabled)) {
            Some(stretch) => stretch.push(fact),
            None => stretches.push(vec![fact]),
        }
    }
    stretches
}
