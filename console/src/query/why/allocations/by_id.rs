//! Lookup of suspects among allocations by id.

use rayon::prelude::*;

use super::heaps::HeapSite;
use super::input::Allocations;
use super::program_sites::ProgramSite;
use crate::query::error::QueryError;
use crate::query::resources::{ChosenRows, Sites};
use crate::query::suspect_rows::SuspectRows;
use crate::values::SuspectId;

impl Allocations<'_> {
    /// Adds the rows of the suspects whose ids begin so, of programs and of single processes.
    pub(in crate::query::why) fn add_acquired(
        &mut self,
        id: &SuspectId,
        rows: &mut SuspectRows,
    ) -> Result<(), QueryError> {
        let is_meant = vec![true; self.allocators.rows().len()];
        let chosen = ChosenRows { is_meant: &is_meant, rows: None };
        let sites = Sites::leaking(&self.table, &self.allocators, &chosen, self.frames)?;
        for by_process in [false, true] {
            self.file.cancel.check()?;
            self.by_process = by_process;
            let of_programs = ProgramSite::all(self, &sites);
            rows.note_groups(!of_programs.is_empty());
            let acquired = of_programs.par_iter().filter_map(|site| {
                let whole_id = site.acquired(self)?.id(self.file, Some(&sites.stacks));
                id.begins(&whole_id).then_some((whole_id, site))
            });
            for (whole_id, site) in acquired.collect::<Vec<_>>() {
                let of_site = site.sites.iter().flat_map(|site| sites.rows(site));
                rows.add(whole_id, of_site.map(|row| row.row()));
            }
            for heaps in HeapSite::all(self, &sites, &is_meant) {
                let whole_id = heaps.acquired().id(self.file, Some(&sites.stacks));
                if id.begins(&whole_id) {
                    let left = heaps.left();
                    let allocator = |row: usize| self.table.allocator.get(row);
                    let is_left =
                        |row: &usize| allocator(*row).is_some_and(|heap| left.contains(&heap));
                    rows.add(whole_id, (0..self.table.len()).filter(is_left));
                }
            }
        }
        Ok(())
    }
}
