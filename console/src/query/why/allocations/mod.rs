//! Suspects among allocations: sites that lose blocks, pages and other resources, and heaps that stay.
//!
//! A site is what one process allocates of one kind on one stack, whichever heap it is from; a suspect those of one
//! program.

mod by_id;
mod causes;
mod commits;
mod heaps;
mod input;
mod program_sites;

use std::collections::HashSet;

use handlescope_model::ResourceIdx;
use handlescope_model::rules::backed_by;
use handlescope_model::tables::ResourceKind;
use rayon::prelude::*;

use self::causes::{Findings, SiteCauses};
use self::heaps::HeapSite;
pub(super) use self::input::Allocations;
use self::input::{Amounts, ProcessShare};
use self::program_sites::ProgramSite;
use super::causes::Cause;
use super::suspect::Suspect;
use crate::cancel::Cancelled;
use crate::query::error::QueryError;
use crate::query::resources::SiteLives;
use crate::query::resources::{ChosenRows, Sites};

/// What is suspected among allocations.
pub(super) struct Found {
    /// Those that lose most first.
    pub(super) suspects: Vec<Suspect>,
    /// Number of allocations that were looked at.
    pub(super) chosen: usize,
}

impl Allocations<'_> {
    /// Looks for suspects, those that lose most first.
    pub(in crate::query::why) fn suspects(&self) -> Result<Found, QueryError> {
        let is_meant = self.allocators.rows().iter().map(|allocator| {
            let kind = ResourceKind::from_code(allocator.kind);
            let is_type = self
                .chosen
                .kind
                .as_ref()
                .is_none_or(|filter| kind.is_some_and(|kind| filter.matches(kind.name())));
            is_type && self.is_process(&self.process(allocator))
        });
        let is_meant: Vec<bool> = is_meant.collect();
        let rows = self.chosen_rows()?;
        let chosen = ChosenRows { is_meant: &is_meant, rows: rows.as_deref() };
        let sites = Sites::leaking(&self.table, &self.allocators, &chosen, self.frames)?;
        let causes = SiteCauses::load(self.file.trace, &self.table, &self.allocators)?;
        let program_sites = ProgramSite::all(self, &sites);
        let found = program_sites.par_iter().filter_map(|site| match self.file.cancel.check() {
            Ok(()) => self.suspect(site, &sites, &causes).map(Ok),
            Err(cancelled) => Some(Err(cancelled)),
        });
        let mut found: Vec<(ResourceKind, Suspect)> = found.collect::<Result<_, Cancelled>>()?;
        drop_backed(&mut found);
        let mut suspects: Vec<Suspect> = found.into_iter().map(|(_, suspect)| suspect).collect();
        // Heaps are not allocated by the stacks and at the times that are asked for.
        if rows.is_none() {
            let heaps = HeapSite::all(self, &sites, &is_meant);
            suspects.extend(heaps.into_iter().filter_map(|own| own.suspect(self, &sites)));
        }
        suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
        let allocator = |row: usize| self.table.allocator.get(row);
        let chosen = (0..self.table.len()).filter(|row| chosen.has(*row, allocator(*row))).count();
        Ok(Found { suspects, chosen })
    }

    /// A site as a suspect, if it is one, with its kind.
    fn suspect(
        &self,
        site: &ProgramSite<'_>,
        sites: &Sites,
        causes: &SiteCauses<'_>,
    ) -> Option<(ResourceKind, Suspect)> {
        let mut rows: Vec<ResourceIdx> = Vec::new();
        let mut whole = SiteLives::default();
        let mut processes = Vec::with_capacity(site.sites.len());
        for site in &site.sites {
            let lives = SiteLives::of(&self.table, sites.rows(site))?;
            rows.extend(sites.rows(site));
            whole.add_all(&lives);
            let allocator = self.allocators.get(site.allocator)?;
            processes.push(ProcessShare::new(self, allocator, lives.counts, lives.lives));
        }
        let Findings { diagnoses, grown } = causes.of(&rows, &whole);
        let kind = ResourceKind::from_code(site.first.kind)?;
        let SiteLives { counts, bytes, ends, .. } = whole;
        let amounts = Amounts { counts, bytes, grown, ended: ends.words() };
        let suspect = self.as_suspect(&site.acquired(self)?, &sites.stacks, processes, amounts)?;
        let function = site.first.stack.map(|stack| self.function(stack, sites));
        Some((kind, Suspect { diagnoses, function, ..suspect }))
    }
}

/// Leaves out reservations of a stack that commits pages, too: what is committed says as much and more, unless
/// nothing of a reservation is ever committed.
fn drop_backed(found: &mut Vec<(ResourceKind, Suspect)>) {
    let site = |kind, own: &Suspect| (kind, own.pid, own.process.clone(), own.create_stack);
    let backing: HashSet<ResourceKind> =
        ResourceKind::ALL.into_iter().filter_map(backed_by).collect();
    let sites = found.iter().filter(|(kind, _)| backing.contains(kind));
    let sites: HashSet<_> = sites.map(|(kind, own)| site(*kind, own)).collect();
    found.retain(|(kind, own)| {
        !backed_by(*kind).is_some_and(|backing| sites.contains(&site(backing, own)))
            || own.diagnoses.iter().any(|own| own.cause == Cause::ReserveWithoutCommit)
    });
}

#[cfg(test)]
mod tests;
