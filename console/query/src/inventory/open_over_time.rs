//! Numbers of open handles and allocations at equal steps over the time of a trace.

use std::collections::BTreeMap;

use handlescope_model::ProcessIdx;

use super::acquisitions::Acquisition;
use super::groups::InventoryGroup;
use crate::growth::{TimeParts, TimeWindow};

/// Process, kind and type.
type OpenSeriesKey = (Option<ProcessIdx>, String, String);

/// Numbers of open handles and allocations by process, kind and type, at the ends of equal parts of a time range.
pub struct OpenOverTime {
    window: TimeWindow,
    steps: usize,
    parts: TimeParts,
    changes: BTreeMap<OpenSeriesKey, Changes>,
}

/// How the number of open ones changes in each part of the time.
struct Changes {
    process_name: String,
    pid: Option<u32>,
    count: Vec<i64>,
    bytes: Vec<i64>,
}

/// What is open at the end of a part of the time.
pub struct OpenAt<'o> {
    pub process: Option<ProcessIdx>,
    pub process_name: &'o str,
    pub pid: Option<u32>,
    pub kind: &'o str,
    pub type_name: &'o str,
    /// Number of the part, from 1.
    pub step: usize,
    /// End of the part, nanoseconds since session start.
    pub at_ns: i64,
    pub open: i64,
    /// Their bytes, if they have any.
    pub bytes: i64,
}

impl OpenOverTime {
    /// Splits a time range into `steps` equal parts.
    pub fn new(window: TimeWindow, steps: usize) -> Self {
        Self { window, steps, parts: TimeParts::new(window, steps), changes: BTreeMap::new() }
    }

    /// Adds an acquisition of a group.
    pub fn add(&mut self, group: &InventoryGroup, acquisition: &Acquisition<'_>) {
        let key = (group.process, group.kind.clone(), group.type_name.clone());
        let width = self.parts.width();
        let changes = self.changes.entry(key).or_insert_with(|| Changes {
            process_name: group.process_name.clone(),
            pid: group.pid,
            count: vec![0; width],
            bytes: vec![0; width],
        });
        let bytes = acquisition.bytes.unwrap_or_default();
        let opened = self.parts.part_of(acquisition.opened_ns);
        let closed_ns = acquisition.closed_ns.or(acquisition.ended_ns);
        let closed = closed_ns.map(|ns| self.parts.part_of(ns).max(opened));
        let count = i64::from(!acquisition.is_part);
        for (part, sign) in [(Some(opened), 1), (closed, -1)] {
            let Some(part) = part else { continue };
            changes.count[part] += sign * count;
            changes.bytes[part] = changes.bytes[part].saturating_add(bytes.saturating_mul(sign));
        }
    }

    /// Returns what is open at the end of each part, by process, kind, type and time.
    pub fn rows(&self) -> impl Iterator<Item = OpenAt<'_>> {
        self.changes.iter().flat_map(move |((process, kind, type_name), changes)| {
            let counts = self.parts.sums(&changes.count).into_iter();
            let sums = counts.zip(self.parts.sums(&changes.bytes));
            (1..).zip(sums).map(move |(step, (open, bytes))| OpenAt {
                process: *process,
                process_name: &changes.process_name,
                pid: changes.pid,
                kind,
                type_name,
                step,
                at_ns: self.end_of(step),
                open,
                bytes,
            })
        })
    }

    fn end_of(&self, step: usize) -> i64 {
        let length = i128::from(self.window.length_ns()) * step as i128 / self.steps.max(1) as i128;
        self.window.start_ns.saturating_add(i64::try_from(length).unwrap_or(i64::MAX))
    }
}
