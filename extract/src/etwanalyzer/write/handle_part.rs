//! The handle part: objects with their events, in the order of the objects table.

use handlescope_model::tables::{Events, ExistingHandles, ObjectTypes, Objects};
use handlescope_model::{ArchiveError, EventKind, Texts, Trace};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::super::records::{ExistingRecord, ObjectRecord, TypeMap, rank};
use super::super::values::Rows;
use super::event::{self, Context, index};
use super::json::{TryEach, Window};

pub(super) struct HandlePart<'a> {
    pub(super) trace: &'a Trace,
    pub(super) types: &'a ObjectTypes,
    pub(super) names: &'a Texts,
    pub(super) context: Context<'a>,
}

impl Serialize for HandlePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(Some(2))?;
        part.serialize_entry("ObjectTypeMap", &TypeMap(self.types.clone()))?;
        let mut objects = ObjectRecords {
            objects: Window::new(self.trace),
            events: Window::new(self.trace),
            existing: Window::new(self.trace),
            names: self.names,
            context: self.context,
            next: 0,
        };
        part.serialize_entry("ObjectReferences", &TryEach::new(|| objects.next()))?;
        part.end()
    }
}

/// The objects of a trace one by one.
struct ObjectRecords<'a> {
    objects: Window<'a, Objects>,
    events: Window<'a, Events>,
    existing: Window<'a, ExistingHandles>,
    names: &'a Texts,
    context: Context<'a>,
    next: usize,
}

impl ObjectRecords<'_> {
    fn next(&mut self) -> Result<Option<ObjectRecord>, ArchiveError> {
        let Some(object) = self.objects.row(self.next)? else { return Ok(None) };
        self.next += 1;
        let rows = |first: u32, count: u32| first as usize..first as usize + count as usize;
        let name = object.name.and_then(|name| self.names.get(name.row()));
        // It has 16 bits there; an id that has more is none of Windows.
        let type_id = u16::try_from(object.type_id.0).unwrap_or_default();
        let mut record = ObjectRecord {
            pointer: Some(object.pointer as i64),
            name: name.map(str::to_owned),
            type_id: Some(type_id.into()),
            ..ObjectRecord::default()
        };
        let mut places = Vec::with_capacity(object.event_count.0.min(1 << 16) as usize);
        for row in rows(object.first_event.0, object.event_count.0) {
            let Some(event) = self.events.row(row)? else { break };
            // None for a kind of a later version.
            let kind = EventKind::from_code(event.kind);
            places.push((event.time_ns, kind.map(rank)));
            if let Some(kind) = kind {
                record.add(kind, event::record(&event, self.context));
            }
        }
        record.order = order_of_lists(&places).map(Rows);
        for row in rows(object.first_existing.0, object.existing_count.0) {
            let Some(handle) = self.existing.row(row)? else { break };
            record.existing.get_or_insert_default().push(ExistingRecord {
                // 32 bits there, as in the event.
                handle: Some(u64::from(handle.handle as u32)),
                process: Some(index(Some(handle.process))),
            });
        }
        Ok(Some(record))
    }
}

/// The places of the events in the order in which a reader puts them, by time, and at one time by
/// the list they stand in; nothing if they are in this order.
fn order_of_lists(places: &[(i64, Option<u8>)]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|at| places.get(*at));
    (!order.is_sorted()).then_some(order)
}
