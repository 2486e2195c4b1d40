//! What leaks.

use std::cmp::Reverse;

use handlescope_model::{ProcessIdx, StackIdx};

use super::causes::Diagnosis;
pub(super) use crate::query::amounts::{Bytes, Counts};
use crate::query::growth::{Growth, Verdict};
use crate::query::requests::Requests;
use crate::values::SuspectId;

/// The kind of suspects that are heaps themselves, not blocks in them.
pub const PRIVATE_HEAP: &str = "private heap";

/// A group of handles, or of allocations of one kind, that leaks.
#[derive(Debug, Clone)]
pub struct Suspect {
    /// The id by which it is chosen again, the same in every run.
    pub id: SuspectId,
    /// Its place among the suspects of its trace, from 1.
    pub rank: usize,
    /// The owner, `name.exe(pid)`; of several, the program.
    pub process: String,
    /// Process id of the owner, if it is known and there is one.
    pub pid: Option<u32>,
    /// When the owner started, nanoseconds since session start; `None` when it was there before the trace, and of
    /// several.
    pub process_start_ns: Option<i64>,
    /// What each owner lost, the one that lost most first; owners that lost nothing are left out.
    pub processes: Vec<SuspectProcess>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: String,
    /// What allocated it, where that is more specific than the kind: `CreatePen`, the type of a GDI handle.
    pub allocator: Option<String>,
    /// The stack that opened or allocated them: one of those that are equal.
    pub create_stack: Option<StackIdx>,
    pub counts: Counts,
    /// The bytes of allocations; `None` for handles.
    pub bytes: Option<Bytes>,
    pub growth: Growth,
    /// What became of those that are not lost, as in "closed".
    pub(super) ended: String,
    /// Why, as far as the events say.
    pub diagnoses: Vec<Diagnosis>,
    /// The representative frame of the create stack, as stack filters see it.
    pub function: Option<String>,
    /// A filter on processes that keeps its own and no others of their program, where only some are asked for.
    pub filter: Option<String>,
    /// What it was ranked by: handles or, of allocations, bytes that are kept, weighted.
    pub score: f64,
}

/// A process that lost something of a suspect.
#[derive(Debug, Clone)]
pub struct SuspectProcess {
    /// `name.exe(pid)`.
    pub process: String,
    /// Its row in the processes, if it is known.
    pub row: Option<ProcessIdx>,
    /// Its process id, if it is known.
    pub pid: Option<u32>,
    /// When it started, nanoseconds since session start; `None` when it was there before the trace.
    pub start_ns: Option<i64>,
    pub counts: Counts,
}

impl SuspectProcess {
    /// Those that lost something, the one that lost most first.
    pub(super) fn ranked(processes: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut losing: Vec<Self> =
            processes.into_iter().filter(|own| own.counts.lost() > 0).collect();
        losing.sort_by_key(|process| Reverse(process.counts.lost()));
        losing
    }
}

impl Suspect {
    /// The program that its owner runs.
    pub fn program(&self) -> &str {
        let pid = self.pid.map(|pid| format!("({pid})"));
        let name = pid.and_then(|pid| self.process.strip_suffix(&pid));
        name.unwrap_or(&self.process)
    }

    /// Its rate if it loses steadily, per minute.
    pub fn rate_per_minute(&self) -> Option<f64> {
        let rate = self.growth.evidence.rate.filter(|_| self.growth.verdict == Verdict::Steady);
        rate.map(|rate| rate.per_minute)
    }

    /// How many it loses for each request that its processes begin, if it loses steadily and these are known.
    pub fn rate_per_request(&self) -> Option<f64> {
        let rate = self.growth.evidence.per_request();
        rate.filter(|_| self.growth.verdict == Verdict::Steady)
    }

    /// Counts the requests that its processes began in the time in which it loses.
    pub(super) fn count_requests(&mut self, requests: &Requests) {
        let evidence = &mut self.growth.evidence;
        let Some((first, last)) = evidence.first_ns.zip(evidence.last_ns) else { return };
        let rows = self.processes.iter().filter_map(|process| process.row);
        evidence.requests = rows.map(|row| requests.between(row, first, last)).sum();
    }

    /// What its verdict rests on, as a sentence without a full stop.
    pub fn evidence(&self) -> String {
        let all = match self.bytes {
            // Those too that have nothing which was not allocated before: they have no lives.
            Some(_) => self.counts.opened,
            None => self.growth.evidence.opened as u64,
        };
        self.growth.sentence(&self.ended, all)
    }
}
