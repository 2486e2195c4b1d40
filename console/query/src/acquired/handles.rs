//! The handles and views of a trace, in groups of one process, type and create stack.

use std::borrow::Cow;

use handlescope_model::{AcquisitionIdx, EventTable, ProcessIdx, StackIdx};

use super::between::{Between, Span};
use super::group::{Acquired, Group, Share};
use super::lifetimes::Ends;
use crate::amounts::{Amount, Bytes, Counts};
use crate::context::FileContext;
use crate::frame_names::Frames;
use crate::groups::{Groups, NodeIdx, TimedGroups};
use crate::growth::{ProcessLifetimes, Window};
use crate::tables::{ProcessInfo, ProcessList};
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::cancel::{Cancel, Cancelled, Poll};
use handlescope_session::filter::ProcessFilter;

/// The process of a dump.
const DUMPED: ProcessIdx = ProcessIdx(0);

/// The handles and views of a trace that was asked for groups of create stacks with times.
pub struct Handles<'f> {
    pub file: &'f FileContext<'f>,
    pub groups: &'f Groups,
    pub timed: &'f TimedGroups,
    /// The owners that are asked for.
    process: Option<&'f ProcessFilter>,
    /// Whether processes go by the names of their executables.
    is_plain: bool,
    /// Whether what is open at the end counts, whatever opened it.
    is_of_end: bool,
}

impl<'f> Handles<'f> {
    /// Handles of the owners that a filter lets pass; `None` where the groups have no times.
    pub fn of(
        file: &'f FileContext<'f>,
        groups: Option<&'f Groups>,
        process: Option<&'f ProcessFilter>,
        is_plain: bool,
    ) -> Option<Self> {
        let groups = groups?;
        let timed = groups.timed.as_ref()?;
        Some(Self { file, groups, timed, process, is_plain, is_of_end: false })
    }

    /// Counts what is open at the end, whatever opened it: a dump has the handles of one process at one moment.
    pub fn at_end(self) -> Self {
        Self { is_of_end: true, ..self }
    }

    /// The handles of some groups, one group after the other.
    pub fn handles(&self, groups: &[Group<'_>]) -> Cow<'f, [AcquisitionIdx]> {
        let nodes: Vec<NodeIdx> = groups.iter().map(|group| NodeIdx::of(group.index)).collect();
        self.timed.handles_of(&self.groups.tree, &nodes)
    }

    /// The handles of each process of a group, in the order of its [shares](Acquired::shares).
    pub fn by_owner(&self, group: &Group<'_>) -> Vec<(Option<ProcessIdx>, Vec<AcquisitionIdx>)> {
        self.timed.by_owner(&self.of_group(group))
    }

    fn table(&self) -> &EventTable {
        &self.file.objects.table
    }

    fn of_group(&self, group: &Group<'_>) -> Cow<'f, [AcquisitionIdx]> {
        self.timed.handles(&self.groups.tree, NodeIdx::of(group.index))
    }

    /// The owner of a group, of which these handles were opened.
    fn owner(&self, handles: &[AcquisitionIdx]) -> Option<ProcessIdx> {
        if self.is_of_end { Some(DUMPED) } else { self.timed.owner(handles) }
    }

    /// Number of handles of a group that are open at the end.
    fn open_at_end(&self, node: NodeIdx) -> u64 {
        self.groups.tree.stats(node).open_at_end.into()
    }

    fn process(&self, row: Option<ProcessIdx>) -> &'f ProcessInfo {
        self.file.processes.known_or_invalid(row)
    }

    /// Share of the process of a dump: what it has open of a group.
    fn share_at_end(&self, group: &Group<'_>) -> Share {
        let (handles, open) = (self.of_group(group), self.open_at_end(NodeIdx::of(group.index)));
        let (lifetimes, window) = (self.timed.program_times(&handles), self.extent());
        Share {
            row: Some(DUMPED),
            pid: Some(self.process(Some(DUMPED)).pid),
            counts: Counts { leaked: open, closed_at_exit: 0, opened: handles.len() as u64 },
            bytes: Bytes::default(),
            ends: Ends::default(),
            leaked: Amount { count: open, bytes: 0 },
            lifetimes: ProcessLifetimes { lifetimes, window },
            sizes: Vec::new(),
        }
    }
}

impl Acquired for Handles<'_> {
    const LABEL: &'static str = "handles";
    const HAS_BYTES: bool = false;

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.groups.tree.leaves().filter_map(|node| {
            let handles = self.timed.handles(&self.groups.tree, node);
            let process = self.process(self.owner(&handles));
            let is_empty = match self.is_of_end {
                true => self.open_at_end(node) == 0,
                false => handles.is_empty(),
            };
            if is_empty || !self.matches_process(process) {
                return None;
            }
            let (type_name, create_stack) = self.groups.type_and_stack(node);
            let name_pattern = self.groups.name_pattern(node).filter(|_| create_stack.is_none());
            Some(Group {
                index: node.row(),
                process: Cow::Borrowed(process),
                type_name,
                allocator: name_pattern,
                is_named_by_allocator: false,
                has_lasting_name: true,
                has_bytes: false,
                create_stack,
                leaks: self.is_of_end || self.groups.tree.stats(node).unreleased() > 0,
            })
        })
    }

