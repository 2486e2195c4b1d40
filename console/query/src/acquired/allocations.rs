//! The allocations of a trace, in groups of one process, kind and stack that allocated, and heaps that stay.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use handlescope_model::rules::{has_bytes, has_lasting_names, is_named_by_allocator};
use handlescope_model::tables::{Allocator, ResourceEnd, ResourceKind};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ProcessIdx, StackIdx};
use hashbrown::HashSet;

use super::between::{Between, Span};
use super::group::{Acquired, Group, PRIVATE_HEAP, Share};
use super::heaps::CreatedHeaps;
use super::lifetimes::{Ends, SiteLifetimes};
use super::sites::{Kept, Site, Sites};
use crate::allocations::{AllocatorList, Origin, ResourceTable, choose};
use crate::amounts::{Amount, Bytes};
use crate::criteria::ResourceCriteria;
use crate::criteria::kind_name;
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::growth::{Lifetime, ProcessLifetimes, Window};
use crate::info::{recorded, trace_info};
use crate::no_match::NoMatch;
use crate::tables::{ProcessInfo, ProcessList};
use crate::trimmed_stacks::TrimmedStacks;
use crate::unnamed_methods;
use handlescope_session::cancel::{Cancel, Cancelled, Poll};
use handlescope_session::trace::Caveat;

/// The allocations of a trace.
pub struct Allocations<'a> {
    pub origin: Origin<'a>,
    criteria: ResourceCriteria,
    /// Whether processes go by the names of their executables.
    is_plain: bool,
    pub allocators: Arc<AllocatorList>,
    pub table: Arc<ResourceTable>,
    sites: Sites,
    /// Heaps that stay; none where allocations are chosen by more than their process, as heaps are not allocated by the
    /// stacks and at the times that are asked for.
    heaps: Vec<CreatedHeaps>,
    window: Option<Window>,
}

impl<'a> Allocations<'a> {
    /// Groups the allocations that the criteria choose, whose columns were read; `None` where the trace has none.
    ///
    /// # Errors
    /// When the archive is damaged, or the query is cancelled.
    pub fn of(
        origin: Origin<'a>,
        allocators: Arc<AllocatorList>,
        table: Arc<ResourceTable>,
        criteria: ResourceCriteria,
        is_plain: bool,
        kept: Kept,
    ) -> Result<Option<Self>, QueryError> {
        if allocators.rows().is_empty() {
            return Ok(None);
        }
        let Origin { trace, frames, .. } = origin;
        let rows = selected_rows(origin, &allocators, &table, &criteria)?;
        let is_requested: Vec<bool> = allocators
            .rows()
            .iter()
            .map(|allocator| {
                let kind = criteria.kind.as_ref();
                kind.is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
                    && matches_process(&criteria, &process(origin.processes, allocator), is_plain)
            })
            .collect();
        let is_set = |flags: &[bool], index: usize| flags.get(index).copied().unwrap_or_default();
        let is_selected = |row: &usize| {
            let allocator = table.allocator.get(*row);
            allocator.is_some_and(|allocator| is_set(&is_requested, allocator.row()))
                && rows.as_deref().is_none_or(|rows| is_set(rows, *row))
        };
        let sites = Sites::of(&table, &allocators, is_selected, kept, frames)?;
        let heaps = match kept {
            Kept::Leaking if rows.is_none() => {
                let processes = origin.processes;
                CreatedHeaps::leaking(&table, &allocators, &is_requested, &sites.stacks, processes)
            }
            _ => Vec::new(),
        };
        let info = trace_info(trace)?;
        let extent = recorded(&info, table.last_ns().unwrap_or_default());
        let window = info.has_clock().then_some(extent);
        Ok(Some(Self { origin, criteria, is_plain, allocators, table, sites, heaps, window }))
    }

    /// Number of chosen allocations, in parts.
    pub fn selected_count(&self) -> usize {
        self.sites.selected_count
    }

    /// Caveat about processes of .NET whose methods have no names.
    pub fn methods_unnamed(&self) -> Result<Option<Caveat>, QueryError> {
        let Origin { trace, frames, processes, .. } = self.origin;
        let stacks = || Ok(self.table.stacks_of_processes(&self.allocators));
        Ok(unnamed_methods::caveat(trace, frames, processes, stacks)?)
    }

    /// Reason why no allocation matches; `None` when the trace has none, or some match.
    pub fn no_match(&self) -> Result<Option<NoMatch>, QueryError> {
        Ok(choose(self.origin, &self.allocators, &self.table, &self.criteria)?.1)
    }

