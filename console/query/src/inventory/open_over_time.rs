//! Numbers of open handles and allocations at equal steps over the time of a trace.

use std::collections::BTreeMap;

use handlescope_model::ProcessIdx;

use super::acquisitions::Acquisition;
use super::groups::InventoryGroup;
use crate::growth::{Lifetime, TimeParts, TimeWindow};

/// Numbers of open handles and allocations by process, kind and type, at the ends of equal parts of a time range.
pub struct OpenOverTime<'g> {
    parts: TimeParts,
    /// By process, kind and type.
    changes: BTreeMap<(Option<ProcessIdx>, &'g str, &'g str), Changes<'g>>,
}

/// How the number of open ones changes in each part of the time.
struct Changes<'g> {
    /// The first group with the process, kind and type.
    group: &'g InventoryGroup,
    count: Vec<i64>,
    bytes: Vec<i64>,
}

/// What is open at the end of a part of the time.
pub struct OpenAt<'g> {
    /// A group with the same process, kind and type.
    pub group: &'g InventoryGroup,
    /// Number of the part, from 1.
    pub step: usize,
    /// End of the part, nanoseconds since session start.
    pub at_ns: i64,
    pub open: i64,
    /// Their bytes, if they have any.
    pub bytes: i64,
}

impl<'g> OpenOverTime<'g> {
    /// Splits a time range into `steps` equal parts.
    pub fn new(window: TimeWindow, steps: usize) -> Self {
        Self { parts: TimeParts::new(window, steps), changes: BTreeMap::new() }
    }

    /// Adds the acquisitions of a group.
    pub fn add(&mut self, group: &'g InventoryGroup, acquisitions: &[Acquisition<'_>]) {
        if acquisitions.is_empty() {
            return;
        }
        let (key, width) = ((group.process, &*group.kind, &*group.type_name), self.parts.width());
        let changes = self.changes.entry(key).or_insert_with(|| Changes {
            group,
            count: vec![0; width],
            bytes: vec![0; width],
        });
        for acquisition in acquisitions {
            let closed_ns = acquisition.closed_ns.or(acquisition.ended_ns);
            let lifetime = Lifetime { opened_ns: acquisition.opened_ns, closed_ns };
            let (opened, closed) = self.parts.of_lifetime(lifetime);
            let count = i64::from(!acquisition.is_part);
            let bytes = acquisition.bytes.unwrap_or_default();
            for (part, sign) in std::iter::once((opened, 1)).chain(closed.map(|part| (part, -1))) {
                changes.count[part] += sign * count;
                let bytes = bytes.saturating_mul(sign);
                changes.bytes[part] = changes.bytes[part].saturating_add(bytes);
            }
        }
    }

    /// Returns what is open at the end of each part, by process, kind, type and time.
    pub fn rows(&self) -> impl Iterator<Item = OpenAt<'g>> {
        self.changes.values().flat_map(|Changes { group, count, bytes }| {
            let sums = self.parts.sums(count).into_iter().zip(self.parts.sums(bytes));
            (1..).zip(sums).map(|(step, (open, bytes))| OpenAt {
                group,
                step,
                at_ns: self.parts.end_of(step),
                open,
                bytes,
            })
        })
    }
}
