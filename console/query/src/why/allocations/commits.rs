//! Where and when pages were committed.

use std::collections::HashMap;

use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AcquisitionIdx, Numbers};

use crate::acquired::AcquisitionOwner;
use crate::acquisition_table::AcquisitionTable;

/// Bytes per page.
const PAGE: u64 = 4096;

/// Commits of each process.
pub struct Commits(HashMap<AcquisitionOwner, ProcessCommits>);

/// The commits of a process by their first page. Windows commits within one reservation, so the first page tells which
/// reservation the pages belong to. How many pages follow is unknown if the allocation found some of them already
/// committed.
#[derive(Default)]
struct ProcessCommits {
    pages: Vec<u64>,
    /// A tree of commit times: the root is at 1, the children of `node` at `2 * node` and the entry after it, the
    /// leaves last. Each node holds the latest time below it.
    latest: Vec<i64>,
}

impl Commits {
    pub fn load(table: &AcquisitionTable, key: &Numbers<u64>) -> Self {
        let mut commits: HashMap<AcquisitionOwner, Vec<(u64, i64)>> = HashMap::new();
        let is_commit = |allocator: &&Allocator| allocator.kind == ResourceKind::Commit.code();
        if table.allocators.rows().iter().any(|allocator| is_commit(&allocator)) {
            let resources = table.allocations().map(AcquisitionIdx::from_row);
            for resource in resources.filter(|row| !table.is_further_part(*row)) {
                let (allocator, row) = (table.allocator_of(resource), resource.row());
                if let (Some(allocator), Some(key), Some(time_ns)) =
                    (allocator.filter(is_commit), key.get(row), table.opened_ns.get(row))
                {
                    commits.entry(owner(allocator)).or_default().push((page(key), time_ns));
                }
            }
        }
        let commits = commits.into_iter();
        Self(commits.map(|(owner, commits)| (owner, ProcessCommits::new(commits))).collect())
    }

    /// Whether anything was committed in a range of the owner's pages at or after `since_ns`.
    pub fn has(&self, allocator: &Allocator, first: u64, size: u64, since_ns: i64) -> bool {
        let first = page(first);
        let end = first.saturating_add(size.max(1));
        self.0.get(&owner(allocator)).is_some_and(|commits| commits.has(first, end, since_ns))
    }
}

impl ProcessCommits {
    fn new(mut commits: Vec<(u64, i64)>) -> Self {
        commits.sort_unstable();
        let count = commits.len();
        let mut latest = vec![i64::MIN; count];
        latest.extend(commits.iter().map(|(_, time_ns)| *time_ns));
        for node in (1..count).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        Self { pages: commits.into_iter().map(|(page, _)| page).collect(), latest }
    }

    /// Whether a commit at or after `since_ns` begins between two addresses.
    fn has(&self, first: u64, end: u64, since_ns: i64) -> bool {
        let leaf =
            |address: u64| self.pages.len() + self.pages.partition_point(|page| *page < address);
        let (mut from, mut to) = (leaf(first), leaf(end));
        let is_later = |node: usize| self.latest.get(node).is_some_and(|ns| *ns >= since_ns);
        while from < to {
            // A subtree at either end of the range is tested as a whole.
            if from % 2 == 1 {
                if is_later(from) {
                    return true;
                }
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                if is_later(to) {
                    return true;
                }
            }
            (from, to) = (from / 2, to / 2);
        }
        false
    }
}

fn page(address: u64) -> u64 {
    address - address % PAGE
}

fn owner(allocator: &Allocator) -> AcquisitionOwner {
    (allocator.process, allocator.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_found_by_place_and_time_whatever_their_number() {
        for count in 0..20_u64 {
            // Later commits have lower times.
            let commits: Vec<(u64, i64)> =
                (0..count).map(|n| (n * 10, 100 - n as i64 * 3)).collect();
            let by_page = ProcessCommits::new(commits.iter().rev().copied().collect());
            for (first, end) in (0..21).flat_map(|first| (0..21).map(move |end| (first, end))) {
                let (first, end) = (first * 10 - first % 2, end * 10 - end % 3);
                for since in [0, 50, 80, 99, 100, 101] {
                    let mut commits = commits.iter().filter(|(_, time)| *time >= since);
                    let expected = commits.any(|(page, _)| (first..end).contains(page));
                    assert_eq!(by_page.has(first, end, since), expected, "{first} {end} {since}");
                }
            }
        }
    }
}