    /// The allocations of some groups, in parts.
    pub fn resources(&self, groups: &[Group<'_>]) -> Vec<AcquisitionIdx> {
        let sites = groups.iter().filter_map(|group| self.site(group));
        sites.flat_map(|site| self.sites.rows(site)).copied().collect()
    }

    /// Number of allocations of some groups that nothing, or only process exit, freed; one that ended in parts counts once.
    pub fn unreleased_count(&self, groups: &[Group<'_>]) -> u64 {
        let rows = self.resources(groups).into_iter().filter(|row| self.table.is_unreleased(*row));
        let whole: HashSet<AcquisitionIdx> =
            rows.map(|row| self.table.first_part(row).unwrap_or(row)).collect();
        whole.len() as u64
    }

    fn pid(&self, allocator: &Allocator) -> Option<u32> {
        let process = self.origin.processes.known_or_invalid(allocator.process);
        allocator.pid.or_else(|| process.known_pid())
    }

    fn site(&self, group: &Group<'_>) -> Option<&Site> {
        self.sites.sites.get(group.index)
    }

    fn heaps(&self, group: &Group<'_>) -> Option<&CreatedHeaps> {
        self.heaps.get(group.index.checked_sub(self.sites.sites.len())?)
    }

    /// The first allocator of a group.
    fn allocator(&self, group: &Group<'_>) -> Option<&Allocator> {
        let allocator = self.site(group).map(|site| site.allocator);
        self.allocators.get(allocator.or_else(|| Some(self.heaps(group)?.first))?)
    }

    /// Allocations of the time of which the trace has all events, if it is a ring.
    fn in_time<'r>(&self, rows: &'r [AcquisitionIdx]) -> Cow<'r, [AcquisitionIdx]> {
        let from_ns = self.extent().start_ns;
        if from_ns <= 0 {
            return Cow::Borrowed(rows);
        }
        let opened_ns = |row: &AcquisitionIdx| self.table.time_ns.get(row.row());
        rows.iter().copied().filter(|row| opened_ns(row).is_some_and(|ns| ns >= from_ns)).collect()
    }

    fn share_of_site(&self, site: &Site, window: Window, share: Share) -> Option<Share> {
        let rows = self.sites.rows(site);
        let SiteLifetimes { counts, bytes, ends, lifetimes, sizes } =
            SiteLifetimes::of(&self.table, rows)?;
        let leaked = Amount { count: counts.unreleased(), bytes: bytes.unreleased };
        let share = Share { counts, bytes, ends, ..share };
        let (leaked, lifetimes, sizes) = match self.in_time(rows) {
            Cow::Borrowed(_) => (leaked, lifetimes, sizes),
            Cow::Owned(rows) => {
                let in_time = SiteLifetimes::of(&self.table, &rows)?;
                (in_time.leaked(), in_time.lifetimes, in_time.sizes)
            }
        };
        Some(Share { leaked, lifetimes: ProcessLifetimes { lifetimes, window }, sizes, ..share })
    }

    fn share_of_heaps(&self, heaps: &CreatedHeaps, window: Window, share: Share) -> Share {
        let from_ns = self.extent().start_ns;
        let mut lifetimes = heaps.lifetimes.clone();
        lifetimes.retain(|lifetime| from_ns <= 0 || lifetime.opened_ns >= from_ns);
        let bytes =
            Bytes { unreleased: heaps.unreleased, allocated: heaps.unreleased, per_minute: None };
        let lifetimes = ProcessLifetimes { lifetimes, window };
        Share { counts: heaps.counts, bytes, lifetimes, ..share }
    }
}

