//! Metadata that a trace carries, and events decoded by it.
//!
//! Three kinds of schema say what the payload of an event consists of, in this order: the TraceLogging
//! schema in an extended item of the event, EventInfo records, and manifests of .NET's EventSource. Each
//! is compiled once into [`Fields`]; a payload is then read without an allocation.
//!
//! A trace is not trusted: memory for metadata is bounded by a budget of
//! [`MAX_METADATA`] and the values of an event by the size of its payload.

mod decoder;
mod event_info;
mod fields;
mod manifest;
mod node;
mod read;
mod trace_logging;

pub use decoder::{Decoder, Learned, MAX_METADATA, Metadata, SchemaNames};
pub use event_info::{EventMap, MapKind};
pub use fields::{
    Count, Extent, FieldKind, FieldPlan, Fields, Form, Schema, SchemaId, SchemaSource,
};
pub use node::sid_text;
pub use node::{Decoded, Node, Nodes, Value, line};
#[cfg(test)]
pub use trace_logging::encoded_item;
pub use trace_logging::{
    ExtendedItem, event_name, extended_items, provider_name, schema_item, traits_item,
};
