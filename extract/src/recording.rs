//! Open trace file: its header and buffers are known, its events are still to be read.

use std::io::Read as _;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{io, thread};

use handlescope_model::tables::{LossKind, is_ring};
use handlescope_model::{Cancel, Cancelled, ContainerLimits, ForeignContent, open_file};

use crate::error::ExtractError;
use crate::etl::{
    BUFFER_HEADER_SIZE, BufferHeader, BufferIndex, BufferTimes, Clock, Diagnostics, EtlFile, Event,
    EventLoss, EventReader, IndexedBuffer, LossSpan, ScanError, Selector, SessionClaims,
    SessionLayout, Sink, WarningKind, load, losses,
};
use crate::input::{Input, MINIDUMP_MAGIC};
use crate::options::ExtractOptions;
use crate::payload::TraceHeader;
use crate::recorded::RecordedTime;
use crate::source::SourceIdentity;

/// Properties of a trace before its events are read.
#[derive(Debug, Clone)]
pub struct Recording {
    pub source: PathBuf,
    /// File name of the `.etl`, even if it is in an archive.
    pub source_name: String,
    /// Identity of the source file before it was read.
    pub identity: SourceIdentity,
    pub header: TraceHeader,
    /// Clock of its raw timestamps.
    pub clock: Clock,
    pub buffers_found: u64,
    /// Time range the file covers; `None` until events are read, and if unknown.
    pub recorded: Option<RecordedTime>,
    /// Damage found so far.
    pub diagnostics: Diagnostics,
    /// Event losses; known once all events are read.
    pub losses: Vec<EventLoss>,
}

/// A [`Recording`] with events that can be read once.
pub struct OpenRecording {
    /// Properties of the recording.
    pub recording: Recording,
    file: EtlFile,
    pub index: BufferIndex,
    buffer_size: u32,
    threads: NonZeroUsize,
}

/// Bytes that must contain the trace header event; it has fewer than 400 and two short names.
const HEADER_EVENT_BYTES: usize = 64 << 10;

/// Smallest and largest plausible session buffers.
const PLAUSIBLE_BUFFER_SIZES: std::ops::RangeInclusive<u32> = 1 << 10..=64 << 20;

/// Largest usual session buffers.
const USUAL_BUFFER_SIZE: u32 = 1 << 20;

/// How much better archives pack than compressed buffers: these expand to 3 to 10 times their size.
const RATIO_SHARE: u64 = 10;

impl OpenRecording {
    /// Opens a trace (`.etl`, or an archive with one) and finds its buffers.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not start with a trace header.
    pub fn open(path: &Path) -> Result<Self, ExtractError> {
        Self::open_cancellable(path, &ExtractOptions::default().limits, &Cancel::default())
    }

    /// Opens a trace like [`Self::open`], with given limits, and stops when cancelled.
    pub fn open_cancellable(
        path: &Path,
        limits: &ContainerLimits,
        cancel: &Cancel,
    ) -> Result<Self, ExtractError> {
        cancel.check()?;
        let identity = identity_of(path)?;
        Self::from_input(Input::open(path, limits, cancel)?, path, identity, limits, cancel)
    }

    /// Opens the trace found at `path`; `identity` is what that file had before.
    ///
    /// # Errors
    /// Fails if the file cannot be read, does not start with a trace header, or `cancel` requests a stop.
    pub fn from_input(
        Input { file, name }: Input,
        path: &Path,
        identity: SourceIdentity,
        limits: &ContainerLimits,
        cancel: &Cancel,
    ) -> Result<Self, ExtractError> {
        let open = |source| ExtractError::Open { path: path.to_path_buf(), source };
        let file = EtlFile::new(file).map_err(open)?;
        let read = |source| ExtractError::Read { path: path.to_path_buf(), source };
        let mut start = Vec::new();
        file.read_at(0, BUFFER_HEADER_SIZE + HEADER_EVENT_BYTES, &mut start).map_err(read)?;
        if let Some(content) = ForeignContent::from_start(&start) {
            let is_named = path.file_name().is_some_and(|file_name| *file_name == *name);
            let member = (!is_named).then_some(name);
            return Err(ExtractError::Foreign { path: path.to_path_buf(), member, content });
        }
        if start.starts_with(MINIDUMP_MAGIC) {
            return Err(ExtractError::OnlyLoaded { path: path.to_path_buf() });
        }
        let (first, header) = first_buffer(path, &start)?;
        let clock = header.clock().ok_or_else(|| {
            not_a_trace(path, "invalid clock type or frequency", BUFFER_HEADER_SIZE)
        })?;
        let mut session = header.session();
        if !PLAUSIBLE_BUFFER_SIZES.contains(&session.buffer_size) {
            // The first buffer of a compressed file is smaller than the session's buffers.
            let least = if session.is_compressed() { USUAL_BUFFER_SIZE } else { 1 << 10 };
            session = SessionLayout { buffer_size: first.size.max(least), ..session };
        }
        let mut diagnostics = Diagnostics::default();
        let index = BufferIndex::scan(&file, session, &mut diagnostics, cancel).map_err(
            |error| match error {
                ScanError::Io(error) => read(error),
                ScanError::Cancelled(cancelled) => cancelled.into(),
            },
        )?;
        // Checked against the named file: an archive may pack well what then expands well again.
        let limits = ContainerLimits { ratio: limits.ratio / RATIO_SHARE, ..*limits };
        limits.check_content(path, identity.size, index.expanded_bytes())?;
        let recording = Recording {
            source: path.to_path_buf(),
            source_name: name,
            identity,
            clock,
            buffers_found: index.buffers_found,
            recorded: None,
            diagnostics: completeness(&header, &index, diagnostics),
            losses: Vec::new(),
            header,
        };
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Ok(Self { recording, file, index, buffer_size: session.buffer_size, threads })
    }

