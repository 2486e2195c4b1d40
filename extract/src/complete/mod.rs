//! Copies a trace, and adds the identities of its image files, which its session does not write, and the events of
//! further sessions from the same time.
//!
//! The additions are where a merge by Windows puts them: a record comes directly after its image event and has its
//! time, and all events of a processor are in time order. So readers of merged traces can read the copy.

mod further;
mod identities;
mod writer;

use std::collections::BTreeSet;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use handlescope_model::{Cancel, Reason};

use self::further::Further;
pub use self::identities::image_file_name;
use self::identities::{Identities, Locate};
use self::writer::{BufferWriter, CountedLosses, HeaderEvent};
use crate::error::ExtractError;
use crate::etl::{BUFFER_HEADER_SIZE, EventFrame, IndexedBuffer, frame, is_end};
use crate::options::{ExtractObserver, ExtractOptions};
use crate::recording::OpenRecording;

/// Type of buffers with events from while the session runs.
const EVENTS: u16 = 0;

/// What was added to a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdditionCounts {
    /// Image files with an identity that was read and matches the trace.
    pub identified: u64,
    /// Image files that could not be read, or have changed since the trace.
    pub unidentified: u64,
    /// Events of further traces.
    pub events: u64,
}

/// Why there is no completed copy.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ExtractError),
    /// A further trace has another clock than the first.
    #[error("its time stamps use another clock than the trace it belongs to")]
    ClockMismatch,
    /// The copy cannot be written.
    #[error("cannot write: {}", Reason(.0))]
    Write(#[from] io::Error),
}

/// Writes a copy of the trace `input` with the identities of its images and the events of the `further` traces;
/// `locate` finds the image files. Compressed buffers are written expanded; ranges of the file without events are left
/// out.
///
/// # Errors
/// Fails if a trace cannot be read, a further trace has another clock, `out` cannot be written, or `cancel` requests a
/// stop.
pub fn complete<W: Write + Seek>(
    input: &Path,
    further: &[PathBuf],
    locate: Locate<'_>,
    out: &mut W,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<AdditionCounts, CompleteError> {
    let open = opened(input, cancel)?;
    let header = &open.recording.header;
    let (clock, mut losses) = (open.recording.clock, CountedLosses::new(header));
    let mut size = open.largest_buffer();
    let mut further_recordings = Vec::new();
    for path in further {
        let next = opened(path, cancel)?;
        if (next.recording.clock.kind, next.recording.clock.frequency)
            != (clock.kind, clock.frequency)
        {
            return Err(CompleteError::ClockMismatch);
        }
        size = size.max(next.largest_buffer());
        losses.add(&next.recording.header);
        further_recordings.push(Further::new(next));
    }
    observer.on_started(open.len());
    let mut pass = Pass {
        out: BufferWriter::new(out, size),
        identities: Identities::new(locate),
        further: further_recordings,
        events: 0,
    };
    let mut buffers = open.index.buffers.clone();
    buffers.sort_by_key(|buffer| buffer.offset);
    let (mut stored, mut bytes, mut first) = (Vec::new(), Vec::new(), None);
    for buffer in &buffers {
        cancel.check().map_err(ExtractError::from)?;
        observer.on_progress(buffer.offset);
        open.expanded(buffer, &mut stored, &mut bytes)?;
        if first.is_none() {
            first = HeaderEvent::in_buffer(&bytes);
        }
        pass.buffer(&bytes, buffer)?;
    }
    pass.rest()?;
    let Pass { out, identities, events, .. } = pass;
    let (written, out) = out.finish();
    if let Some(first) = first {
        first.rewrite(out, size as u32, written, losses)?;
    }
    open.recording.check_unchanged()?;
    let (identified, unidentified) = identities.counts();
    Ok(AdditionCounts { identified, unidentified, events })
}

fn opened(path: &Path, cancel: &Cancel) -> Result<OpenRecording, ExtractError> {
    let limits = ExtractOptions::default().limits;
    let open = OpenRecording::open_cancellable(path, &limits, cancel)?;
    // A damaged trace may claim to expand without end.
    limits.check_content(path, open.len(), open.uncompressed_bytes())?;
    Ok(open)
}

/// Pass over the buffers of a trace.
struct Pass<'a, W> {
    out: BufferWriter<W>,
    identities: Identities<'a>,
    further: Vec<Further>,
    /// Events of further traces so far.
    events: u64,
}

impl<W: Write> Pass<'_, W> {
    /// Writes a buffer with the records and further events that belong into it. `bytes` includes the buffer header.
    fn buffer(&mut self, bytes: &[u8], buffer: &IndexedBuffer) -> Result<(), CompleteError> {
        let valid = bytes.len().min(buffer.header.filled as usize);
        let events = bytes.get(..valid).unwrap_or_default();
        self.out.begin(bytes);
        let (mut at, mut time) = (BUFFER_HEADER_SIZE, buffer.first_time);
        while let Some(rest) = events.get(at..).filter(|rest| !is_end(rest)) {
            let Ok(EventFrame { event, size, stride, .. }) = frame(rest, time) else {
                // No event after damage can be framed, so the rest is copied.
                self.out.push(rest)?;
                break;
            };
            time = event.time;
            if buffer.header.kind == EVENTS {
                self.earlier(buffer.header.processor, time)?;
            }
            self.out.push(rest.get(..size).unwrap_or(rest))?;
            let behind = rest.get(stride..).unwrap_or_default();
            for record in self.identities.of(&event, behind) {
                self.out.push(record)?;
            }
            at += stride;
        }
        Ok(self.out.end()?)
    }

    /// Writes a processor's events from further traces up to and including the time `until`.
    fn earlier(&mut self, processor: u16, until: i64) -> Result<(), CompleteError> {
        while let Some(further) = earliest(&mut self.further, processor, until)? {
            self.out.push(further.take(processor))?;
            self.events += 1;
        }
        Ok(())
    }

    /// Writes the remaining events of further traces.
    fn rest(&mut self) -> Result<(), CompleteError> {
        let processors: BTreeSet<u16> =
            self.further.iter().flat_map(|further| further.processors()).collect();
        for processor in processors {
            let Some(further) = earliest(&mut self.further, processor, i64::MAX)? else { continue };
            self.out.begin(further.header(processor));
            self.earlier(processor, i64::MAX)?;
            self.out.end()?;
        }
        Ok(())
    }
}

/// Returns the trace with a processor's earliest event, if that is not later than `until`.
fn earliest(
    further: &mut [Further],
    processor: u16,
    until: i64,
) -> Result<Option<&mut Further>, ExtractError> {
    let mut earliest_time = None;
    for (index, recording) in further.iter_mut().enumerate() {
        let time = recording.next_time(processor)?.filter(|time| *time <= until);
        if let Some(time) =
            time.filter(|time| earliest_time.is_none_or(|(earliest_time, _)| *time < earliest_time))
        {
            earliest_time = Some((time, index));
        }
    }
    Ok(earliest_time.and_then(|(_, index)| further.get_mut(index)))
}
