//! The filters that keep what a site lost and nothing else.

use std::collections::{BTreeSet, HashMap};

use handlescope_model::rules::is_named_by_allocator;
use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AllocatorIdx, ProcessIdx};

use super::super::lost_stacks::{LineNumbers, LostStacks, Scope};
use super::super::same_pid::LossTimes;
use super::input::Allocations;
use super::sites::{Site, Sites};
use crate::filter::{Filter, word};
use crate::query::resources::{AllocatorList, kind_name};

/// Only what has no name passes.
const WITHOUT_NAME: &str = "!?*";

/// Names that a filter on allocators leaves out, or lists, at most.
const MOST: usize = 64;

/// Names of one process and kind that a pattern is tried on at most.
const MOST_TRIED: usize = 4096;

/// Process id and kind.
type Owner = (Option<u32>, u32);

/// What distinguishes sites from one another, beyond their process ids and kinds.
pub(super) struct SiteFilters {
    times: LossTimes,
    names: HashMap<Owner, NameFilters>,
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
    pub(super) fn of(all: &Allocations<'_>, sites: &Sites) -> Self {
        let named = all.frames.named();
        let mut own = Self {
            times: loss_times(all, sites),
            names: names(all, sites),
            stacks: LostStacks::default(),
        };
        let mut numbers = LineNumbers::new(named, Some(&sites.stacks));
        for site in &sites.sites {
            let Some(allocator) = all.allocators.get(site.allocator) else { continue };
            let mut scopes = vec![own.scope(all, site, allocator.name.as_str())];
            if let Some(names) = own.names.get(&owner(all, allocator)) {
                let others = names.also_passes.get(&allocator.name).into_iter().flatten();
                scopes.extend(others.map(|name| own.scope(all, site, name)));
            }
            for scope in scopes {
                own.stacks.add(scope, site.number(), site.stack, &mut numbers);
            }
        }
        own
    }

    /// The value of `-Allocator` for a site; `None` where the kind says as much.
    pub(super) fn allocator(&self, all: &Allocations<'_>, allocator: &Allocator) -> Option<String> {
        self.names.get(&owner(all, allocator))?.filters.get(&allocator.name).cloned()
    }

    /// The value of `-MinMaxTime`, where other processes have the same id.
    pub(super) fn time(&self, all: &Allocations<'_>, allocator: &Allocator) -> Option<String> {
        let process = allocator.process?;
        self.times.filter(process, all.file.processes.get(process))
    }

    /// The value of `-CreateStack`; `None` where the stack distinguishes nothing.
    pub(super) fn create_stack(
        &self,
        all: &Allocations<'_>,
        site: &Site,
        function: Option<&str>,
    ) -> Option<String> {
        let allocator = all.allocators.get(site.allocator)?;
        let scope = self.scope(all, site, &allocator.name);
        self.stacks.filter(&scope, site.number(), function)
    }

    /// What the command of a site whose allocator has a name chooses without a filter on stacks.
    fn scope(&self, all: &Allocations<'_>, site: &Site, name: &str) -> Scope {
        let Some(allocator) = all.allocators.get(site.allocator) else {
            return Scope::default();
        };
        let filter = self.names.get(&owner(all, allocator)).and_then(|own| own.filters.get(name));
        let kind = kind_name(site.kind);
        Scope {
            process: self.time(all, allocator).and(allocator.process),
            pid: all.pid(allocator),
            what: format!("{kind} {}", filter.map_or("", String::as_str)),
        }
    }
}

fn owner(all: &Allocations<'_>, allocator: &Allocator) -> Owner {
    (all.pid(allocator), allocator.kind)
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
fn names(all: &Allocations<'_>, sites: &Sites) -> HashMap<Owner, NameFilters> {
    let mut names: HashMap<Owner, BTreeSet<&str>> = HashMap::new();
    for allocator in sites.sites.iter().filter_map(|own| all.allocators.get(own.allocator)) {
        if ResourceKind::from_code(allocator.kind).is_some_and(is_named_by_allocator) {
            names.entry(owner(all, allocator)).or_default().insert(&allocator.name);
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

/// The value of `-Allocator` that keeps what is left in some heaps of a process, by listing them or the others in which
/// something is left; `None` where there are no others, or too many of both.
pub(super) fn heap_filter(
    allocators: &AllocatorList,
    left: &[i64],
    heaps: &[AllocatorIdx],
    (process, pid): (Option<ProcessIdx>, Option<u32>),
) -> Option<String> {
    let name = |row: AllocatorIdx| allocators.get(row).map(|own| own.name.as_str());
    let has_left = |row: &AllocatorIdx| left.get(row.row()).is_some_and(|bytes| *bytes != 0);
    let own: BTreeSet<&str> = heaps.iter().filter_map(|row| name(*row)).collect();
    let of_process = (0..).map(AllocatorIdx).zip(allocators.rows()).filter(|(_, other)| {
        let is_heap = other.kind == ResourceKind::Heap.code();
        is_heap && other.process == process && other.pid == pid
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
