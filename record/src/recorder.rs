//! Traits that start sessions and deliver their events. A recording depends on these traits, not on Windows.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{
    error::{MergeError, SessionError},
    plan::SessionPlan,
};

/// An event as delivered by a session in real time (learn, `EVENT_RECORD`).
#[derive(Debug, Clone, Copy)]
pub struct SessionEvent<'a> {
    /// `ProviderId` with the bytes as in memory; for a classic event it is the GUID of the class.
    pub provider: [u8; 16],
    /// Whether it is a classic event, identified by an opcode instead of an id.
    pub is_classic: bool,
    pub id: u16,
    pub opcode: u8,
    pub version: u8,
    /// All ones if the event does not have it.
    pub process_id: u32,
    /// All ones if the event does not have it.
    pub thread_id: u32,
    pub processor: u16,
    /// Ticks of the performance counter.
    pub time: i64,
    /// Size of a pointer in the payload, bytes.
    pub pointer_size: u8,
    pub payload: &'a [u8],
    /// Extended items, one after the other as in a file.
    pub extended: &'a [u8],
}

/// Receives events on a thread of the session. It should not block, because events that it misses are lost.
pub type EventSink = Box<dyn FnMut(&SessionEvent<'_>) + Send>;

/// The header of a session whose events are read in real time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHeader {
    /// Bytes of its `TRACE_LOGFILE_HEADER` of a 64-bit system, as stored in a file.
    pub bytes: Vec<u8>,
    /// Value of the performance counter when the session started.
    pub base: i64,
}

/// How many buffers a session has written so far, and how many events and buffers it has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionStats {
    pub buffers_written: u32,
    pub events_lost: u32,
    pub buffers_lost: u32,
}

/// A stopped session.
#[derive(Debug)]
pub struct RecordingEnd {
    pub stats: SessionStats,
    /// Why the trace is unmerged and so lacks identities of images and the further traces; `None` if it has them or
    /// there is no trace.
    pub unmerged: Option<MergeError>,
    /// Traces of the same time whose events belong in the session's trace.
    pub further: FurtherTraces,
}

/// Traces in a temporary folder, which is removed when they are dropped.
#[derive(Debug, Default)]
pub struct FurtherTraces {
    files: Vec<PathBuf>,
    problem: Option<SessionError>,
    _folder: Option<TempDir>,
}

impl FurtherTraces {
    /// Creates a list of these files in this folder; `problem` says why one is missing, if so.
    pub fn new(
        files: Vec<PathBuf>,
        problem: Option<SessionError>,
        folder: TempDir,
    ) -> FurtherTraces {
        FurtherTraces { files, problem, _folder: Some(folder) }
    }

    /// Returns the paths of the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns why one of the files is missing, if so.
    pub fn problem(&self) -> Option<&SessionError> {
        self.problem.as_ref()
    }
}

/// Starts sessions.
pub trait Recorder {
    /// Starts a session. Its events also go to `events`, unless it is a ring.
    ///
    /// # Errors
    /// If Windows refuses, or this is not Windows.
    fn start(&self, plan: SessionPlan, events: EventSink)
    -> Result<Box<dyn Running>, SessionError>;
}

/// A running session. It ends when dropped.
pub trait Running {
    /// Returns the header of the session; `None` for a ring.
    fn header(&self) -> Option<&SessionHeader>;

    /// Returns the counts so far.
    ///
    /// # Errors
    /// If Windows does not say, for example because another tool stopped the session.
    fn stats(&self) -> Result<SessionStats, SessionError>;

    /// Stops the session; returns once its last event was delivered and its trace is complete.
    ///
    /// # Errors
    /// If Windows refuses, for example because the file cannot be written.
    fn stop(self: Box<Self>) -> Result<RecordingEnd, SessionError>;
}

/// Returns the recorder for this system: Windows sessions, or one that reports that this is not Windows.
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
