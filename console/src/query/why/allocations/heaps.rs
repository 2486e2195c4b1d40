//! Heaps that a program creates and does not destroy.

use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AllocatorIdx, ProcessIdx, ResourceIdx, StackIdx};
use hashbrown::{HashMap, HashSet};
use indicatif::HumanCount;

use super::super::causes::Cause;
use super::super::id::Acquired;
use super::super::owners::Owners;
use super::super::suspect::{Bytes, Counts, PRIVATE_HEAP, Suspect};
use super::causes::diagnosis;
use super::input::{Allocations, Amounts, ProcessShare};
use crate::query::growth::Life;
use crate::query::programs::united;
use crate::query::resources::Sites;
use crate::values::Counted;

/// Heaps from which on they are a suspect: each process keeps the one that it starts with.
const LEAST: u64 = 2;

/// Process, its id, and the stack: one of those that are equal.
type Site = (Option<ProcessIdx>, Option<u32>, StackIdx);

/// The heaps that one process creates on one stack.
#[derive(Default)]
struct Created {
    /// The first of them.
    first: AllocatorIdx,
    stack: Option<StackIdx>,
    lives: Vec<Life>,
    counts: Counts,
    /// Those that are not destroyed.
    left: Vec<AllocatorIdx>,
    /// Bytes that are left in them.
    lost: i64,
}

/// The heaps that the processes of one program create on one stack and do not destroy.
pub(super) struct HeapSite {
    created: Vec<Created>,
    owners: Owners,
}

impl HeapSite {
    /// All of a trace; of one process each, where the criteria say so.
    pub(super) fn all(all: &Allocations<'_>, own: &Sites, is_meant: &[bool]) -> Vec<Self> {
        let left = bytes_left(all);
        let mut sites: HashMap<Site, Created> = HashMap::new();
        let rows = (0..).map(AllocatorIdx).zip(all.allocators.rows()).zip(is_meant);
        let heaps = rows.filter(|((_, own), is_meant)| {
            **is_meant && own.kind == ResourceKind::Heap.code() && own.created_ns.is_some()
        });
        for ((row, heap), _) in heaps {
            let equal = heap.create_stack.map_or(StackIdx::NONE, |stack| own.stacks.equal(stack));
            let created = sites
                .entry((heap.process, heap.pid, equal))
                .or_insert_with(|| Created { first: row, ..Created::default() });
            created.stack = created.stack.or(heap.create_stack);
            created.add(row, heap, left.get(row.row()).copied().unwrap_or_default(), all);
        }
        let sites = sites.into_iter().filter(|(_, created)| created.counts.lost() >= LEAST);
        let mut sites: Vec<(Site, Created)> = sites.collect();
        sites.sort_by_key(|(_, created)| created.first);
        let keyed = sites.into_iter().map(|((process, _, stack), created)| {
            let program = all.programs.get(process).filter(|_| !all.by_process);
            (program.map(|program| (program, stack)), created)
        });
        let site = |created: Vec<Created>| {
            let allocators = created.iter().filter_map(|own| all.allocators.get(own.first));
            let owners = allocators.map(|own| (own.process, all.pid(own)));
            Self { owners: Owners::new(owners, &all.programs, all.by_process), created }
        };
        united(keyed).into_iter().map(site).collect()
    }

    /// Acquisitions of its suspect.
    pub(super) fn acquired(&self) -> Acquired<'_> {
        Acquired {
            owners: &self.owners,
            what: PRIVATE_HEAP,
            is_of_handles: false,
            allocator: None,
            stack: self.created.first().and_then(|created| created.stack),
        }
    }

    /// Its heaps that are there at the end: what is left in them is lost.
    pub(super) fn left(&self) -> HashSet<AllocatorIdx> {
        self.created.iter().flat_map(|created| created.left.iter().copied()).collect()
    }

    /// The suspect that it is, if it is one.
    pub(super) fn suspect(self, all: &Allocations<'_>, sites: &Sites) -> Option<Suspect> {
        let (mut counts, mut lost) = (Counts::default(), 0_i64);
        let mut processes = Vec::new();
        for created in &self.created {
            counts.add(created.counts);
            lost = lost.saturating_add(created.lost);
            let allocator = all.allocators.get(created.first)?;
            processes.push(ProcessShare::new(
                all,
                allocator,
                created.counts,
                created.lives.clone(),
            ));
        }
        let bytes = Bytes { lost, allocated: lost, per_minute: None };
        let what = self.acquired();
        let suspect = all.as_suspect(
            &what,
            &sites.stacks,
            processes,
            Amounts { counts, bytes, grown: None, ended: "destroyed".to_owned() },
        )?;
        let text = format!(
            "of {} that this stack creates, {} never destroyed",
            Counted(counts.opened, "heap"),
            HumanCount(counts.lost())
        );
        Some(Suspect {
            diagnoses: vec![diagnosis(Cause::HeapNotDestroyed, counts.lost(), text)],
            function: what.stack.map(|stack| all.function(stack, sites)),
            ..suspect
        })
    }
}

/// For each allocator the bytes that nothing freed.
fn bytes_left(all: &Allocations<'_>) -> Vec<i64> {
    let mut left = vec![0_i64; all.allocators.rows().len()];
    for row in 0..all.table.len() {
        let slot = all.table.allocator.get(row).and_then(|own| left.get_mut(own.row()));
        if let Some(slot) = slot.filter(|_| all.table.is_lost(ResourceIdx::of(row))) {
            *slot = slot.saturating_add(all.table.size.get(row).unwrap_or_default());
        }
    }
    left
}

impl Created {
    fn add(&mut self, row: AllocatorIdx, heap: &Allocator, left: i64, all: &Allocations<'_>) {
        let Some(opened_ns) = heap.created_ns else { return };
        let has_ended = all.process(heap).end_ns.is_some();
        self.counts.opened += 1;
        if heap.destroyed_ns.is_none() {
            self.lost = self.lost.saturating_add(left);
            self.left.push(row);
            let count =
                if has_ended { &mut self.counts.closed_at_exit } else { &mut self.counts.leaked };
            *count += 1;
        }
        self.lives.push(Life { opened_ns, closed_ns: heap.destroyed_ns });
    }
}
