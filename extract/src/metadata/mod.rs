//! Metadata that a trace carries, and events decoded by it.
//!
//! Three kinds of schema say what the payload of an event consists of, in this order: the TraceLogging
//! schema in an extended item of the event, EventInfo records, and manifests of .NET's EventSource. Each
//! is compiled once into [`Fields`]; a payload is then read without an allocation of its own.
//!
//! A trace is trusted with nothing: whatever it claims, memory for metadata is bounded by a budget of
//! [`MAX_METADATA`] and the values of an event by the size of its payload.

mod decoded;
mod decoder;
mod event_info;
mod family;
mod fields;
mod items;
mod manifest;
mod map_info;
mod names;
mod node;
mod read;
mod reading;
mod text;
mod trace_logging;
mod xml;

pub use decoded::Decoded;
pub use decoder::{Decoder, Learned, MAX_METADATA};
pub use family::Metadata;
pub use fields::{Count, FieldKind, FieldPlan, Fields, Schema, SchemaId, SchemaSource};
#[cfg(test)]
pub(crate) use items::encoded_item;
pub use items::{ExtendedItem, extended_items};
pub use map_info::{EventMap, MapKind};
pub use names::SchemaNames;
pub use node::{Node, Nodes, Value};
pub use reading::{Extent, Form};
pub use text::line;
pub(crate) use text::sid_text;
pub use trace_logging::{event_name, provider_name, schema_item, traits_item};
