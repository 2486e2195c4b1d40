//! Suspects among allocations: sites that lose blocks, pages and other resources, and heaps that stay.
//!
//! A site is what one process allocates of one kind on one stack, whichever heap it is from.

mod causes;
mod function;
mod heaps;
mod sites;

use handlescope_model::tables::{ResourceEnd, ResourceKind};
use handlescope_model::{StackIdx, Table};
use rayon::prelude::*;

use self::causes::{Findings, SiteCauses};
use self::function::ProgramFrames;
use self::heaps::private_heaps;
use self::sites::{Site, Sites};
use super::score;
use super::suspect::{Bytes, Counts, Suspect};
use crate::cancel::Cancelled;
use crate::query::context::FileContext;
use crate::query::criteria::WhyCriteria;
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::growth::{Growth, Life, Verdict, Window};
use crate::query::info::trace_info;
use crate::query::resources::{AllocatorList, ResourceTable};
use crate::query::tables::ProcessInfo;

/// The weight of blocks that only grew, in the score: that of a burst.
const GROWN_WEIGHT: f64 = 0.5;

/// How much there is of a suspect.
struct Amounts {
    counts: Counts,
    bytes: Bytes,
    /// Bytes of blocks that only grew, and how many more they get each minute.
    grown: Option<(i64, f64)>,
}

/// What suspects among the allocations of a trace are found in.
pub(super) struct Allocations<'a> {
    file: &'a FileContext<'a>,
    frames: &'a Frames<'a>,
    criteria: &'a WhyCriteria,
    allocators: AllocatorList,
    table: ResourceTable,
    programs: ProgramFrames<'a>,
    /// The time of the trace.
    window: Window,
}

impl<'a> Allocations<'a> {
    /// Loads them; `None` where there are none, or no stacks are loaded.
    pub(super) fn load(
        file: &'a FileContext<'a>,
        criteria: &'a WhyCriteria,
    ) -> Result<Option<Self>, QueryError> {
        let Some(frames) = &file.frames else { return Ok(None) };
        if file.trace.height(Table::Allocators)? == 0 {
            return Ok(None);
        }
        let (allocators, table) =
            (AllocatorList::load(file.trace)?, ResourceTable::load(file.trace)?);
        let last = table.time_ns.values().iter().chain(table.end_time_ns.values()).max();
        let end_ns = trace_info(file.trace)?.length_ns().unwrap_or_default();
        let end_ns = end_ns.max(last.copied().unwrap_or_default());
        let window = Window { start_ns: 0, end_ns };
        let programs = ProgramFrames::of(frames);
        Ok(Some(Self { file, frames, criteria, allocators, table, programs, window }))
    }

    /// How many allocations there are.
    pub(super) fn count(&self) -> usize {
        self.table.len()
    }

    /// The suspects, those that lose most first.
    pub(super) fn suspects(&self) -> Result<Vec<Suspect>, QueryError> {
        let is_meant = self.allocators.rows().iter().map(|allocator| {
            let kind = ResourceKind::from_code(allocator.kind);
            let is_type = self
                .criteria
                .handles
                .object_type
                .as_ref()
                .is_none_or(|filter| kind.is_some_and(|kind| filter.matches(kind.name())));
            is_type && self.is_process(&self.process(allocator))
        });
        let is_meant: Vec<bool> = is_meant.collect();
        let sites = Sites::of(&self.table, &self.allocators, &is_meant, self.frames)?;
        let causes = SiteCauses::load(self.file.trace, &self.table, &self.allocators)?;
        let suspect = |site: &Site| match self.file.cancel.check() {
            Ok(()) => self.suspect(site, &sites, &causes).map(Ok),
            Err(cancelled) => Some(Err(cancelled)),
        };
        let found = sites.sites.par_iter().filter_map(suspect);
        let mut suspects: Vec<Suspect> = found.collect::<Result<_, Cancelled>>()?;
        drop_reservations(&mut suspects);
        suspects.extend(private_heaps(self, &sites, &is_meant));
        suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(suspects)
    }

    fn process(&self, allocator: &handlescope_model::tables::Allocator) -> ProcessInfo {
        let processes = &self.file.processes;
        processes.known_or_pid(allocator.process, allocator.pid.unwrap_or_default())
    }

    fn is_process(&self, process: &ProcessInfo) -> bool {
        let filter = self.criteria.process.as_ref();
        filter.is_none_or(|filter| process.is_meant_by(filter, self.criteria.is_plain()))
    }

