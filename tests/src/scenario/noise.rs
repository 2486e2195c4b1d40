//! Events that have nothing to do with handles.

use super::builder::TraceBuilder;
use crate::bytes::{Guid, PointerSize};
use crate::header::{
    ClassicEvent, HeaderKind, InstanceEvent, KernelEvent, ManifestEvent, Stamp, TraceMessage,
};
use crate::payload::{classic_noise, manifest_noise, profile_sample};
use crate::rng::Rng;

/// Kinds of unrelated events.
const KINDS: usize = 8;

impl TraceBuilder {
    /// Adds the configured number of unrelated events, up to `end` (nanoseconds).
    pub fn add_noise(&mut self, end: i64) {
        let (count, seed) = self.config.noise;
        let mut rng = Rng::new(seed);
        for n in 0..count {
            let time = self.options.raw(rng.below(end.max(1) as u64) as i64);
            let cpu = rng.below(self.options.cpus.into()) as u16;
            let bytes = noise(n % KINDS, time, &mut rng);
            self.add(time, cpu, None, bytes);
        }
    }
}

fn noise(kind: usize, time: i64, rng: &mut Rng) -> Vec<u8> {
    let stamp = Stamp::new(time, 600, 604);
    let payload: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
    match kind {
        0 => classic_noise(36, payload).event(PointerSize::Eight, stamp),
        1 => classic_noise(1, payload).event(PointerSize::Four, stamp),
        2 => manifest_noise(7, stamp, &[], payload).encode(),
        3 => manifest_noise(8, stamp, &[0xffff_f801_0000_0100, 0x7ff8_0000_0100], payload).encode(),
        4 => {
            let manifest = manifest_noise(9, stamp, &[], payload);
            ManifestEvent { pointer: PointerSize::Four, ..manifest }.encode()
        }
        5 => {
            let sample = profile_sample(PointerSize::Eight, 0xffff_f801_0000_0100, 604);
            sample.event(HeaderKind::PerfInfo, PointerSize::Eight, stamp)
        }
        6 => InstanceEvent {
            event: ClassicEvent { guid: Guid::new(1), stamp, payload, ..ClassicEvent::default() },
            instance: 1,
            ..InstanceEvent::default()
        }
        .encode(),
        _ => {
            // Half of them are software trace messages, half are kernel events with header extensions.
            if rng.percent(50) {
                return TraceMessage { number: 10, stamp: Some(stamp), payload, guid: None }
                    .encode();
            }
            KernelEvent {
                kind: HeaderKind::System,
                hook: 0x0b0f,
                version: 5,
                stamp,
                counters: vec![1, 2],
                extra: Some(3),
                payload,
                ..KernelEvent::default()
            }
            .encode()
        }
    }
}