    /// Sets the number of threads that share the work of reading. The default is the number of processors.
    #[must_use]
    pub fn on_threads(self, threads: NonZeroUsize) -> Self {
        Self { threads, ..self }
    }

    /// Returns the size of the `.etl` in bytes.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether the file is empty; never true for an open recording.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// Returns the sum of the valid bytes in all buffers, after decompression and without headers.
    pub fn uncompressed_bytes(&self) -> u64 {
        let filled = |b: &crate::etl::IndexedBuffer| u64::from(b.header.filled);
        self.index.buffers.iter().map(|b| filled(b) - BUFFER_HEADER_SIZE as u64).sum()
    }

    /// Returns the number of bytes that any expanded buffer fits into.
    pub fn largest_buffer(&self) -> usize {
        let sizes =
            self.index.buffers.iter().map(|buffer| buffer.header.size.max(buffer.header.filled));
        sizes.chain([self.buffer_size]).max().unwrap_or_default() as usize
    }

    /// Returns the raw time from which on the file has all events, if a ring overwrote older ones, as far as this is
    /// known before the events are read.
    pub fn complete_from(&self) -> Option<i64> {
        let times: Vec<_> = self.index.buffers.iter().map(BufferTimes::begin).collect();
        let Recording { header, clock, .. } = &self.recording;
        RecordedTime::new(&times, header, clock)?.overwritten_to(clock)
    }