    fn shares(&self, group: &Group<'_>) -> Vec<Share> {
        if self.is_of_end {
            return vec![self.share_at_end(group)];
        }
        let by_owner = self.timed.by_owner(&self.of_group(group)).into_iter();
        let shares = by_owner.map(|(row, handles)| {
            let process = self.process(row);
            let window = self.window_of(process).unwrap_or(self.extent());
            let count = |has_property: &dyn Fn(AcquisitionIdx) -> bool| {
                handles.iter().filter(|handle| has_property(**handle)).count() as u64
            };
            let counts = Counts {
                leaked: count(&|handle| self.timed.is_leaked(handle)),
                closed_at_exit: count(&|handle| self.timed.is_closed_at_exit(handle)),
                opened: handles.len() as u64,
            };
            let leaked = counts.unreleased().saturating_sub(self.timed.unreleased_before(&handles));
            Share {
                row,
                pid: row.map(|_| process.pid),
                counts,
                bytes: Bytes::default(),
                ends: Ends::default(),
                leaked: Amount { count: leaked, bytes: 0 },
                lifetimes: ProcessLifetimes {
                    lifetimes: self.timed.program_times(&handles),
                    window,
                },
                sizes: Vec::new(),
            }
        });
        shares.collect()
    }

    fn owners(&self, group: &Group<'_>) -> Vec<(Option<ProcessIdx>, Option<u32>)> {
        let owners = self.timed.owners(&self.of_group(group));
        owners.into_iter().map(|row| (row, row.map(|_| self.process(row).pid))).collect()
    }

    fn leaks_in_time(&self, group: &Group<'_>) -> bool {
        group.leaks
            && (self.is_of_end || self.groups.unreleased_in_time(NodeIdx::of(group.index)) > 0)
    }

    fn between(&self, group: &Group<'_>, span: Span) -> Result<Between, Cancelled> {
        let mut poll = Poll::new(self.file.cancel);
        let mut between = Between::default();
        for handle in self.of_group(group).iter() {
            poll.round()?;
            let Some(lifetime) = self.timed.open_time(*handle) else { continue };
            let amount = Amount { count: 1, bytes: 0 };
            let never_ends =
                lifetime.closed_ns.is_none() && self.table().ending(handle.row()).is_none();
            if between.add(span, lifetime, never_ends, amount) {
                between.sample(u64::from(self.timed.object(*handle).0) + 1);
            }
        }
        Ok(between)
    }

    fn rows(&self, groups: &[Group<'_>]) -> Vec<usize> {
        self.handles(groups).iter().map(|handle| handle.row()).collect()
    }

    fn function(&self, stack: StackIdx) -> Option<String> {
        self.groups.function(self.file, Some(stack))
    }

    fn shown_name(&self, group: &Group<'_>) -> Option<String> {
        Some(group.process.shown_name(self.is_plain).to_owned())
    }

    fn matches_process(&self, process: &ProcessInfo) -> bool {
        self.process.is_none_or(|filter| process.matches(filter, self.is_plain))
    }

    fn is_of_one_moment(&self) -> bool {
        self.is_of_end
    }

    fn frames(&self) -> Option<&Frames<'_>> {
        self.file.frames.as_ref()
    }

    fn stacks(&self) -> Option<&TrimmedStacks> {
        self.groups.stacks.as_ref()
    }

    fn processes(&self) -> &ProcessList {
        &self.file.processes
    }

    fn window(&self) -> Option<Window> {
        self.groups.window
    }

    fn extent(&self) -> Window {
        self.groups.extent
    }

    fn cancel(&self) -> &Cancel {
        self.file.cancel
    }
}
