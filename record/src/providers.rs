//! Sessions of providers, on Windows.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use ferrisetw::{
    GUID, UserTrace,
    native::EvntraceNativeError,
    provider::Provider,
    trace::{
        DumpFileLoggingMode, DumpFileParams, LoggingMode, TraceError, TraceProperties,
        stop_trace_by_name,
    },
};
use tempfile::TempDir;

use crate::{
    dot_net::{Begin, ProviderSession},
    error::SessionError,
    recorder::FurtherTraces,
};

/// The longest path that ferrisetw passes on completely, in UTF-16 units.
const MAX_PATH_LENGTH: usize = 200;

/// A rundown is over once no event came for this long, because each process begins its own when it gets to it.
const QUIET: Duration = Duration::from_secs(3);

/// Maximum time of a rundown (learn, "CLR ETW Providers", advises 30 to 60 seconds).
const MAX_RUNDOWN: Duration = Duration::from_secs(60);

/// How often the arrival of more events is checked.
const TICK: Duration = Duration::from_millis(100);

/// `ERROR_FILENAME_EXCED_RANGE`, `ERROR_CANNOT_MAKE` and `ERROR_INVALID_HANDLE` (learn, `System Error Codes`).
const NAME_TOO_LONG: u32 = 206;
const CANNOT_MAKE: u32 = 82;
const INVALID_HANDLE: u32 = 6;

/// Sessions that run beside the kernel's. They end when dropped.
pub struct Providers {
    folder: TempDir,
    sessions: Vec<ProviderSession>,
    running: Vec<UserTrace>,
}

impl Providers {
    /// Starts the sessions that begin with the recording.
    pub fn start(sessions: &[ProviderSession]) -> Result<Option<Providers>, SessionError> {
        if sessions.is_empty() {
            return Ok(None);
        }
        let folder = tempfile::Builder::new().prefix("handlescope-").tempdir();
        let folder = folder.map_err(|_| failed("CreateDirectoryW", CANNOT_MAKE))?;
        let mut providers = Providers { folder, sessions: sessions.to_vec(), running: Vec::new() };
        providers.begin(Begin::WithRecording)?;
        Ok(Some(providers))
    }

    /// Records what is written at the end, then ends all sessions.
    pub fn finish(mut self) -> FurtherTraces {
        let begun = self.begin(Begin::AtEnd);
        if let Ok(events) = &begun {
            wait_until_quiet(events);
        }
        for session in self.running {
            // A session that another tool has stopped has already written its file.
            let _ = session.stop();
        }
        let files: Vec<PathBuf> = self
            .sessions
            .iter()
            .map(|session| self.folder.path().join(session.log_file))
            .filter(holds_bytes)
            .collect();
        FurtherTraces::new(files, begun.err(), self.folder)
    }

    /// Starts the sessions that begin at this time; returns the counter of their events.
    fn begin(&mut self, begin: Begin) -> Result<Arc<AtomicU64>, SessionError> {
        let events = Arc::new(AtomicU64::new(0));
        for session in self.sessions.iter().filter(|session| session.begin == begin) {
            let file = self.folder.path().join(session.log_file);
            if file.to_string_lossy().encode_utf16().count() > MAX_PATH_LENGTH {
                return Err(failed("StartTraceW", NAME_TOO_LONG));
            }
            self.running.push(start(session, file, &events)?);
        }
        Ok(events)
    }
}

/// Starts a session, after ending one with the same name that a crashed program left behind.
fn start(
    session: &ProviderSession,
    file: PathBuf,
    events: &Arc<AtomicU64>,
) -> Result<UserTrace, SessionError> {
    let started = match built(session, file.clone(), events) {
        Err(TraceError::EtwNativeError(EvntraceNativeError::AlreadyExist)) => {
            let _ = stop_trace_by_name(session.logger);
            built(session, file, events)
        }
        started => started,
    };
    started.map_err(|error| {
        // If ferrisetw cannot get the provider or the events, it leaves the session running.
        let _ = stop_trace_by_name(session.logger);
        reason(&error)
    })
}

/// Builds and starts a session. ferrisetw not only writes the file but also reads every session in real time; that
/// serves to count the events.
fn built(
    session: &ProviderSession,
    file_path: PathBuf,
    events: &Arc<AtomicU64>,
) -> Result<UserTrace, TraceError> {
    let counter = Arc::clone(events);
    let provider = Provider::by_guid(GUID::from_u128(session.provider.guid.0))
        .any(session.provider.keywords.value)
        .level(session.provider.level)
        .add_callback(move |_, _| {
            counter.fetch_add(1, Relaxed);
        })
        .build();
    let file_logging_mode = DumpFileLoggingMode::EVENT_TRACE_FILE_MODE_SEQUENTIAL;
    UserTrace::new()
        .named(session.logger.to_owned())
        .set_trace_properties(TraceProperties {
            buffer_size: session.buffer_kib,
            min_buffer: session.minimum_buffers,
            max_buffer: session.maximum_buffers,
            flush_timer: Duration::from_secs(1),
            // Buffers per processor, like the kernel's; without them, events would have no processor.
            log_file_mode: LoggingMode::EVENT_TRACE_REAL_TIME_MODE,
        })
        .set_etl_dump_file(DumpFileParams { file_path, file_logging_mode, max_size: None })
        .enable(provider)
        .start_and_process()
}

fn wait_until_quiet(events: &AtomicU64) {
    let begin = Instant::now();
    let (mut seen, mut last) = (0, begin);
    while last.elapsed() < QUIET && begin.elapsed() < MAX_RUNDOWN {
        thread::sleep(TICK);
        let now = events.load(Relaxed);
        if now != seen {
            (seen, last) = (now, Instant::now());
        }
    }
}

fn reason(error: &TraceError) -> SessionError {
    let TraceError::EtwNativeError(EvntraceNativeError::IoError(error)) = error else {
        return failed("StartTraceW", INVALID_HANDLE);
    };
    // The HRESULT contains a system error code in its lower half.
    let code = error.raw_os_error().map_or(INVALID_HANDLE, |code| code.cast_unsigned() & 0xFFFF);
    SessionError::check("StartTraceW", code).err().unwrap_or(failed("StartTraceW", code))
}

fn failed(call: &'static str, code: u32) -> SessionError {
    SessionError::Failed { call, code }
}

#[allow(clippy::ptr_arg, reason = "it filters paths")]
fn holds_bytes(file: &PathBuf) -> bool {
    fs::metadata(file).is_ok_and(|data| data.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wine logs how its stubs are called, and tests/wine-record.sh compares that with the plan.
    #[test]
    #[ignore = "starts sessions; for Wine, which refuses them"]
    fn a_session_that_is_refused_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        for session in ProviderSession::dot_net(false) {
            let started = start(session, folder.path().join(session.log_file), &Arc::default());
            assert!(started.is_err(), "{} runs", session.logger);
        }
        let sessions: Vec<_> = ProviderSession::dot_net(false).cloned().collect();
        assert!(Providers::start(&sessions).is_err());
        assert!(Providers::start(&[]).is_ok_and(|none| none.is_none()));
    }
}
