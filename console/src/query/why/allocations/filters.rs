//! The filters that keep what a site lost and nothing else.

use std::collections::{BTreeSet, HashMap, HashSet};

use handlescope_model::rules::is_named_by_allocator;
use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AllocatorIdx, ProcessIdx};

use super::super::lost_stacks::{LineNumbers, LostStacks, Scope};
use super::super::owners::{Owners, ProgramFilters};
use super::super::same_pid::LossTimes;
use super::input::Allocations;
use super::program_sites::ProgramSite;
use crate::filter::{Filter, word};
use crate::query::resources::{AllocatorList, kind_name};
use crate::query::resources::{Site, Sites};

/// Only what has no name passes.
const WITHOUT_NAME: &str = "!?*";

/// Names that a filter on allocators leaves out, or lists, at most.
const MOST: usize = 64;

/// Names of one process and kind that a pattern is tried on at most.
const MOST_TRIED: usize = 4096;

/// The filter on processes, and the kind.
type Scoped = (Option<String>, u32);

/// What distinguishes sites from one another, beyond their process ids and kinds.
pub(super) struct SiteFilters {
    times: LossTimes,
    programs: ProgramFilters,
    names: HashMap<Scoped, NameFilters>,
    stacks: LostStacks<u32>,
}

/// Filters on the names of some allocators.
#[derive(Default)]
struct NameFilters {
    filters: HashMap<String, String>,
    /// For each name other ones whose filters it passes, too.
    also_passes: HashMap<String, Vec<String>>,
}

impl SiteFilters {
    /// Looks at all sites, which lose something.
    pub(super) fn of(
        all: &Allocations<'_>,
        sites: &Sites,
        program_sites: &[ProgramSite<'_>],
    ) -> Self {
        let owners = program_sites.iter().map(|site| &site.owners);
        let programs = ProgramFilters::of(&all.programs, owners);
        let mut filters = Self {
            times: loss_times(all, sites),
            names: names(all, sites, &programs),
            programs,
            stacks: LostStacks::default(),
        };
        let mut numbers = LineNumbers::new(all.frames.named(), Some(&sites.stacks));
        for program in program_sites {
            let scopes = program.sites.iter().flat_map(|site| filters.scopes(all, site));
            for scope in scopes.collect::<HashSet<Scope>>() {
                let number = program.first.number();
                filters.stacks.add(scope, number, program.first.stack, &mut numbers);
            }
        }
        filters
    }

    /// The value of `-Allocator` for a site; `None` where the kind says as much.
    pub(super) fn allocator(&self, owners: &Owners, allocator: &Allocator) -> Option<String> {
        let names = self.names.get(&(owners.filter.clone(), allocator.kind))?;
        names.filters.get(&allocator.name).cloned()
    }

    /// The value of `-MinMaxTime`, where other processes have the same id.
    pub(super) fn time(&self, all: &Allocations<'_>, owners: &Owners) -> Option<String> {
        self.distinct(all, owners.sole()?)
    }

    fn distinct(&self, all: &Allocations<'_>, process: ProcessIdx) -> Option<String> {
        self.times.filter(process, all.file.processes.get(process))
    }

    /// The value of `-CreateStack`; `None` where the stack distinguishes nothing.
    pub(super) fn create_stack(
        &self,
        all: &Allocations<'_>,
        site: &ProgramSite<'_>,
        function: Option<&str>,
    ) -> Option<String> {
        let allocator = all.allocators.get(site.first.allocator)?;
        let process = self.time(all, &site.owners).and(site.owners.sole());
        let filter = (site.owners.filter.clone(), allocator.kind);
        let scope = self.scope(process, &filter, &allocator.name);
        self.stacks.filter(&scope, site.first.number(), function)
    }

    /// What the commands choose, without a filter on stacks, that keep what a site lost.
    fn scopes(&self, all: &Allocations<'_>, site: &Site) -> Vec<Scope> {
        let Some(allocator) = all.allocators.get(site.allocator) else { return Vec::new() };
        let pid = all.pid(allocator);
        let distinct = allocator.process.filter(|row| self.distinct(all, *row).is_some());
        let of_process = distinct.map(|row| (Some(row), pid.map(|pid| pid.to_string())));
        // Without the time of a process a command chooses what all with its id lost.
        let filters = self.programs.keeping(allocator.process, pid).map(|filter| (None, filter));
        let scopes = of_process.into_iter().chain(filters).flat_map(|(process, filter)| {
            let filter = (filter, allocator.kind);
            let names =
                self.names.get(&filter).and_then(|all| all.also_passes.get(&allocator.name));
            let names = names.into_iter().flatten().map(String::as_str);
            let names = std::iter::once(allocator.name.as_str()).chain(names);
            names.map(|name| self.scope(process, &filter, name)).collect::<Vec<_>>()
        });
        scopes.collect()
    }

    /// What a command chooses without a filter on stacks that keeps what an allocator of a name allocated.
    fn scope(&self, process: Option<ProcessIdx>, filter: &Scoped, name: &str) -> Scope {
        let names = self.names.get(filter).and_then(|names| names.filters.get(name));
        let kind = kind_name(filter.1);
        Scope {
            process,
            filter: filter.0.clone(),
            what: format!("{kind} {}", names.map_or("", String::as_str)),
        }
    }
}

fn loss_times(all: &Allocations<'_>, sites: &Sites) -> LossTimes {
    let mut times = LossTimes::default();
    for site in &sites.sites {
        let Some(allocator) = all.allocators.get(site.allocator) else { continue };
        let (Some(process), Some(pid)) = (allocator.process, all.pid(allocator)) else { continue };
        let lost = sites.rows(site).iter().filter(|row| all.table.is_lost(**row));
        lost.filter_map(|row| all.table.time_ns.get(row.row()))
            .for_each(|time_ns| times.add(process, pid, time_ns));
    }
    times
}

/// The names of the allocators of sites, where they say what is allocated.
fn names(
    all: &Allocations<'_>,
    sites: &Sites,
    programs: &ProgramFilters,
) -> HashMap<Scoped, NameFilters> {
    let mut names: HashMap<Scoped, BTreeSet<&str>> = HashMap::new();
    for allocator in sites.sites.iter().filter_map(|own| all.allocators.get(own.allocator)) {
        if ResourceKind::from_code(allocator.kind).is_some_and(is_named_by_allocator) {
            for filter in programs.keeping(allocator.process, all.pid(allocator)) {
                names.entry((filter, allocator.kind)).or_default().insert(&allocator.name);
            }
        }
    }
    names.into_iter().map(|(owner, names)| (owner, NameFilters::of(&names))).collect()
}

impl NameFilters {
    fn of(names: &BTreeSet<&str>) -> Self {
        let mut own = Self::default();
        // Filters do not distinguish capital letters.
        let mut folded: HashMap<String, Vec<&str>> = HashMap::new();
        for name in names {
            folded.entry(name.to_lowercase()).or_default().push(name);
        }
        for name in names {
            let pattern = word(name);
            let equal = folded.get(&name.to_lowercase()).into_iter().flatten();
            let (filter, others) = match pattern.contains(['*', '?']) {
                false => (pattern, equal.filter(|other| *other != name).copied().collect()),
                true => distinct(name, pattern, names),
            };
            let filter = if name.is_empty() { WITHOUT_NAME.to_owned() } else { filter };
            for other in others {
                own.also_passes.entry(other.to_owned()).or_default().push((*name).to_owned());
            }
            own.filters.insert((*name).to_owned(), filter);
        }
        own
    }
}

/// The pattern of a name without other names that it covers, and those that stay.
fn distinct<'n>(name: &str, pattern: String, names: &BTreeSet<&'n str>) -> (String, Vec<&'n str>) {
    let passes = |filter: &str, name: &str| {
        Filter::new(filter).is_ok_and(|filter| filter.accepts(filter.line(name)))
    };
    let Ok(covers) = Filter::new(&pattern) else { return (pattern, Vec::new()) };
    let others = names.iter().take(MOST_TRIED).filter(|other| **other != name);
    let covered: Vec<&str> =
        others.filter(|other| covers.accepts(covers.line(other))).copied().collect();
    // An empty filter passes everything, an empty exclusion only keeps what has a name.
    let is_foreign = |other: &&&str| other.is_empty() || !passes(&word(other), name);
    let left_out = covered.iter().filter(is_foreign).take(MOST);
    let left_out: String = left_out.map(|other| format!(";!{}", word(other))).collect();
    let filter = pattern + &left_out;
    let stay = covered.into_iter().filter(|other| passes(&filter, other)).collect();
    (filter, stay)
}

