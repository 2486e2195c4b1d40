//! Manifests that an EventSource writes into the trace, in chunks (event 65534, ManifestEnvelope of
//! dotnet/runtime).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::fields::{Schema, SchemaId};
use super::xml;
use crate::etl::{Event, EventId, Guid};
use crate::payload::Payload;

/// The id of the event that has a chunk.
pub(super) const CHUNK: u16 = 65534;

/// ManifestEnvelope.ManifestFormats.SimpleXmlFormat, and its magic number.
const XML: u8 = 1;
const MAGIC: u8 = 0x5B;

/// Largest manifest, and most bytes of manifests whose chunks did not all come yet. .NET sends 100 KiB.
const MAX_MANIFEST: usize = 16 << 20;
const MAX_PENDING: usize = 2 * MAX_MANIFEST;

/// What a chunk takes beside its bytes.
const CHUNK_COST: usize = 128;

/// Most processes that are distinguished.
const MAX_PROCESSES: usize = 1 << 16;

/// Chunks of a manifest until all are there.
#[derive(Default)]
struct Pending {
    total: u16,
    chunks: BTreeMap<u16, Vec<u8>>,
    cost: usize,
}

/// The events of one manifest.
type Events = FxHashMap<(u16, u8), SchemaId>;

/// What became of a chunk.
pub(super) enum Chunk {
    /// It is none: another format, or without content.
    Other,
    /// Others are missing.
    Kept,
    /// It makes no sense, or is too much.
    Refused,
    /// It was the last one of this manifest, which has its hash.
    Complete(Vec<u8>, [u8; 32]),
}

/// Manifests by provider and process.
#[derive(Default)]
pub(super) struct Manifests {
    pending: FxHashMap<(Guid, Option<u32>), Pending>,
    pending_cost: usize,
    manifests: Vec<Events>,
    by_content: FxHashMap<(Guid, [u8; 32]), u32>,
    by_process: FxHashMap<(Guid, Option<u32>), u32>,
    /// The manifest of any process, for one that sent none.
    by_provider: FxHashMap<Guid, u32>,
}

impl Manifests {
    /// Takes an event [`CHUNK`].
    pub(super) fn chunk(&mut self, event: &Event<'_>) -> Chunk {
        let EventId::Manifest { guid, .. } = event.id else { return Chunk::Other };
        let mut p = Payload::of(event);
        let head = (p.u8(), p.u8(), p.u8(), p.u8());
        if !matches!(head, (Some(XML), Some(_), Some(_), Some(MAGIC))) {
            return Chunk::Other;
        }
        let (Some(total), Some(number)) = (p.u16(), p.u16()) else { return Chunk::Refused };
        if number >= total {
            return Chunk::Refused;
        }
        let key = (guid, event.pid);
        let pending = self.pending.entry(key).or_default();
        if pending.total != total || pending.chunks.contains_key(&number) {
            // It is sent again, from its beginning.
            self.pending_cost -= pending.cost;
            *pending = Pending { total, ..Pending::default() };
        }
        let cost = p.rest().len() + CHUNK_COST;
        if pending.cost + cost > MAX_MANIFEST || self.pending_cost + cost > MAX_PENDING {
            self.pending_cost -= pending.cost;
            self.pending.remove(&key);
            return Chunk::Refused;
        }
        pending.cost += cost;
        self.pending_cost += cost;
        pending.chunks.insert(number, p.rest().to_vec());
        if pending.chunks.len() < usize::from(total) {
            return Chunk::Kept;
        }
        self.pending_cost -= pending.cost;
        let chunks = self.pending.remove(&key).map(|pending| pending.chunks).unwrap_or_default();
        let text: Vec<u8> = chunks.into_values().flatten().collect();
        let hash = Sha256::digest(&text).into();
        Chunk::Complete(text, hash)
    }

    /// Gives a process a manifest that is known already; returns whether it is.
    pub(super) fn is_known(&mut self, guid: Guid, pid: Option<u32>, hash: [u8; 32]) -> bool {
        let Some(manifest) = self.by_content.get(&(guid, hash)).copied() else { return false };
        self.give(guid, pid, manifest);
        true
    }

