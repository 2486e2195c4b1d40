//! What the extraction says about part of a trace, compared with the truth.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::rules::OPENING_HANDLES;
use handlescope_model::tables::{Events, Processes, TraceInfos};
use handlescope_model::{Cancel, EventKind, TableRows, Trace};
use handlescope_sources::extract;

use super::programs::{HandleFate, TraceWithTruth};

/// A handle according to the extraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    program: String,
    is_leaked: bool,
    at_exit: bool,
    /// Time of the close that ended it.
    closed: Option<i64>,
    unseen: Option<u32>,
}

pub struct LossAnswer {
    /// By the time each was opened.
    opened: BTreeMap<i64, Said>,
    dropped: u64,
    /// Times of all closes in the file.
    closes: Vec<i64>,
}

/// Counts of handles in incomplete traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossTally {
    pub cases: u64,
    /// Leaks with their open in the file, and how many of them are reported.
    pub leaks: u64,
    pub reported: u64,
    /// Leaks that are reported as closed.
    pub hidden: u64,
    /// Handles closed only by process exit, with that close in the file, and how many of them are reported as such.
    pub exits: u64,
    pub exits_reported: u64,
    /// Handles closed only by process exit that are reported as closed by their program.
    pub exits_hidden: u64,
    /// Closes by programs that are reported as closes by process exit.
    pub false_exits: u64,
    /// Handles that their program closed in a missing part, but which are reported as leaked.
    pub unproven: u64,
    /// Handles that their program closed in a missing part, and which are reported as closed.
    pub unseen: u64,
    /// Handles attributed to another program with the same pid.
    pub strangers: u64,
    /// Opens that are in the file but in no answer.
    pub dropped: u64,
}

impl AddAssign for LossTally {
    fn add_assign(&mut self, more: Self) {
        let add = |to: &mut u64, of: u64| *to += of;
        add(&mut self.cases, more.cases);
        add(&mut self.leaks, more.leaks);
        add(&mut self.reported, more.reported);
        add(&mut self.hidden, more.hidden);
        add(&mut self.exits, more.exits);
        add(&mut self.exits_reported, more.exits_reported);
        add(&mut self.exits_hidden, more.exits_hidden);
        add(&mut self.false_exits, more.false_exits);
        add(&mut self.unproven, more.unproven);
        add(&mut self.unseen, more.unseen);
        add(&mut self.strangers, more.strangers);
        add(&mut self.dropped, more.dropped);
    }
}

impl LossAnswer {
    pub fn new(etl: &[u8]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (input, output) = (home.path().join("t.etl"), home.path().join("t.json7z"));
        std::fs::write(&input, etl).unwrap();
        extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default())
            .unwrap();
        let trace = Trace::open(&output).unwrap();
        let names: Vec<String> =
            Processes::read(&trace).unwrap().rows().map(|process| process.name).collect();
        let times = trace.values(Events::time_ns).unwrap();
        let (mut opened, mut closes) = (BTreeMap::new(), Vec::new());
        for event in Events::read(&trace).unwrap().rows() {
            let kind = EventKind::from_code(event.kind).unwrap();
            if kind == EventKind::HandleClose {
                closes.push(event.time_ns);
            }
            if !OPENING_HANDLES.contains(kind) {
                continue;
            }
            let said = Said {
                program: names[event.process.row()].clone(),
                is_leaked: event.leaked,
                at_exit: event.closed_at_exit,
                closed: event.closing_event.and_then(|close| times.get(close.row())),
                unseen: event.closed_unseen,
            };
            opened.insert(event.time_ns, said);
        }
        let dropped = trace.values(TraceInfos::attributed_dropped).unwrap().get(0).unwrap();
        closes.sort_unstable();
        Self { opened, closes, dropped }
    }

    /// Compares with the truth. `what` describes the case; contradictions are added to `wrong`.
    pub fn tally(
        &self,
        programs: &TraceWithTruth,
        wrong: &mut Vec<String>,
        what: &str,
    ) -> LossTally {
        let mut tally = LossTally { cases: 1, dropped: self.dropped, ..LossTally::default() };
        for (ns, said) in &self.opened {
            let truth = &programs.handles[ns];
            let mut count = |is_wrong: bool, counter: &mut u64| {
                if is_wrong {
                    *counter += 1;
                    wrong.push(format!("{what}: opened at {ns}: {said:?}, right {truth:?}"));
                }
            };
            count(!said.program.is_empty() && said.program != truth.program, &mut tally.strangers);
            let has_close = |closed: &i64| self.closes.binary_search(closed).is_ok();
            match truth.fate {
                HandleFate::Leaked => {
                    tally.leaks += 1;
                    tally.reported += u64::from(said.is_leaked);
                    count(!said.is_leaked, &mut tally.hidden);
                }
                HandleFate::AtExit(closed) => {
                    let is_there = has_close(&closed);
                    tally.exits += u64::from(is_there);
                    tally.exits_reported += u64::from(is_there && said.at_exit);
                    count(!said.is_leaked && !said.at_exit, &mut tally.exits_hidden);
                }
                HandleFate::Closed(closed) => {
                    // If its close and the next open of the value are missing, the next close looks like its own.
                    count(said.at_exit && said.closed == Some(closed), &mut tally.false_exits);
                    if !has_close(&closed) {
                        tally.unproven += u64::from(said.is_leaked);
                        tally.unseen += u64::from(said.unseen.is_some());
                    }
                }
            }
        }
        tally
    }
}