    /// Reads a buffer including its header into `bytes`, and expands it if it is compressed; `stored` is scratch
    /// memory.
    pub fn expanded(
        &self,
        buffer: &IndexedBuffer,
        stored: &mut Vec<u8>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ExtractError> {
        let read = load(&self.file, buffer, stored, bytes);
        read.map(drop).map_err(|source| self.unreadable(source))
    }

    /// Reads up to `size` bytes at an offset.
    pub fn read_at(
        &self,
        offset: u64,
        size: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ExtractError> {
        let read = self.file.read_at(offset, size, bytes);
        read.map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> ExtractError {
        ExtractError::Read { path: self.recording.source.clone(), source }
    }

    /// Hands out the selected events in time order, and returns the recording with all damage found.
    ///
    /// `progress` gets how many bytes of [`Self::len`] have been read, and says whether to go on.
    ///
    /// # Errors
    /// Fails if the file can no longer be read or was changed, or `progress` says to stop.
    pub fn read(
        self,
        selector: &mut dyn Selector,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        mut sink: impl FnMut(&Event<'_>),
    ) -> Result<Recording, ExtractError> {
        self.read_with(vec![selector], progress, &mut sink)
    }

    /// Hands out the selected events like [`Self::read`]. The buffers are divided among the selectors, so there can be
    /// as many decoding threads as selectors.
    ///
    /// # Errors
    /// Fails like [`Self::read`].
    pub fn read_with(
        self,
        selectors: Vec<&mut dyn Selector>,
        progress: impl FnMut(u64) -> ControlFlow<()>,
        sink: &mut impl Sink,
    ) -> Result<Recording, ExtractError> {
        let Self { mut recording, file, index, buffer_size, threads } = self;
        let reader = EventReader::new(file, index, recording.header.cpu_count, buffer_size)
            .on_threads(threads.get());
        let (flow, buffers) = reader
            .read(selectors, &mut recording.diagnostics, progress, sink)
            .map_err(|source| ExtractError::Read { path: recording.source.clone(), source })?;
        if flow.is_break() {
            return Err(ExtractError::Cancelled(Cancelled));
        }
        recording.check_unchanged()?;
        let times: Vec<_> = buffers.iter().map(|buffer| buffer.times).collect();
        recording.recorded = RecordedTime::new(&times, &recording.header, &recording.clock);
        recording.losses = losses(&buffers, recording.claims());
        if let Some(to) = recording.overwritten_to() {
            let span = Some(LossSpan { from: None, to: Some(to) });
            recording.losses.push(EventLoss::new(LossKind::Overwritten, span, None, None));
        }
        Ok(recording)
    }
}

impl Recording {
    /// Creates a recording of a running session from the TRACE_LOGFILE_HEADER of a 64-bit system and the raw time of
    /// the session's start; `None` if the header is malformed.
    pub fn for_session(name: &str, header: &[u8], base: i64) -> Option<Self> {
        let event =
            Event { id: TraceHeader::EVENT, time: base, payload: header, ..Event::default() };
        let header = TraceHeader::decode(&event)?;
        Some(Self {
            source: PathBuf::from(name),
            source_name: name.to_owned(),
            identity: SourceIdentity { size: 0, modified_ns: None, content: String::new() },
            clock: header.clock()?,
            buffers_found: 0,
            recorded: None,
            diagnostics: Diagnostics::default(),
            losses: Vec::new(),
            header,
        })
    }

    fn overwritten_to(&self) -> Option<i64> {
        self.recorded?.overwritten_to(&self.clock)
    }

    /// Returns what the session claims about its buffers.
    fn claims(&self) -> SessionClaims {
        let Self { header, diagnostics, clock, .. } = self;
        let unreadable = [WarningKind::BadBuffer, WarningKind::UnreadableRest];
        SessionClaims {
            is_stopped: header.end_time != 0,
            written: if header.end_time == 0 { 0 } else { header.buffers_written.into() },
            is_ring: is_ring(header.log_file_mode),
            processors: header.cpu_count,
            events_lost: header.events_lost.into(),
            buffers_lost: header.buffers_lost.into(),
            buffers_found: self.buffers_found,
            unreadable: unreadable.into_iter().map(|kind| diagnostics.of(kind)).sum(),
            clock_step: clock.step,
            overwritten_to: self.overwritten_to(),
        }
    }

    /// Fails if the source file was changed while it was read.
    pub fn check_unchanged(&self) -> Result<(), ExtractError> {
        if identity_of(&self.source)? == self.identity {
            return Ok(());
        }
        Err(ExtractError::Changed { path: self.source.clone() })
    }
}

/// Whether a file starts like a trace; its name does not matter.
///
/// # Errors
/// Fails if it cannot be read, or is a known file of another program.
pub fn is_trace(path: &Path) -> Result<bool, ExtractError> {
    let mut start = Vec::new();
    let bytes = (BUFFER_HEADER_SIZE + HEADER_EVENT_BYTES) as u64;
    open_file(path)
        .and_then(|file| file.take(bytes).read_to_end(&mut start))
        .map_err(|source| ExtractError::Open { path: path.to_path_buf(), source })?;
    match ForeignContent::from_start(&start) {
        Some(content) if content.is_known_format() => {
            Err(ExtractError::Foreign { path: path.to_path_buf(), member: None, content })
        }
        _ if start.starts_with(MINIDUMP_MAGIC) => {
            Err(ExtractError::OnlyLoaded { path: path.to_path_buf() })
        }
        _ => Ok(first_buffer(path, &start).is_ok()),
    }
}

fn identity_of(path: &Path) -> Result<SourceIdentity, ExtractError> {
    SourceIdentity::new(path)
        .map_err(|source| ExtractError::Open { path: path.to_path_buf(), source })
}

fn not_a_trace(path: &Path, reason: &'static str, offset: usize) -> ExtractError {
    ExtractError::NotATrace { path: path.to_path_buf(), reason, offset: offset as u64 }
}

/// Returns the first buffer's header and the trace header event after it.
fn first_buffer(path: &Path, start: &[u8]) -> Result<(BufferHeader, TraceHeader), ExtractError> {
    let buffer =
        BufferHeader::parse(start).map_err(|_| not_a_trace(path, "no buffer header", 0))?;
    let events = start.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let header = Event::first(events)
        .filter(|event| event.id == TraceHeader::EVENT)
        .and_then(|event| TraceHeader::decode(&event))
        .ok_or_else(|| not_a_trace(path, "no trace header event", BUFFER_HEADER_SIZE))?;
    Ok((buffer, header))
}

/// Compares the buffers of the file with the number that the session claims.
fn completeness(
    header: &TraceHeader,
    index: &BufferIndex,
    mut diagnostics: Diagnostics,
) -> Diagnostics {
    let written = u64::from(header.buffers_written);
    if !is_ring(header.log_file_mode) {
        let missing = written.saturating_sub(index.buffers_found);
        diagnostics.add(WarningKind::MissingBuffers, missing, None);
    }
    if header.end_time == 0 {
        diagnostics.count(WarningKind::NotClosed, None);
    }
    diagnostics
}
