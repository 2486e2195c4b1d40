//! Traits that start sessions and hand out their events. A recording knows these traits and not
//! Windows.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{
    error::{MergeError, SessionError},
    plan::SessionPlan,
};

/// An event as a session in real time hands it out (learn, `EVENT_RECORD`).
#[derive(Debug, Clone, Copy)]
pub struct SessionEvent<'a> {
    /// `ProviderId`, in the order of bytes that it has in memory: for a classic event the GUID of its class.
    pub provider: [u8; 16],
    /// Whether it is a classic event, which an opcode names, not an id.
    pub is_classic: bool,
    pub id: u16,
    pub opcode: u8,
    pub version: u8,
    /// All ones where the event does not know it.
    pub process_id: u32,
    /// All ones where the event does not know it.
    pub thread_id: u32,
    pub processor: u16,
    /// Ticks of the performance counter.
    pub time: i64,
    /// Bytes of a pointer in the payload.
    pub pointer_size: u8,
    pub payload: &'a [u8],
    /// Extended items, one after the other as in a file.
    pub extended: &'a [u8],
}

/// Sink for events, called on a thread of the session. It should not wait: events that it misses
/// are lost.
pub type EventSink = Box<dyn FnMut(&SessionEvent<'_>) + Send>;

/// Header of a session when events are read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHeader {
    /// Bytes of its `TRACE_LOGFILE_HEADER` of a 64-bit system, as stored in a file.
    pub bytes: Vec<u8>,
    /// The performance counter when the session started.
    pub base: i64,
}

/// Counts of events and buffers that a session wrote and lost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    pub buffers_written: u32,
    pub events_lost: u32,
    pub buffers_lost: u32,
}

/// A session that was stopped.
#[derive(Debug)]
pub struct Stopped {
    pub stats: Stats,
    /// Reason that the trace is unmerged, without identities of images and the further traces;
    /// `None` when it has them, or there is no trace.
    pub unmerged: Option<MergeError>,
    /// Traces of the same time whose events belong into that of the session.
    pub further: FurtherTraces,
}

/// Traces in a folder for temporary files, which goes when they are dropped.
#[derive(Debug, Default)]
pub struct FurtherTraces {
    files: Vec<PathBuf>,
    problem: Option<SessionError>,
    _folder: Option<TempDir>,
}

impl FurtherTraces {
    /// Creates the list of these files in this folder; `problem` is why one is missing, if one is.
    pub fn new(
        files: Vec<PathBuf>,
        problem: Option<SessionError>,
        folder: TempDir,
    ) -> FurtherTraces {
        FurtherTraces { files, problem, _folder: Some(folder) }
    }

    /// Paths of the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Reason that one of them is missing.
    pub fn problem(&self) -> Option<&SessionError> {
        self.problem.as_ref()
    }
}

/// Starts sessions.
pub trait Recorder {
    /// Starts a session. Its events go to `events` too, unless it is a ring.
    ///
    /// # Errors
    /// When Windows refuses, or this is not Windows.
    fn start(&self, plan: SessionPlan, events: EventSink)
    -> Result<Box<dyn Running>, SessionError>;
}

/// A session that runs. It ends when it is dropped.
pub trait Running {
    /// Header of the session; `None` for a ring.
    fn header(&self) -> Option<&SessionHeader>;

    /// Counts of events and buffers written and lost so far.
    ///
    /// # Errors
    /// When Windows does not say, as when another tool stopped it.
    fn stats(&self) -> Result<Stats, SessionError>;

    /// Stops it, and returns when its last event was handed out and its trace is whole.
    ///
    /// # Errors
    /// When Windows refuses, as when the file cannot be written.
    fn stop(self: Box<Self>) -> Result<Stopped, SessionError>;
}

/// The recorder of this system: sessions of Windows, or one that says that this is not Windows.
pub fn recorder() -> &'static dyn Recorder {
    #[cfg(windows)]
    return &crate::session::Windows;
    #[cfg(not(windows))]
    return &elsewhere::Elsewhere;
}

#[cfg(not(windows))]
mod elsewhere {
    use std::env::consts::OS;

    use crate::{
        error::SessionError,
        plan::SessionPlan,
        recorder::{EventSink, Recorder, Running},
    };

    pub struct Elsewhere;

    impl Recorder for Elsewhere {
        fn start(&self, _: SessionPlan, _: EventSink) -> Result<Box<dyn Running>, SessionError> {
            Err(SessionError::NotWindows { system: OS })
        }
    }
}
