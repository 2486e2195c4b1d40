//! Everything that the processes of a trace acquired: suspects, groups with their acquisitions, open handles over time,
//! and stacks with identities that other traces share. Datasets of many traces are made from it.

mod acquisitions;
mod groups;
mod open_over_time;
mod stacks;

use std::collections::BTreeSet;

use handlescope_model::tables::TraceInfos;
use handlescope_model::{ProcessIdx, StackIdx, Table};

pub use self::acquisitions::{Acquisition, AcquisitionColumns};
pub use self::groups::InventoryGroup;
pub use self::open_over_time::{OpenAt, OpenOverTime};
pub use self::stacks::{StackIdentity, StackOfProcess, build_id};

use self::stacks::identities;
use super::acquired::{AcquisitionGroups, KeptSites};
use super::acquisition_table::{AcquisitionTable, NeededColumns};
use super::allocations::AllocationSource;
use super::context::Source;
use super::criteria::{AcquisitionCriteria, WhyCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::frame_view::frame_lines;
use super::growth::TimeWindow;
use super::stacks::StackSet;
use super::tables::ProcessInfo;
use super::totals::Totals;
use super::why::{Suspect, WhyAnswer, why};
use handlescope_session::cancel::Cancel;

/// Everything that the processes of a trace acquired.
pub struct Inventory<'a> {
    why: WhyAnswer<'a>,
    /// Groups of one process each, first handles and views, then allocations; sorted by process, type and stack.
    pub groups: Vec<InventoryGroup>,
    /// The stacks of groups and of the ends of their acquisitions, ascending.
    stacks: BTreeSet<StackOfProcess>,
    /// Stacks with unknown code, which are different stacks in each process.
    of_one_process: StackSet,
    /// Identity of the trace, for the stacks of its processes.
    trace_id: String,
    /// Columns with the details of acquisitions.
    pub columns: AcquisitionColumns,
    /// The time range of the trace; `None` without a clock.
    pub window: Option<TimeWindow>,
    /// Number of allocations, each once.
    pub allocations: u64,
    /// Number of allocations that were never freed, or only by process exit.
    pub unfreed: u64,
}

impl<'a> Inventory<'a> {
    /// Takes inventory of a trace. Looks up the frame names of all stacks that acquired or released something.
    ///
    /// # Errors
    /// If the archive is damaged or `cancel` asks to stop.
    pub fn new(
        source: &'a Source<'a>,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        let handles =
            AcquisitionCriteria { plain_process_names: true, ..AcquisitionCriteria::default() };
        let criteria =
            WhyCriteria { handles, all: true, with_every_group: true, ..WhyCriteria::default() };
        // There is one answer for each source.
        let why = why(std::slice::from_ref(source), &criteria, names, cancel)?.swap_remove(0);
        let file = &why.file.file;
        let mut groups = Vec::new();
        let groups_of_handles = why.file.groups.as_ref();
        let handles =
            AcquisitionGroups::from_handles(file, groups_of_handles, &criteria.owners, true, false);
        if let Some(handles) = &handles {
            groups.extend(InventoryGroup::all(handles));
        }
        let table = AcquisitionTable::load(source.trace, NeededColumns::ALLOCATIONS)?;
        let columns = AcquisitionColumns::load(source.trace, &table)?;
        let (mut allocation_count, mut unfreed) = (0, 0);
        let (every, kept) = (AcquisitionCriteria::default(), KeptSites::All);
        if let Some(origin) = AllocationSource::new(file, &table)
            && let Some(allocations) =
                AcquisitionGroups::from_allocations(origin, &every, true, kept)?
        {
            let of_allocations = InventoryGroup::all(&allocations);
            for group in &of_allocations {
                allocation_count += group.counts.opened;
                unfreed += group.counts.unreleased();
            }
            groups.extend(of_allocations);
        }
        let mut stacks: BTreeSet<StackOfProcess> = BTreeSet::new();
        let mut add = |stack: Option<StackIdx>, process| {
            stacks.extend(stack.map(|stack| (stack, process)));
        };
        for group in &groups {
            add(group.stack, group.process);
            let ends = group.members.iter().map(|row| table.ended_stack.get(row.row()));
            ends.for_each(|stack| add(stack, group.process));
        }
        for suspect in &why.suspects {
            let process = suspect.processes.iter().find_map(|process| process.row);
            add(suspect.create_stack, process);
        }
        let mut of_one_process = StackSet::new(source.trace.height(Table::Stacks)?);
        stacks.iter().for_each(|(stack, _)| of_one_process.add(Some(*stack)));
        if let Some(frames) = &file.frames {
            frames.resolve(of_one_process.iter())?;
            let named = frames.named();
            of_one_process =
                of_one_process.par_filter(|stack| named.is_stack_of_one_process(stack));
        }
        // Without the content of the source, the tables identify a trace.
        let content = source.trace.values(TraceInfos::source_content)?;
        let trace_id = content.get(0).map_or_else(|| source.trace.id(), str::to_owned);
        let window = handles.as_ref().and_then(|handles| handles.window);
        groups.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        let mut inventory = Self {
            window,
            groups,
            stacks: BTreeSet::new(),
            of_one_process,
            trace_id,
            columns,
            allocations: allocation_count,
            unfreed,
            why,
        };
        inventory.stacks =
            stacks.into_iter().map(|(stack, process)| inventory.stack_of(stack, process)).collect();
        Ok(inventory)
    }

    /// Returns the suspects of `.why`, worst first.
    pub fn suspects(&self) -> &[Suspect] {
        &self.why.suspects
    }

    /// Returns the totals of handles and views.
    pub fn totals(&self) -> &Totals {
        &self.why.file.totals
    }

    /// Returns the process in a row of the table.
    pub fn process(&self, row: ProcessIdx) -> &ProcessInfo {
        self.why.file.file.processes.get(row)
    }

    /// Returns the time range in which the trace shows a process.
    pub fn observed(&self, process: &ProcessInfo) -> Option<TimeWindow> {
        Some(self.window?.between(process.start_ns, process.end_ns))
    }

    /// Returns the identities of all stacks, ascending by row.
    pub fn stacks(&self) -> Vec<(StackOfProcess, StackIdentity)> {
        let process_id = |row: ProcessIdx| {
            let process = self.process(row);
            format!("{} {} {:?}", self.trace_id, process.pid, process.start_ns)
        };
        let stacks = self.stacks.iter().copied();
        let frames = self.why.file.file.frames.as_ref();
        frames
            .map(|frames| identities(frames, stacks, &self.trace_id, process_id))
            .unwrap_or_default()
    }

    /// Returns the stack of a process in the form used by [`Self::stacks`].
    pub fn stack_of(&self, stack: StackIdx, process: Option<ProcessIdx>) -> StackOfProcess {
        let frames = self.why.file.file.frames.as_ref();
        let owner = frames.and_then(|frames| frames.owner_of_code(process));
        (stack, owner.filter(|_| self.of_one_process.has(stack)))
    }

    /// Returns the frames of a stack, one per line, innermost first.
    pub fn stack_text(&self, stack: StackIdx) -> Option<String> {
        let named = self.why.file.file.frames.as_ref()?.named();
        Some(frame_lines(named.stack(stack)).0)
    }
}
