//! The program's answers about a trace.

use std::collections::BTreeMap;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::rules::{OPENING, OPENING_HANDLES};
use handlescope_model::tables::{Events, Processes, TraceInfos};
use handlescope_model::{Cancel, EventKind, TableRows, Trace, sentinel};
use handlescope_sources::extract;

/// Counts of handles or views, by process name.
pub type ByProcess = BTreeMap<String, u64>;

/// Counts of handles and views by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandleTotals {
    /// Handles that were created or duplicated.
    pub opened: u64,
    /// Handles and views that were closed.
    pub closed: u64,
    pub leaked: ByProcess,
    pub closed_at_exit: ByProcess,
    pub leaked_views: ByProcess,
}

/// Number of objects and views, and how many of them ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    pub created: u64,
    pub ended: u64,
}

pub struct ModelAnswer {
    pub handles: HandleTotals,
    pub objects: ObjectCounts,
    /// For each opened handle, by its time in nanoseconds, whether it leaks.
    pub opened: BTreeMap<i64, bool>,
    /// Number of handles that were closed by events missing from the trace.
    pub unseen: usize,
    /// From this time on, the trace has the events of all processors.
    pub recorded_from_ns: i64,
    /// Number of handles in the rundown at the end.
    pub existing: usize,
}

impl ModelAnswer {
    /// Extracts the trace and counts what is in the tables.
    pub fn new(etl: &[u8]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (input, output) = (home.path().join("t.etl"), home.path().join("t.json7z"));
        std::fs::write(&input, etl).unwrap();
        extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default())
            .unwrap();
        let trace = Trace::open(&output).unwrap();
        let names: Vec<String> =
            Processes::read(&trace).unwrap().rows().map(|process| process.name).collect();
        let order = trace.event_order().unwrap();
        let count = |events: &[u32]| {
            events.iter().take(order.objects).filter(|event| **event != sentinel()).count() as u64
        };
        let objects = ObjectCounts { created: count(&order.create), ended: count(&order.destroy) };
        let mut handles = HandleTotals::default();
        let (mut opened, mut unseen) = (BTreeMap::new(), 0);
        for event in Events::read(&trace).unwrap().rows() {
            let kind = EventKind::from_code(event.kind).unwrap();
            let is_handle = OPENING_HANDLES.contains(kind);
            if !OPENING.contains(kind) {
                continue;
            }
            let name = &names[event.inherited_by.unwrap_or(event.process).row()];
            let count = |counts: &mut ByProcess| *counts.entry(name.clone()).or_default() += 1;
            handles.opened += u64::from(is_handle);
            handles.closed += u64::from(event.closing_event.is_some());
            match (is_handle, event.leaked) {
                (true, true) => count(&mut handles.leaked),
                (false, true) => count(&mut handles.leaked_views),
                _ => {}
            }
            if event.closed_at_exit {
                count(&mut handles.closed_at_exit);
            }
            if is_handle {
                unseen += usize::from(event.closed_unseen.is_some());
                opened.insert(event.time_ns, event.leaked);
            }
        }
        let recorded_from_ns = trace.values(TraceInfos::recorded_from_ns).unwrap().get(0);
        Self {
            handles,
            objects,
            opened,
            unseen,
            recorded_from_ns: recorded_from_ns.unwrap_or_default(),
            existing: order.listed.len(),
        }
    }
}
