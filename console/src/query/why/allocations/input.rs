//! The allocations that suspects are found in, and the suspect that some of them are.

use handlescope_model::tables::Allocator;
use handlescope_model::{ResourceIdx, StackIdx, Table};

use super::super::id::Acquired;
use super::super::score;
use super::super::suspect::{Bytes, Counts, Suspect, SuspectProcess};
use crate::query::context::FileContext;
use crate::query::criteria::{ResourceCriteria, WhyCriteria};
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::groups::TrimmedStacks;
use crate::query::growth::{Growth, Life, ProcessLives, Verdict, Window};
use crate::query::info::{recorded, trace_info};
use crate::query::no_match::NoMatch;
use crate::query::programs::Programs;
use crate::query::resources::Sites;
use crate::query::resources::{AllocatorList, Needed, ProgramFrames, ResourceTable, choose};
use crate::query::tables::ProcessInfo;

/// The weight of blocks that only grew, in the score: that of a burst.
const GROWN_WEIGHT: f64 = 0.5;

/// How much there is of a suspect.
pub(super) struct Amounts {
    pub(super) counts: Counts,
    pub(super) bytes: Bytes,
    /// Bytes of blocks that only grew, and how many more they get each minute.
    pub(super) grown: Option<(i64, f64)>,
    /// What became of the others.
    pub(super) ended: String,
}

/// What one process has of a suspect.
pub(super) struct ProcessShare {
    process: SuspectProcess,
    lives: ProcessLives,
}

impl ProcessShare {
    /// The allocations of the process of an allocator.
    pub(super) fn new(
        all: &Allocations<'_>,
        allocator: &Allocator,
        counts: Counts,
        mut lives: Vec<Life>,
    ) -> Self {
        let info = all.process(allocator);
        // Of what was allocated before, a ring has only some, and not all of its frees.
        let from_ns = all.window.start_ns;
        lives.retain(|life| from_ns <= 0 || life.opened_ns >= from_ns);
        let process = SuspectProcess {
            process: info.shown_label(all.is_plain),
            row: allocator.process,
            pid: all.pid(allocator),
            start_ns: info.start_ns,
            counts,
        };
        let window = all.window.between(info.start_ns, info.end_ns);
        Self { process, lives: ProcessLives { lives, window } }
    }
}

/// What suspects among the allocations of a trace are found in.
pub(in crate::query::why) struct Allocations<'a> {
    pub(super) file: &'a FileContext<'a>,
    pub(super) frames: &'a Frames<'a>,
    pub(super) chosen: ResourceCriteria,
    is_plain: bool,
    pub(super) allocators: AllocatorList,
    pub(super) table: ResourceTable,
    program_frames: ProgramFrames,
    pub(super) programs: Programs<'a>,
    /// Suspects are of one process.
    pub(super) by_process: bool,
    /// The time of the trace.
    window: Window,
}

impl<'a> Allocations<'a> {
    /// Loads them; `None` where there are none, none are meant, or no stacks are loaded.
    pub(in crate::query::why) fn load(
        file: &'a FileContext<'a>,
        criteria: &'a WhyCriteria,
    ) -> Result<Option<Self>, QueryError> {
        let (Some(frames), Some(chosen)) = (&file.frames, criteria.allocations()) else {
            return Ok(None);
        };
        let is_plain = criteria.is_plain();
        if file.trace.height(Table::Allocators)? == 0 {
            return Ok(None);
        }
        let needed = Needed { end_time: true, end_stack: true, ..Needed::default() };
        let (allocators, table) =
            (AllocatorList::load(file.trace)?, ResourceTable::load(file.trace, needed)?);
        let last = table.time_ns.values().iter().chain(table.end_time_ns.values()).max();
        let window = recorded(&trace_info(file.trace)?, last.copied().unwrap_or_default());
        Ok(Some(Self {
            file,
            frames,
            is_plain,
            allocators,
            table,
            program_frames: ProgramFrames::new(),
            programs: Programs::of(&file.processes, |process| is_meant(&chosen, process, is_plain)),
            chosen,
            by_process: criteria.by_process,
            window,
        }))
    }

