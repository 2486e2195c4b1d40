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
        let mut sums = NotCountedSums::default();
        for &NoSuspect { reason, counts, older, .. } in unsuspected {
            sums.add(reason, None, (counts.leaked, counts.closed_at_exit, older));
        }
        let mut not_counted = sums.all();
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
        let mut sums = NotCountedSums::default();
        for &NoSuspect { reason, kind, counts, older } in unsuspected {
            if let Some(kind) = kind {
                let count = counts.unreleased();
                sums.add(reason, Some(kind.name()), (count, 0, older.min(count)));
            }
        }
        for suspect in backed {
            let kind = suspect.type_name.as_str();
            sums.add(NoSuspectReason::Committed, Some(kind), (suspect.counts.unreleased(), 0, 0));
        }
        sums.all()
    }
}

/// Groups, leaked, closed at exit and older, by reason and kind.
#[derive(Default)]
struct NotCountedSums<'a>(BTreeMap<(NoSuspectReason, Option<&'a str>), [u64; 4]>);

impl<'a> NotCountedSums<'a> {
    fn add(
        &mut self,
        reason: NoSuspectReason,
        kind: Option<&'a str>,
        (count, at_exit, older): (u64, u64, u64),
    ) {
        let sums = self.0.entry((reason, kind)).or_default();
        sums.iter_mut().zip([1, count, at_exit, older]).for_each(|(sum, more)| *sum += more);
    }

    fn all(self) -> Vec<NotCounted> {
        self.0
            .into_iter()
            .map(|((reason, kind), [groups, count, at_exit, older])| NotCounted {
                kind: kind.map(str::to_owned),
                reason,
                groups,
                count,
                at_exit,
                older,
            })
            .collect()
    }
}