/// The value of `-Allocator` that keeps what is left in some heaps of a program, by listing them or the others in which
/// something is left; `None` where there are no others, or too many of both.
pub(super) fn heap_filter(
    allocators: &AllocatorList,
    left: &[i64],
    heaps: &[AllocatorIdx],
) -> Option<String> {
    let name = |row: AllocatorIdx| allocators.get(row).map(|own| own.name.as_str());
    let has_left = |row: &AllocatorIdx| left.get(row.row()).is_some_and(|bytes| *bytes != 0);
    let owner = |allocator: &Allocator| (allocator.process, allocator.pid);
    let owners: HashSet<_> =
        heaps.iter().filter_map(|row| allocators.get(*row)).map(owner).collect();
    let own: BTreeSet<&str> = heaps.iter().filter_map(|row| name(*row)).collect();
    let of_process = (0..).map(AllocatorIdx).zip(allocators.rows()).filter(|(_, other)| {
        let is_heap = other.kind == ResourceKind::Heap.code();
        is_heap && owners.contains(&owner(other))
    });
    let others = of_process.map(|(row, _)| row).filter(has_left).filter_map(name);
    let others: BTreeSet<&str> = others.filter(|other| !own.contains(other)).collect();
    let list = |names: &BTreeSet<&str>, mark: &str| {
        let names: Vec<String> = names.iter().map(|own| format!("{mark}{}", word(own))).collect();
        names.join(";")
    };
    match (own.len(), others.len()) {
        (_, 0) => None,
        (count, other) if count.min(other) > MOST => None,
        (count, other) if count <= other => Some(list(&own, "")),
        _ => Some(list(&others, "!")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_of_a_name_passes_no_other_but_those_it_cannot_distinguish() {
        let names = ["", "a*", "ab", "a\r\nb", "Pool", "pool", "!x", "say \"b\"", "*"];
        let filters = NameFilters::of(&names.into());
        for name in names {
            let filter = Filter::new(&filters.filters[name]).expect("a valid filter");
            let passes = |name: &&str| filter.accepts(filter.line(name));
            assert!(passes(&name), "{name:?} by {:?}", filter.text());
            let mut others: Vec<&str> =
                names.into_iter().filter(|other| *other != name && passes(other)).collect();
            let mut known: Vec<&str> = names
                .into_iter()
                .filter(|other| {
                    let known = filters.also_passes.get(*other);
                    known.is_some_and(|own| own.iter().any(|own| own == name))
                })
                .collect();
            others.sort_unstable();
            known.sort_unstable();
            assert_eq!(others, known, "{name:?} by {:?}", filter.text());
            assert_eq!(others.is_empty(), !name.eq_ignore_ascii_case("pool"), "{others:?}");
        }
        assert_eq!(filters.filters["a\r\nb"], "a??b");
        assert_eq!(filters.filters["ab"], "ab");
    }
}
