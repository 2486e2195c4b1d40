//! Heaps that a program creates and does not destroy.

use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AllocatorIdx, ProcessIdx, ResourceIdx, StackIdx};
use hashbrown::HashMap;
use indicatif::HumanCount;

use super::super::causes::Cause;
use super::super::owners::Owners;
use super::super::suspect::{Bytes, Counts, PRIVATE_HEAP, Suspect, SuspectFilters};
use super::causes::diagnosis;
use super::context::SiteContext;
use super::filters::heap_filter;
use super::input::{Allocations, Amounts, ProcessShare};
use crate::query::growth::Life;
use crate::query::programs::united;
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

/// Sites that create heaps and do not destroy them, as suspects.
pub(super) fn private_heaps(
    all: &Allocations<'_>,
    context: &SiteContext<'_>,
    is_meant: &[bool],
) -> Vec<Suspect> {
    let left = bytes_left(all);
    let mut sites: HashMap<Site, Created> = HashMap::new();
    let rows = (0..).map(AllocatorIdx).zip(all.allocators.rows()).zip(is_meant);
    let heaps = rows.filter(|((_, own), is_meant)| {
        **is_meant && own.kind == ResourceKind::Heap.code() && own.created_ns.is_some()
    });
    for ((row, heap), _) in heaps {
        let equal =
            heap.create_stack.map_or(StackIdx::NONE, |stack| context.sites.stacks.equal(stack));
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
    let united = united(keyed);
    united.into_iter().filter_map(|created| suspect(created, all, context, &left)).collect()
}

/// The heaps that the processes of one program create on one stack, as a suspect, if they are one.
fn suspect(
    created: Vec<Created>,
    all: &Allocations<'_>,
    SiteContext { sites, filters, .. }: &SiteContext<'_>,
    bytes_left: &[i64],
) -> Option<Suspect> {
    let allocators = created.iter().filter_map(|own| all.allocators.get(own.first));
    let owners = allocators.map(|own| (own.process, all.pid(own)));
    let owners = Owners::new(owners, &all.programs, all.chosen.process.is_none());
    let stack = created.first()?.stack;
    let (mut counts, mut lost) = (Counts::default(), 0_i64);
    let (mut left, mut processes) = (Vec::new(), Vec::new());
    for created in created {
        counts.add(created.counts);
        lost = lost.saturating_add(created.lost);
        left.extend(created.left);
        let allocator = all.allocators.get(created.first)?;
        processes.push(ProcessShare::new(all, allocator, created.counts, created.lives));
    }
    let bytes = Bytes { lost, allocated: lost, per_minute: None };
    let suspect = all.as_suspect(
        &owners,
        (PRIVATE_HEAP, stack),
        processes,
        Amounts { counts, bytes, grown: None, ended: "destroyed".to_owned() },
    )?;
    let text = format!(
        "of {} that this stack creates, {} never destroyed",
        Counted(counts.opened, "heap"),
        HumanCount(counts.lost())
    );
    Some(Suspect {
        filters: SuspectFilters {
            process: owners.filter.clone(),
            allocator: heap_filter(&all.allocators, bytes_left, &left),
            time: filters.time(all, &owners),
            stack: None,
        },
        diagnoses: vec![diagnosis(Cause::HeapNotDestroyed, counts.lost(), text)],
        function: stack.map(|stack| all.function(stack, sites)),
        ..suspect
    })
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
