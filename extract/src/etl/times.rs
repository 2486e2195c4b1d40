//! From when to when each buffer has events, by which is known what a ring kept.

use super::buffer::IndexedBuffer;
use super::event::{Event, EventId};

/// The raw times of the events in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferTimes {
    pub processor: u16,
    /// The number of the buffer in its session.
    pub number: u64,
    /// Its bytes that are filled.
    pub bytes: u32,
    /// Of kernel events beside those of processes, threads and images, which go with every session.
    pub kernel: Option<Times>,
    /// Of all kernel events and of those of providers.
    pub all: Option<Times>,
}

/// Raw times of some events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The first event that happened at its time, if there is one; those of rundowns are not.
    pub first: Option<i64>,
    pub last: i64,
}

impl BufferTimes {
    /// A buffer without events.
    pub(super) fn of(buffer: &IndexedBuffer) -> Self {
        let header = &buffer.header;
        let (processor, number, bytes) = (header.processor, header.sequence, header.filled);
        Self { processor, number, bytes, kernel: None, all: None }
    }

    /// What is known of a buffer before its events are read: when it begins.
    pub(crate) fn begin(buffer: &IndexedBuffer) -> Self {
        let time = buffer.first_time;
        let times =
            buffer.header.has_session_events().then_some(Times { first: Some(time), last: time });
        Self { kernel: times, all: times, ..Self::of(buffer) }
    }

    /// Takes the next event of the buffer.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let (is_kernel, is_listed) = match event.id {
            EventId::Hook(hook) if is_of_session(hook) => return,
            EventId::Hook(hook) => {
                (!matches!(hook >> 8, PROCESS | THREAD | IMAGE), is_listed(hook))
            }
            EventId::Manifest { .. } => (false, false),
            // A merge adds facts of the system and of images as classic events, at any time.
            EventId::Classic { .. } | EventId::Message => return,
        };
        let add = |times: &mut Option<Times>| {
            let times = times.get_or_insert(Times { first: None, last: event.time });
            times.last = times.last.max(event.time);
            if !is_listed {
                times.first.get_or_insert(event.time);
            }
        };
        add(&mut self.all);
        if is_kernel {
            add(&mut self.kernel);
        }
    }
}

/// Groups of kernel events: `group << 8 | opcode` is a hook id.
const HEADER: u16 = 0x00;
const PROCESS: u16 = 0x03;
const THREAD: u16 = 0x05;
const SYSTEM_CONFIG: u16 = 0x0b;
const IMAGE: u16 = 0x14;

/// Facts of the session and of the system, which a session writes with the time of its start.
fn is_of_session(hook: u16) -> bool {
    matches!(hook >> 8, HEADER | SYSTEM_CONFIG)
}

/// Rundowns list what is there, at the start of a session or at its end, on the processor that does so: those of
/// processes, threads, images, views, types and handles, of exited processes, of kernel bases, and of stack keys.
fn is_listed(hook: u16) -> bool {
    matches!(
        hook,
        0x0303 | 0x0304 | 0x0327 | 0x0427 | 0x0428 | 0x0503 | 0x0504 | 0x1124
            ..=0x1127 | 0x1403 | 0x1404 | 0x1421 | 0x1422 | 0x1824
    )
}
