//! Events of sessions as the decoder takes them.

use handlescope_extract::etl::{Event, EventId, Guid};
use handlescope_record::SessionEvent;

/// Process and thread ids of an event that does not know them.
const UNKNOWN: u32 = u32::MAX;

/// The same event.
pub fn decodable<'a>(event: &SessionEvent<'a>) -> Event<'a> {
    let guid = Guid(event.provider);
    let known = |id: u32| Some(id).filter(|id| *id != UNKNOWN);
    Event {
        id: match event.is_classic {
            true => EventId::Classic { guid, opcode: event.opcode },
            false => EventId::Manifest { guid, id: event.id },
        },
        version: event.version,
        time: event.time,
        pid: known(event.process_id),
        tid: known(event.thread_id),
        processor: event.processor,
        pointer_size: event.pointer_size.into(),
        payload: event.payload,
        extended: event.extended,
        offset: 0,
    }
}
