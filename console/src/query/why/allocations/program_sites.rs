//! Sites of one program that allocate the same: of one kind on one stack.

use handlescope_model::tables::ResourceKind;

use super::super::id::Acquired;
use super::super::owners::Owners;
use super::input::Allocations;
use crate::query::programs::united;
use crate::query::resources::{Site, Sites, descriptive_name};

/// What the processes of one program lose on one stack.
pub(super) struct ProgramSite<'s> {
    /// The first of its sites, which names it.
    pub(super) first: &'s Site,
    /// All of them.
    pub(super) sites: Vec<&'s Site>,
    pub(super) owners: Owners,
}

impl<'s> ProgramSite<'s> {
    /// All of a trace; of one process each, where the criteria say so.
    pub(super) fn all(all: &Allocations<'_>, sites: &'s Sites) -> Vec<Self> {
        let keyed = sites.sites.iter().map(|site| {
            let allocator = all.allocators.get(site.allocator).filter(|_| !all.by_process);
            let key = allocator.and_then(|allocator| {
                let program = all.programs.get(allocator.process)?;
                Some((program, site.kind, descriptive_name(allocator), site.stack))
            });
            (key, site)
        });
        let site = |sites: Vec<&'s Site>| {
            let allocators = sites.iter().filter_map(|site| all.allocators.get(site.allocator));
            let owners = allocators.map(|allocator| (allocator.process, all.pid(allocator)));
            let owners = Owners::new(owners, &all.programs, all.by_process);
            Some(Self { first: sites.first()?, sites, owners })
        };
        united(keyed).into_iter().filter_map(site).collect()
    }

    /// Acquisitions of its suspect; `None` of a kind of a newer layout.
    pub(super) fn acquired(&self, all: &'s Allocations<'_>) -> Option<Acquired<'_>> {
        let Site { kind, allocator, stack, .. } = self.first;
        Some(Acquired {
            owners: &self.owners,
            what: ResourceKind::from_code(*kind)?.name(),
            is_of_handles: false,
            allocator: descriptive_name(all.allocators.get(*allocator)?),
            stack: *stack,
        })
    }
}
