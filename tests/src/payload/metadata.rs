//! Event metadata: EventInfo records, TraceLogging schemas, manifest chunks.
//!
//! Layouts: TRACE_EVENT_INFO of `tdh.h`, TraceLoggingProvider.h, ManifestEnvelope of dotnet/runtime.

use crate::bytes::{ByteString, Guid, PointerSize};
use crate::header::{ClassicEvent, ExtendedItem, ManifestEvent, Stamp};

/// The provider of EventInfo records.
const METADATA_PROVIDER: Guid = Guid::new(0xbbccf6c1_6cd1_48c4_80ff_839482e37671);

/// An EventInfo record for an event without versions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventInfo {
    pub provider: Guid,
    pub provider_name: String,
    pub id: u16,
    pub version: u8,
    pub task: String,
    /// Name of the opcode; empty for opcode 0.
    pub opcode: String,
    /// Names and in-types (`tdh.h`) of its fields.
    pub fields: Vec<(String, u16)>,
}

impl EventInfo {
    /// Returns the bytes of the event that carries the record.
    #[must_use]
    pub fn event(&self, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        let payload = self.record();
        let (guid, opcode) = (METADATA_PROVIDER, 32);
        ClassicEvent { pointer, guid, opcode, stamp, payload, ..ClassicEvent::default() }.encode()
    }

    fn record(&self) -> Vec<u8> {
        let start = 112 + 24 * self.fields.len();
        let mut texts = ByteString::new();
        let mut offset = |text: &str| {
            let offset = (start + texts.len()) as u32;
            texts = std::mem::take(&mut texts).utf16z(text);
            offset
        };
        let (provider, task) = (offset(&self.provider_name), offset(&self.task));
        let opcode = if self.opcode.is_empty() { 0 } else { offset(&self.opcode) };
        let mut properties = ByteString::new();
        for (name, in_type) in &self.fields {
            let (name, properties_before) = (offset(name), std::mem::take(&mut properties));
            properties =
                properties_before.u32(0).u32(name).u16(*in_type).u16(0).u32(0).u16(1).u16(0).u32(0);
        }
        ByteString::new()
            .guid(self.provider)
            .guid(Guid::default())
            .u16(self.id)
            .u8(self.version)
            .zeros(2)
            .u8(u8::from(opcode != 0) * 10)
            .zeros(14)
            .u32(provider)
            .zeros(12)
            .u32(task)
            .u32(opcode)
            .zeros(24)
            .u32(self.fields.len() as u32)
            .u32(self.fields.len() as u32)
            .u32(0)
            .raw(&properties.into_vec())
            .raw(&texts.into_vec())
            .into_vec()
    }
}

/// Returns the items of a TraceLogging event: its name with the encoded fields of the schema, and its provider.
#[must_use]
pub fn trace_logging(name: &str, fields: &[u8], provider: &str) -> Vec<ExtendedItem> {
    let item = |kind, body: Vec<u8>| {
        let size = (body.len() + 2) as u16;
        ExtendedItem { kind, data: ByteString::new().u16(size).raw(&body).into_vec() }
    };
    let schema = [&[0], name.as_bytes(), &[0], fields].concat();
    vec![item(12, [provider.as_bytes(), &[0]].concat()), item(11, schema)]
}

/// Returns the chunks of a manifest, as a provider sends them from a process.
#[must_use]
pub fn manifest_chunks(provider: Guid, xml: &str, chunk: usize, stamp: Stamp) -> Vec<Vec<u8>> {
    let chunks: Vec<&[u8]> = xml.as_bytes().chunks(chunk).collect();
    let total = chunks.len() as u16;
    let event = |(number, part): (u16, &&[u8])| {
        let head = ByteString::new().u8(1).u8(1).u8(0).u8(0x5B).u16(total).u16(number);
        let payload = head.raw(part).into_vec();
        ManifestEvent { provider, id: 65534, opcode: 254, stamp, payload, ..Default::default() }
            .encode()
    };
    (0..).zip(&chunks).map(event).collect()
}
