//! Payloads as sequences of fields, and the trace header, which is needed before any event.
//!
//! Decoders take an [`Event`](crate::etl::Event) and return plain values borrowed from it. They
//! accept longer payloads than they know and return `None` for shorter ones; nothing panics.

mod bytes;
mod trace_header;

pub use bytes::{Field, Payload, utf16_bytes, utf16_text};
pub use trace_header::{TimeZone, TraceHeader};
