//! Allocations that leak, but are of no suspect: with them, the counts are those of the extraction.

use std::collections::BTreeMap;

use handlescope_model::tables::ResourceKind;

use super::super::suspect::Suspect;
use crate::query::acquired::{Allocations, ProgramGroup};

/// Leaked allocations of one kind that are of no suspect.
pub struct NotCounted {
    pub kind: String,
    pub reason: Reason,
    /// Number of their groups.
    pub groups: u64,
    /// Number of allocations that nothing, or only process exit, freed.
    pub count: u64,
}

/// The reason why allocations are of no suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// They are as young as those of their group that are freed.
    Young,
    /// The commits of their group are a suspect.
    Committed,
}

impl NotCounted {
    /// Counts groups that are no suspects, and the suspects that were removed, by kind.
    pub(in crate::query::why) fn all(
        allocations: &Allocations<'_>,
        young: &[ProgramGroup<'_>],
        backed: &[Suspect],
    ) -> Vec<Self> {
        let mut sums: BTreeMap<(Reason, &str), (u64, u64)> = BTreeMap::new();
        let mut add = |reason, kind, count| {
            let (groups, sum) = sums.entry((reason, kind)).or_default();
            (*groups, *sum) = (*groups + 1, *sum + count);
        };
        for ProgramGroup { groups, .. } in young {
            let kind = groups.first().map(|group| group.type_name);
            // A kind from a newer layout is not judged.
            let kind = kind.filter(|name| ResourceKind::ALL.iter().any(|it| it.name() == *name));
            if let Some(kind) = kind {
                add(Reason::Young, kind, allocations.unreleased_count(groups));
            }
        }
        for suspect in backed {
            add(Reason::Committed, suspect.type_name.as_str(), suspect.counts.unreleased());
        }
        let sums = sums.into_iter().map(|((reason, kind), (groups, count))| Self {
            kind: kind.to_owned(),
            reason,
            groups,
            count,
        });
        sums.collect()
    }
}