    /// How many allocations there are, in parts.
    pub(in crate::query::why) fn height(&self) -> usize {
        self.table.len()
    }

    fn choose(&self) -> Result<(Vec<ResourceIdx>, Option<NoMatch>), QueryError> {
        choose(self.file, self.frames, (&self.allocators, &self.table), &self.chosen)
    }

    /// Why no allocation is of what is asked for; `None` when there are none.
    pub(in crate::query::why) fn no_match(&self) -> Result<Option<NoMatch>, QueryError> {
        Ok(self.choose()?.1)
    }

    pub(super) fn process(&self, allocator: &Allocator) -> ProcessInfo {
        let processes = &self.file.processes;
        processes.known_or_pid(allocator.process, allocator.pid.unwrap_or_default())
    }

    /// The id of the process of an allocator, if it is known.
    pub(super) fn pid(&self, allocator: &Allocator) -> Option<u32> {
        let known = || self.file.processes.known_or_invalid(allocator.process).known_pid();
        allocator.pid.or_else(known)
    }

    /// By row, whether an allocation passes the filters on times and stacks; `None` without any.
    pub(super) fn chosen_rows(&self) -> Result<Option<Vec<bool>>, QueryError> {
        if !self.chosen.chooses_rows() {
            return Ok(None);
        }
        let mut is_chosen = vec![false; self.table.len()];
        for row in self.choose()?.0 {
            if let Some(is_chosen) = is_chosen.get_mut(row.row()) {
                *is_chosen = true;
            }
        }
        Ok(Some(is_chosen))
    }

    pub(super) fn is_process(&self, process: &ProcessInfo) -> bool {
        is_meant(&self.chosen, process, self.is_plain)
    }

    /// The function of the program in a stack, else its representative frame.
    pub(super) fn function(&self, stack: StackIdx, sites: &Sites) -> String {
        let own = self.program_frames.function(self.frames, stack);
        own.unwrap_or_else(|| sites.stacks.function(self.file, stack))
    }

    /// Allocations of some processes as a suspect, if they are one.
    pub(super) fn as_suspect(
        &self,
        what: &Acquired<'_>,
        stacks: &TrimmedStacks,
        processes: Vec<ProcessShare>,
        Amounts { counts, bytes, grown, ended }: Amounts,
    ) -> Option<Suspect> {
        let (processes, lives): (Vec<_>, Vec<_>) =
            processes.into_iter().map(|share| (share.process, share.lives)).unzip();
        let growth = Growth::of_processes(&lives, self.window);
        // Bytes count where there are any; the score is of as many as the allocations have on average.
        let mean = (bytes.lost as f64 / counts.lost().max(1) as f64).max(1.0);
        let score = score::of(&growth, &lives, 0).map(|score| score * mean);
        // One block that grows leaks as many do.
        let of_grown = grown.map(|(bytes, _)| GROWN_WEIGHT * bytes as f64);
        let score = score.into_iter().chain(of_grown).reduce(f64::max)?;
        let rate = growth.evidence.rate.filter(|_| growth.verdict == Verdict::Steady);
        let per_minute = rate.filter(|_| bytes.lost > 0).map(|rate| rate.per_minute * mean);
        let per_minute = per_minute.or(grown.map(|(_, per_minute)| per_minute));
        let owners = what.owners;
        Some(Suspect {
            id: what.id(self.file, Some(stacks)),
            rank: 0,
            process: owners.name(self.file, &processes, self.is_plain)?,
            pid: owners.pid,
            process_start_ns: owners.sole().and(processes.first()?.start_ns),
            processes: SuspectProcess::ranked(processes),
            type_name: what.what.to_owned(),
            allocator: what.allocator.map(str::to_owned),
            create_stack: what.stack,
            counts,
            bytes: Some(Bytes { per_minute, ..bytes }),
            growth,
            ended,
            diagnoses: Vec::new(),
            function: None,
            filter: owners.filter.clone(),
            score,
        })
    }
}

/// Whether allocations of a process are asked for.
fn is_meant(chosen: &ResourceCriteria, process: &ProcessInfo, is_plain: bool) -> bool {
    chosen.process.as_ref().is_none_or(|filter| process.is_meant_by(filter, is_plain))
}
