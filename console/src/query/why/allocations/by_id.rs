//! What of the allocations of a trace suspects acquired whose ids begin as one does.

use rayon::prelude::*;

use super::heaps::HeapSite;
use super::input::Allocations;
use super::program_sites::ProgramSite;
use crate::query::error::QueryError;
use crate::query::resources::{ChosenRows, Sites};
use crate::query::suspect_rows::SuspectRows;
use crate::values::SuspectId;

impl Allocations<'_> {
    /// Adds the rows of these suspects, of programs and of single processes.
    pub(in crate::query::why) fn add_acquired(
        &mut self,
        id: &SuspectId,
        found: &mut SuspectRows,
    ) -> Result<(), QueryError> {
        let is_meant = vec![true; self.allocators.rows().len()];
        let chosen = ChosenRows { is_meant: &is_meant, rows: None };
        let sites = Sites::leaking(&self.table, &self.allocators, &chosen, self.frames)?;
        for by_process in [false, true] {
            self.by_process = by_process;
            let of_programs = ProgramSite::all(self, &sites);
            found.note_others(!of_programs.is_empty());
            let acquired = of_programs.par_iter().filter_map(|site| {
                let own = site.acquired(self)?.id(self.file, Some(&sites.stacks));
                id.begins(&own).then_some((own, site))
            });
            for (own, site) in acquired.collect::<Vec<_>>() {
                let rows = site.sites.iter().flat_map(|site| sites.rows(site));
                found.add(own, rows.map(|row| row.row()));
            }
            for heaps in HeapSite::all(self, &sites, &is_meant) {
                let own = heaps.acquired().id(self.file, Some(&sites.stacks));
                if id.begins(&own) {
                    let left = heaps.left();
                    let allocator = |row: &usize| self.table.allocator.get(*row);
                    let is_left =
                        |row: &usize| allocator(row).is_some_and(|own| left.contains(&own));
                    found.add(own, (0..self.table.len()).filter(is_left));
                }
            }
        }
        Ok(())
    }
}