impl Acquired for Allocations<'_> {
    const LABEL: &'static str = "allocations";
    const HAS_BYTES: bool = true;

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let sites = self.sites.sites.iter().enumerate().filter_map(|(index, site)| {
            let allocator = self.allocators.get(site.allocator)?;
            let kind = ResourceKind::from_code(site.kind);
            Some(Group {
                index,
                process: process(self.origin.processes, allocator),
                type_name: kind_name(site.kind),
                allocator: Some(allocator.name.as_str()),
                is_named_by_allocator: kind.is_some_and(is_named_by_allocator),
                has_lasting_name: kind.is_none_or(has_lasting_names),
                has_bytes: kind.is_some_and(has_bytes),
                create_stack: site.stack,
                leaks: site.leaks,
            })
        });
        let heaps = (self.sites.sites.len()..).zip(&self.heaps).filter_map(|(index, heaps)| {
            Some(Group {
                index,
                process: process(self.origin.processes, self.allocators.get(heaps.first)?),
                type_name: PRIVATE_HEAP,
                allocator: None,
                is_named_by_allocator: false,
                has_lasting_name: false,
                has_bytes: true,
                create_stack: heaps.stack,
                leaks: true,
            })
        });
        sites.chain(heaps)
    }

    fn shares(&self, group: &Group<'_>) -> Vec<Share> {
        let Some(allocator) = self.allocator(group) else { return Vec::new() };
        let window = self.window_of(&group.process).unwrap_or(self.extent());
        let share = Share {
            row: allocator.process,
            pid: self.pid(allocator),
            counts: Default::default(),
            bytes: Bytes::default(),
            ends: Ends::default(),
            leaked: Amount::default(),
            lifetimes: ProcessLifetimes { lifetimes: Vec::new(), window },
            sizes: Vec::new(),
        };
        let share = match (self.site(group), self.heaps(group)) {
            (Some(site), _) => self.share_of_site(site, window, share),
            (None, Some(heaps)) => Some(self.share_of_heaps(heaps, window, share)),
            (None, None) => None,
        };
        share.into_iter().collect()
    }

    fn owners(&self, group: &Group<'_>) -> Vec<(Option<ProcessIdx>, Option<u32>)> {
        let allocator = self.allocator(group).into_iter();
        allocator.map(|allocator| (allocator.process, self.pid(allocator))).collect()
    }

    fn leaks_in_time(&self, group: &Group<'_>) -> bool {
        let rows = self.site(group).map(|site| self.sites.rows(site)).unwrap_or_default();
        group.leaks && self.in_time(rows).iter().any(|row| self.table.is_unreleased(*row))
    }

    fn between(&self, group: &Group<'_>, span: Span) -> Result<Between, Cancelled> {
        let mut poll = Poll::new(self.origin.cancel);
        let mut between = Between::default();
        // Few allocations end in parts.
        let mut in_parts: BTreeMap<AcquisitionIdx, Between> = BTreeMap::new();
        let site = self.site(group);
        for resource in site.map(|site| self.sites.rows(site)).unwrap_or_default() {
            poll.round()?;
            let row = resource.row();
            let end = self.table.end(*resource);
            let lifetime = Lifetime {
                opened_ns: self.table.time_ns.get(row).unwrap_or_default(),
                closed_ns: self.table.end_time_ns.get(row),
            };
            let bytes = self.table.size.get(row).unwrap_or_default();
            let sum = match self.table.first_part(*resource) {
                None => &mut between,
                Some(first) => in_parts.entry(first).or_default(),
            };
            sum.add(span, lifetime, end == Some(ResourceEnd::Open), Amount { count: 1, bytes });
        }
        in_parts.values().for_each(|parts| between.add_once(parts));
        Ok(between)
    }

    fn rows(&self, groups: &[Group<'_>]) -> Vec<usize> {
        let mut rows: Vec<usize> = self.resources(groups).iter().map(|row| row.row()).collect();
        let heaps = groups.iter().filter_map(|group| self.heaps(group));
        let left: HashSet<AllocatorIdx> = heaps.flat_map(|heaps| &heaps.left).copied().collect();
        if !left.is_empty() {
            rows.extend(self.table.rows().filter(|row| {
                self.table.allocator.get(*row).is_some_and(|heap| left.contains(&heap))
            }));
        }
        rows
    }

    /// The representative frame of a stack.
    fn function(&self, stack: StackIdx) -> Option<String> {
        Some(self.origin.frames.named().representative(stack)?.to_string())
    }

    fn shown_name(&self, group: &Group<'_>) -> Option<String> {
        let allocator = self.allocator(group)?;
        let is_known = allocator.process.is_some() || allocator.pid.is_some();
        is_known.then(|| group.process.name.clone())
    }

    fn matches_process(&self, process: &ProcessInfo) -> bool {
        matches_process(&self.criteria, process, self.is_plain)
    }

    fn frames(&self) -> Option<&Frames<'_>> {
        Some(self.origin.frames)
    }

    fn stacks(&self) -> Option<&TrimmedStacks> {
        Some(&self.sites.stacks)
    }

    fn processes(&self) -> &ProcessList {
        self.origin.processes
    }

    fn window(&self) -> Option<Window> {
        self.window
    }

    fn extent(&self) -> Window {
        self.window.unwrap_or(Window { start_ns: 0, end_ns: 0 })
    }

    fn cancel(&self) -> &Cancel {
        self.origin.cancel
    }
}

/// The process of an allocator; of an unknown one, only the id is known.
fn process<'a>(processes: &'a ProcessList, allocator: &Allocator) -> Cow<'a, ProcessInfo> {
    match allocator.process {
        Some(row) => Cow::Borrowed(processes.get(row)),
        None => Cow::Owned(processes.owner(None, allocator.pid)),
    }
}

fn matches_process(criteria: &ResourceCriteria, process: &ProcessInfo, is_plain: bool) -> bool {
    criteria.process.as_ref().is_none_or(|filter| process.matches(filter, is_plain))
}

/// Whether an allocation passes the filters on times and stacks, by row; `None` without any.
fn selected_rows(
    origin: Origin<'_>,
    allocators: &AllocatorList,
    table: &ResourceTable,
    criteria: &ResourceCriteria,
) -> Result<Option<Vec<bool>>, QueryError> {
    if !criteria.chooses_rows() {
        return Ok(None);
    }
    let mut is_selected = vec![false; table.height()];
    for row in choose(origin, allocators, table, criteria)?.0 {
        if let Some(is_selected) = is_selected.get_mut(row.row()) {
            *is_selected = true;
        }
    }
    Ok(Some(is_selected))
}
