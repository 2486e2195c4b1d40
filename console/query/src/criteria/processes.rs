//! Criteria that select processes.

use crate::criterion::{Criteria, Criterion, GivenCriterion, ValueSyntax, criteria, is_given};
use crate::tables::ProcessInfo;
use handlescope_session::filter::{Filter, ProcessFilter};

/// Criteria that select processes; a process must pass all that are given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessCriteria {
    /// `-ProcessName`: name and pid.
    pub name: Option<ProcessFilter>,
    /// `-CmdLine`: the command line.
    pub command_line: Option<Filter>,
    /// `-NewProcess`: whether it started or ended in the trace.
    pub new_process: Option<NewProcess>,
}

criteria! {
    ProcessCriteria(self) {
        Process => name: ProcessFilter;
        CmdLine => command_line: Filter as Line;
        NewProcess => new_process;
    }
}

impl ProcessCriteria {
    /// Whether every process is selected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns each given criterion by itself.
    pub fn parts(&self) -> impl Iterator<Item = (Criterion, Self)> {
        let given = self.given().into_iter();
        given.map(|given| (given.criterion, self.only(&[given.criterion])))
    }

    /// Returns only the criteria up to one of them.
    pub fn up_to(&self, last: Criterion) -> Self {
        let criteria = [Criterion::Process, Criterion::CmdLine, Criterion::NewProcess];
        let kept: Vec<Criterion> =
            criteria.into_iter().take_while(|criterion| *criterion != last).chain([last]).collect();
        self.only(&kept)
    }

    /// Whether a process matches; with `is_plain`, by executable name alone.
    pub fn matches(&self, process: &ProcessInfo, is_plain: bool) -> bool {
        self.name.as_ref().is_none_or(|filter| process.matches(filter, is_plain))
            && self.command_line.as_ref().is_none_or(|f| f.matches(&process.command_line))
            && self.new_process.is_none_or(|new| new.matches(process))
    }
}

/// Criteria of `.dump Process`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessListCriteria {
    pub processes: ProcessCriteria,
    /// `-Parent`: only children of these processes.
    pub parent: Option<ProcessFilter>,
    /// `-Zombie`: lists processes that have ended but are still in memory, instead of those of the trace.
    pub zombies: bool,
    /// The order of the processes of a trace.
    pub order: ProcessOrder,
}

criteria! {
    ProcessListCriteria(self) {
        Process => processes.name: ProcessFilter;
        Parent => parent: ProcessFilter;
        CmdLine => processes.command_line: Filter as Line;
        NewProcess => processes.new_process;
    }
}

/// `-SortBy` of `.dump Process`, if it names no column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessOrder {
    /// Pid, then start.
    #[default]
    Pid,
    /// Start; processes running before the trace come first.
    Start,
    /// End; processes that outlived the trace come first.
    End,
    /// Children after their parents.
    Tree,
}

/// `-NewProcess`: processes by their lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewProcess {
    /// `-2`: ended, but did not start in the trace.
    EndedOnly,
    /// `-1`: ended in the trace.
    Ended,
    /// `0`: neither started nor ended in the trace.
    Permanent,
    /// `1`: started in the trace.
    Started,
    /// `2`: started, but did not end in the trace.
    StartedOnly,
}

impl NewProcess {
    /// Whether a process matches.
    pub fn matches(self, process: &ProcessInfo) -> bool {
        let (has_started, has_ended) = (process.start_ns.is_some(), process.end_ns.is_some());
        match self {
            NewProcess::EndedOnly => has_ended && !has_started,
            NewProcess::Ended => has_ended,
            NewProcess::Permanent => !has_started && !has_ended,
            NewProcess::Started => has_started,
            NewProcess::StartedOnly => has_started && !has_ended,
        }
    }
}
