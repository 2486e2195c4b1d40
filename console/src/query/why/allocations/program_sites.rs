//! Sites of one program that allocate the same: of one kind on one stack.

use std::collections::HashMap;

use handlescope_model::StackIdx;

use super::super::owners::Owners;
use super::input::Allocations;
use super::sites::{Site, Sites, descriptive_name};
use crate::query::programs::Program;

/// What the processes of one program lose on one stack.
pub(super) struct ProgramSite<'s> {
    /// The first of its sites, which names it.
    pub(super) first: &'s Site,
    /// All of them.
    pub(super) sites: Vec<&'s Site>,
    pub(super) owners: Owners,
}

/// Program, kind, name of the allocator where it says what is allocated, and stack.
type Key<'a> = (Program, u32, Option<&'a str>, Option<StackIdx>);

impl<'s> ProgramSite<'s> {
    /// All of a trace; of one process each, where the criteria say so.
    pub(super) fn all(all: &Allocations<'_>, sites: &'s Sites) -> Vec<Self> {
        let mut united: Vec<Vec<&Site>> = Vec::new();
        let mut places: HashMap<Key<'_>, usize> = HashMap::new();
        for site in &sites.sites {
            let allocator = all.allocators.get(site.allocator);
            let place = allocator.filter(|_| !all.by_process).and_then(|allocator| {
                let program = all.programs.get(allocator.process)?;
                let key = (program, site.kind, descriptive_name(allocator), site.stack);
                Some(*places.entry(key).or_insert(united.len()))
            });
            let place = place.unwrap_or(united.len());
            if place == united.len() {
                united.push(Vec::new());
            }
            united[place].push(site);
        }
        let site = |sites: Vec<&'s Site>| {
            let allocators = sites.iter().filter_map(|site| all.allocators.get(site.allocator));
            let owners = allocators.map(|allocator| (allocator.process, all.pid(allocator)));
            let owners = Owners::new(owners, &all.programs, all.chosen.process.is_none());
            Some(Self { first: sites.first()?, sites, owners })
        };
        united.into_iter().filter_map(site).collect()
    }
}