    /// Adds a manifest, whose schemas have these numbers.
    pub(super) fn add(&mut self, guid: Guid, pid: Option<u32>, hash: [u8; 32], events: Events) {
        let manifest = self.manifests.len() as u32;
        self.manifests.push(events);
        self.by_content.insert((guid, hash), manifest);
        self.give(guid, pid, manifest);
    }

    fn give(&mut self, guid: Guid, pid: Option<u32>, manifest: u32) {
        if self.by_process.len() < MAX_PROCESSES || self.by_process.contains_key(&(guid, pid)) {
            self.by_process.insert((guid, pid), manifest);
        }
        self.by_provider.insert(guid, manifest);
    }

    /// The schema of an event of a process.
    pub(super) fn find(
        &self,
        guid: Guid,
        pid: Option<u32>,
        id: u16,
        version: u8,
    ) -> Option<SchemaId> {
        let own = self.by_process.get(&(guid, pid));
        let manifest = own.or_else(|| self.by_provider.get(&guid))?;
        self.manifests.get(*manifest as usize)?.get(&(id, version)).copied()
    }
}

/// The schemas of a manifest; `None` when its XML makes no sense.
pub(super) fn schemas(guid: Guid, text: &[u8]) -> Option<Vec<Schema>> {
    xml::parse(text).map(|manifest| manifest.schemas(guid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: Guid = Guid([4; 16]);

    fn send(manifests: &mut Manifests, pid: u32, total: u16, number: u16, text: &[u8]) -> Chunk {
        let mut payload = vec![XML, 1, 0, MAGIC];
        payload.extend(total.to_le_bytes());
        payload.extend(number.to_le_bytes());
        payload.extend(text);
        let id = EventId::Manifest { guid: GUID, id: CHUNK };
        manifests.chunk(&Event { id, pid: Some(pid), payload: &payload, ..Event::default() })
    }

    fn complete(chunk: Chunk) -> Option<Vec<u8>> {
        match chunk {
            Chunk::Complete(text, _) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn chunks_of_processes_are_joined_apart() {
        let mut manifests = Manifests::default();
        assert!(complete(send(&mut manifests, 1, 2, 0, b"ab")).is_none());
        assert!(complete(send(&mut manifests, 2, 2, 0, b"xy")).is_none());
        assert_eq!(complete(send(&mut manifests, 1, 2, 1, b"c")), Some(b"abc".to_vec()));
        assert_eq!(complete(send(&mut manifests, 2, 2, 1, b"z")), Some(b"xyz".to_vec()));
        assert_eq!(manifests.pending_cost, 0);
    }

    #[test]
    fn a_manifest_that_begins_again_forgets_its_first_chunks() {
        let mut manifests = Manifests::default();
        send(&mut manifests, 1, 3, 0, b"old");
        assert!(complete(send(&mut manifests, 1, 2, 0, b"a")).is_none());
        assert_eq!(complete(send(&mut manifests, 1, 2, 1, b"b")), Some(b"ab".to_vec()));
    }

    #[test]
    fn numbers_that_lie_are_refused_and_other_formats_are_no_manifests() {
        let mut manifests = Manifests::default();
        assert!(matches!(send(&mut manifests, 1, 2, 2, b"a"), Chunk::Refused));
        assert!(matches!(send(&mut manifests, 1, 0, 0, b"a"), Chunk::Refused));
        let id = EventId::Manifest { guid: GUID, id: CHUNK };
        for payload in [&[0; 32][..], b"", &[XML, 1, 0]] {
            let event = Event { id, payload, ..Event::default() };
            assert!(matches!(manifests.chunk(&event), Chunk::Other));
        }
    }

    #[test]
    fn chunks_that_never_end_take_bounded_memory() {
        let mut manifests = Manifests::default();
        let chunk = vec![b' '; 60_000];
        let mut refused = 0;
        for pid in 0..40 {
            for number in 0..60 {
                let kept = send(&mut manifests, pid, u16::MAX, number, &chunk);
                refused += u32::from(matches!(kept, Chunk::Refused));
                assert!(manifests.pending_cost <= MAX_PENDING);
            }
        }
        assert!(refused > 0);
    }
}