    /// A site as a suspect, if it is one.
    fn suspect(&self, site: &Site, sites: &Sites, causes: &SiteCauses<'_>) -> Option<Suspect> {
        let rows = sites.rows(site);
        let table = &self.table;
        let (mut counts, mut bytes) = (Counts::default(), Bytes::default());
        let mut lives = Vec::with_capacity(rows.len());
        for row in rows.iter().map(|row| *row as usize) {
            let size = table.size.get(row).unwrap_or_default();
            let end = table.end.get(row).and_then(ResourceEnd::from_code);
            bytes.allocated = bytes.allocated.saturating_add(size);
            counts.opened += u64::from(!table.is_further_part(row));
            match end {
                Some(ResourceEnd::Empty) | None => continue,
                Some(ResourceEnd::Open) => counts.leaked += 1,
                Some(ResourceEnd::AtExit) => counts.closed_at_exit += 1,
                Some(_) => {}
            }
            let is_lost = matches!(end, Some(ResourceEnd::Open | ResourceEnd::AtExit));
            bytes.lost = bytes.lost.saturating_add(if is_lost { size } else { 0 });
            let opened_ns = table.time_ns.get(row)?;
            let closed_ns = table.end_time_ns.get(row).filter(|_| !is_lost);
            lives.push(Life { opened_ns, closed_ns });
        }
        let allocator = self.allocators.get(site.allocator as usize)?;
        let process = self.process(allocator);
        let stack = site.stack;
        let Findings { diagnoses, grown } = causes.of(rows, &counts);
        let kind = ResourceKind::from_code(site.kind)?.name();
        let suspect = self.judge(
            &process,
            allocator.pid,
            (kind, stack),
            &lives,
            Amounts { counts, bytes, grown },
        )?;
        let function = stack.map(|stack| self.function(stack, sites));
        Some(Suspect { diagnoses, function, ..suspect })
    }

    /// What says most of a stack.
    fn function(&self, stack: StackIdx, sites: &Sites) -> String {
        let own = self.programs.function(stack);
        own.unwrap_or_else(|| sites.stacks.function(self.file, stack))
    }

    /// Allocations with these lives as a suspect, if they are one.
    fn judge(
        &self,
        process: &ProcessInfo,
        pid: Option<u32>,
        (type_name, create_stack): (&str, Option<StackIdx>),
        lives: &[Life],
        Amounts { counts, bytes, grown }: Amounts,
    ) -> Option<Suspect> {
        let start_ns =
            process.start_ns.map_or(self.window.start_ns, |ns| ns.max(self.window.start_ns));
        let end_ns = process.end_ns.map_or(self.window.end_ns, |ns| ns.min(self.window.end_ns));
        let growth = Growth::of(lives, Window { start_ns, end_ns });
        // Bytes count where there are any; the score is of as many as the allocations have on average.
        let mean = (bytes.lost as f64 / counts.lost().max(1) as f64).max(1.0);
        let score = score::of(&growth, lives, 0).map(|score| score * mean);
        // One block that grows leaks as many do.
        let of_grown = grown.map(|(bytes, _)| GROWN_WEIGHT * bytes as f64);
        let score = score.into_iter().chain(of_grown).reduce(f64::max)?;
        let rate = growth.evidence.rate.filter(|_| growth.verdict == Verdict::Steady);
        let per_minute = rate.filter(|_| bytes.lost > 0).map(|rate| rate.per_minute * mean);
        let per_minute = per_minute.or(grown.map(|(_, per_minute)| per_minute));
        Some(Suspect {
            rank: 0,
            process: process.shown_label(self.criteria.is_plain()),
            pid: pid.or_else(|| process.known_pid()),
            type_name: type_name.to_owned(),
            create_stack,
            counts,
            bytes: Some(Bytes { per_minute, ..bytes }),
            growth,
            diagnoses: Vec::new(),
            function: None,
            stack_filter: None,
            score,
        })
    }
}

/// Leaves out reservations of a stack that commits pages, too: what is committed says as much and more, unless
/// nothing of a reservation is ever committed.
fn drop_reservations(suspects: &mut Vec<Suspect>) {
    use super::causes::Cause;
    let [commit, reserve] = [ResourceKind::Commit, ResourceKind::Reserve].map(ResourceKind::name);
    let site = |own: &Suspect| (own.pid, own.process.clone(), own.create_stack);
    let commits = suspects.iter().filter(|own| own.type_name == commit);
    let commits: std::collections::HashSet<_> = commits.map(site).collect();
    suspects.retain(|own| {
        own.type_name != reserve
            || !commits.contains(&site(own))
            || own.diagnoses.iter().any(|own| own.cause == Cause::ReserveWithoutCommit)
    });
}
