//! Events of the requested providers, with their fields as typed values.

use super::declare::table;
use crate::column::Bytes;
use crate::index::{
    EventCountIdx, EventFieldIdx, EventValueIdx, ProcessIdx, ProviderEventIdx, RowCount, StackIdx,
};

table! {
    /// Columns of the provider events table, in time order; empty unless events of providers are kept.
    ProviderEvents => ProviderEvents,
    /// One event.
    ProviderEvent {
        /// Time of the event.
        ["ns since session start"] time_ns: i64,
        /// The process of its header; null when no process of this id is known.
        process: Option<ProcessIdx>,
        /// Process id of its header; null when it has none.
        pid: Option<u32>,
        /// Thread id of its header; null when it has none.
        tid: Option<u32>,
        /// Provider and name of the event.
        event: EventCountIdx,
        /// Its stack; null without one.
        stack: Option<StackIdx>,
        /// First value of the event.
        first_value: EventValueIdx,
        /// Number of values.
        value_count: RowCount<EventValueIdx>,
        /// Whether the payload ends before its fields do, or claims impossibly many values; incomplete values are left out.
        is_short: bool,
        /// Bytes of the payload after its fields.
        ["bytes"] rest: u32,
    }
}

table! {
    /// Columns of the event fields table: what values of events are called.
    EventFields => EventFields,
    /// A field of one version of an event.
    EventField {
        /// The event.
        event: EventCountIdx,
        /// Name; for a member of a structure with the structure's name in front, as in rcData.left.
        name: String,
        /// Kind of its values: signed; unsigned, hex, bool or filetime in the column unsigned; float; text, guid, sid or systemtime in the column text; binary in the column bytes; or structure, which has no values of its own.
        kind: String,
        /// The provider's map that names its values.
        map: Option<String>,
    }
}

table! {
    /// Columns of the event values table, by event in the order of the payload.
    EventValues => EventValues,
    /// A value of a field, in the column of its type.
    EventValue {
        /// The event.
        event: ProviderEventIdx,
        /// The field.
        field: EventFieldIdx,
        /// Number of the value among the values of its field in the event, from 0; null for a field that is not in an array.
        item: Option<u32>,
        /// A signed integer.
        signed: Option<i64>,
        /// An unsigned integer, pointer, truth value or FILETIME (100 ns since 1601).
        unsigned: Option<u64>,
        /// A floating point number.
        float: Option<f64>,
        /// A text, GUID, security identifier or SYSTEMTIME.
        text: Option<String>,
        /// Bytes.
        bytes: Option<Bytes>,
    }
}
