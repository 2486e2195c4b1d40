//! Leaks that belong to no suspect; with them, the counts add up to those of the extraction.

use std::collections::BTreeMap;

use super::suspect::{NoSuspect, NoSuspectReason, Suspect};

/// Leaked handles, or allocations of one kind, that belong to no suspect for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCounted {
    /// Kind of the allocations; `None` for handles.
    pub kind: Option<String>,
    pub reason: NoSuspectReason,
    /// Number of their groups.
    pub groups: u64,
    /// Number of leaked handles, or of allocations that only process exit freed or nothing did.
    pub count: u64,
    /// Number of handles that only process exit closed.
    pub at_exit: u64,
    /// Number of those older than any closed handle of their group became.
    pub older: u64,
}

impl NotCounted {
    /// Counts the handle groups that are no suspects; `leaked` is what they leak together.
    pub fn for_handles(unsuspected: &[NoSuspect], leaked: u64) -> Vec<Self> {
        let mut not_counted =
            summed(unsuspected.iter().map(|&NoSuspect { reason, counts, older, .. }| {
                (reason, None, [counts.leaked, counts.closed_at_exit, older])
            }));
        // Nothing can be said about handles without a group, so they join the first sum.
        let of_groups = not_counted.iter().map(|sum| sum.count).sum::<u64>();
        if let (Some(rest @ 1..), [first, ..]) =
            (leaked.checked_sub(of_groups), not_counted.as_mut_slice())
        {
            first.count += rest;
        }
        not_counted.retain(|sum| sum.count + sum.at_exit > 0);
        not_counted
    }

    /// Counts by kind the allocation groups that are no suspects and the `backed` suspects that were removed.
    pub fn for_allocations(unsuspected: &[NoSuspect], backed: &[Suspect]) -> Vec<Self> {
        let others = unsuspected.iter().filter_map(|&NoSuspect { reason, kind, counts, older }| {
            let count = counts.unreleased();
            Some((reason, Some(kind?.name()), [count, 0, older.min(count)]))
        });
        let backed = backed.iter().map(|suspect| {
            let kind = Some(suspect.type_name.as_str());
            (NoSuspectReason::Committed, kind, [suspect.counts.unreleased(), 0, 0])
        });
        summed(others.chain(backed))
    }
}

/// Sums up groups, each with how many leaked, were closed at exit, and are older, by reason and kind.
fn summed<'a>(
    groups: impl Iterator<Item = (NoSuspectReason, Option<&'a str>, [u64; 3])>,
) -> Vec<NotCounted> {
    let mut sums: BTreeMap<(NoSuspectReason, Option<&str>), NotCounted> = BTreeMap::new();
    for (reason, kind, [count, at_exit, older]) in groups {
        let sum = sums.entry((reason, kind)).or_insert_with(|| {
            let kind = kind.map(str::to_owned);
            NotCounted { kind, reason, groups: 0, count: 0, at_exit: 0, older: 0 }
        });
        sum.groups += 1;
        sum.count += count;
        sum.at_exit += at_exit;
        sum.older += older;
    }
    sums.into_values().collect()
}
