//! Tests of recordings with a fake session.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::{fs, thread};

use clap::Parser;
use handlescope_record::{FurtherTraces, MergeError, SessionError, SessionEvent, SessionHeader};

use super::*;
use handlescope_session::terminal::Screen;

const OBJECT_TRACE: [u8; 16] = [
    0x50, 0x7f, 0x49, 0x89, 0xfe, 0xef, 0x40, 0x44, 0x8c, 0xf2, 0xce, 0x6b, 0x1c, 0xdc, 0xac, 0xa7,
];

#[derive(Parser)]
struct RecordLine {
    #[command(flatten)]
    args: RecordArgs,
}

/// A session that does what a test asks for, and records whether it was stopped.
#[derive(Default)]
struct Fake {
    refusal: Option<SessionError>,
    /// Number of handles that process 7 creates, one after another.
    creates: u32,
    is_unmerged: bool,
    /// The file that it writes as its trace; `further` is a second one.
    trace: Option<PathBuf>,
    further: Option<PathBuf>,
    stopped: Rc<Cell<bool>>,
}

struct FakeRunning {
    stopped: Rc<Cell<bool>>,
    is_unmerged: bool,
    further: Option<PathBuf>,
}

const LOST: SessionStats = SessionStats { buffers_written: 24, events_lost: 3, buffers_lost: 1 };

impl Recorder for Fake {
    fn start(
        &self,
        plan: SessionPlan,
        mut sink: EventSink,
    ) -> Result<Box<dyn Running>, SessionError> {
        if let Some(error) = self.refusal.clone() {
            return Err(error);
        }
        let creates = self.creates;
        let sender = thread::spawn(move || {
            for number in 0..creates {
                let mut payload = u64::from(0x1000 + number).to_le_bytes().to_vec();
                payload.extend((4 * number + 4).to_le_bytes());
                payload.extend([16, 0, 0, 0]);
                sink(&SessionEvent {
                    provider: OBJECT_TRACE,
                    is_classic: true,
                    id: 0,
                    opcode: 32,
                    version: 2,
                    process_id: 7,
                    thread_id: 8,
                    processor: 0,
                    time: i64::from(number),
                    pointer_size: 8,
                    payload: &payload,
                    extended: &[],
                });
            }
        });
        sender.join().expect("a sink that takes events");
        if let (Some(trace), Some(file)) = (&self.trace, &plan.log_file) {
            fs::copy(trace, file).expect("a trace");
        }
        let (is_unmerged, further) = (self.is_unmerged, self.further.clone());
        Ok(Box::new(FakeRunning { stopped: Rc::clone(&self.stopped), is_unmerged, further }))
    }
}

impl Running for FakeRunning {
    fn header(&self) -> Option<&SessionHeader> {
        None
    }

    fn stats(&self) -> Result<SessionStats, SessionError> {
        Ok(LOST)
    }

    fn stop(self: Box<Self>) -> Result<RecordingEnd, SessionError> {
        self.stopped.set(true);
        let further = self.further.map_or_else(FurtherTraces::default, |trace| {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("dotnet.etl");
            fs::copy(trace, &file).expect("a trace");
            FurtherTraces::new(vec![file], Some(SessionError::TooMany), folder)
        });
        let unmerged = self.is_unmerged.then_some(MergeError::NoLibrary { library: "No.dll" });
        Ok(RecordingEnd { stats: LOST, unmerged, further })
    }
}

/// Records with these options; returns the result and the messages.
fn recorded(fake: &Fake, options: &[&str], cancel: &Cancel) -> (Result<(), CommandError>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("leak.etl").to_string_lossy().into_owned();
    let line = RecordLine::parse_from([&["record", &file][..], options].concat());
    let (mut out, mut text) = (Vec::new(), Vec::new());
    let mut messages = Messages::new(&mut text, Screen::PLAIN);
    let result = run(&line.args, false, fake, &mut out, &mut messages, cancel);
    (result, String::from_utf8(text).expect("text").replace(&file, "leak.etl"))
}

#[test]
fn ctrl_c_ends_a_recording_and_nothing_else() {
    let fake = Fake { creates: 5, ..Fake::default() };
    let cancel = Cancel::default();
    cancel.cancel();
    let (result, text) = recorded(&fake, &[], &cancel);
    assert!(result.is_ok() && fake.stopped.get() && !cancel.is_cancelled());
    assert!(text.starts_with("recording to leak.etl; Ctrl-C ends it\nleak.etl: 5 events in "));
    assert!(text.ends_with(" s, lost events: 3, lost buffers: 1; ended by Ctrl-C\n"), "{text}");
}

#[test]
fn a_recording_ends_after_its_time() {
    let (result, text) = recorded(&Fake::default(), &["--duration", "50ms"], &Cancel::default());
    assert!(result.is_ok() && text.ends_with("; ended after its time\n"), "{text}");
}

#[test]
fn a_recording_ends_when_a_process_has_too_many_handles() {
    let fake = Fake { creates: 9, ..Fake::default() };
    let (result, text) = recorded(&fake, &["--stop-when", "pn 7 handles > 5"], &Cancel::default());
    assert!(result.is_ok() && fake.stopped.get());
    assert!(text.ends_with("; ended: (7) has 6 handles open, more than 5\n"), "{text}");
}

#[test]
fn a_trace_without_identities_of_images_says_so() {
    for (trace, expected) in [
        (
            None,
            "symbols will not be found: No.dll of the Windows Performance Toolkit is not installed, and writing a copy with them failed: leak.etl: cannot open: ",
        ),
        (
            Some(sample()),
            "symbols will not be found: No.dll of the Windows Performance Toolkit is not installed, and no image file could be read\n",
        ),
    ] {
        let fake = Fake { is_unmerged: true, trace, ..Fake::default() };
        let (_, text) = recorded(&fake, &["--duration", "10ms"], &Cancel::default());
        assert!(text.contains("leak.etl has no image identities"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/leaky.etl")
}

#[test]
fn further_traces_are_merged_where_windows_does_not() {
    let fake = Fake {
        is_unmerged: true,
        trace: Some(sample()),
        further: Some(sample()),
        ..Fake::default()
    };
    let options = ["--duration", "10ms", "--clr", "--extract"];
    let (result, text) = recorded(&fake, &options, &Cancel::default());
    assert!(result.is_ok(), "{text}");
    assert!(text.contains("no names for .NET methods: Windows has reached its limit"), "{text}");
    let line = text.lines().find(|line| line.ends_with(" events of .NET")).expect("a line");
    assert!(line.starts_with("leak.etl: ") && !line.starts_with("leak.etl: 0 "), "{text}");
    assert!(text.contains("no image file could be read\n"), "{text}");
}

#[test]
fn a_session_that_does_not_start_is_an_error_with_its_remedy_and_what_records_the_same() {
    for (error, remedy) in [
        (SessionError::NotElevated, "\"Run as administrator\""),
        (SessionError::Active, "logman stop \"NT Kernel Logger\" -ets"),
        (SessionError::TooMany, "logman query -ets"),
    ] {
        let fake = Fake { refusal: Some(error), ..Fake::default() };
        let (result, text) = recorded(&fake, &[], &Cancel::default());
        let error = result.expect_err("an error").to_string();
        assert!(error.starts_with("handlescope record cannot start a session: "), "{error}");
        assert!(error.contains(remedy) && error.contains("wpr -start"), "{error}");
        assert_eq!(text, "");
    }
}

#[test]
fn the_live_line_says_how_fast_how_much_and_what_was_lost() {
    assert_eq!(
        live_line(12_345.4, 24 << 20, LOST, 0),
        "12,345 events/s, 24.00 MiB written, lost events: 3, lost buffers: 1;"
    );
    assert!(live_line(0.0, 0, LOST, 7).ends_with("1, 7 not counted for --stop-when;"));
}

#[test]
fn yes_is_what_is_meant_when_nothing_is_typed() {
    for (answer, expected) in [("\n", true), ("y\n", true), ("YES", true), ("n\n", false)] {
        assert_eq!(is_yes(answer), expected, "{answer:?}");
    }
}

#[test]
fn a_session_that_is_lost_ends_the_recording_with_an_error() {
    let (_, receiver) = live_queue(1, WhenFull::Drop);
    struct Gone;
    impl Running for Gone {
        fn header(&self) -> Option<&SessionHeader> {
            None
        }
        fn stats(&self) -> Result<SessionStats, SessionError> {
            SessionError::check("ControlTraceW", 4201).map(|()| LOST)
        }
        fn stop(self: Box<Self>) -> Result<RecordingEnd, SessionError> {
            Err(SessionError::NotElevated)
        }
    }
    let mut recording = RunningRecording {
        running: Box::new(Gone),
        receiver,
        watch: StopWatch::new(&[]).expect("no conditions"),
        counted: Arc::default(),
        started: Instant::now(),
        kib: 64,
    };
    let mut text = Vec::new();
    let messages = Messages::new(&mut text, Screen::PLAIN);
    let ended = recording.wait(Some(Duration::from_secs(60)), &messages, &Cancel::default());
    let error = ended.expect_err("an error").to_string();
    assert!(
        error.starts_with("the recording was lost: ControlTraceW failed with 0x1069"),
        "{error}"
    );
}

#[test]
fn a_trace_that_cannot_be_replaced_has_its_reason_in_plain_words() {
    let full = io::Error::from(io::ErrorKind::StorageFull);
    assert_eq!(
        why(&MergeError::Replace(full)),
        "the trace cannot be replaced by the merged one: the disk is full"
    );
    let library = "KernelTraceControl.dll";
    assert!(why(&MergeError::NoLibrary { library }).ends_with("is not installed"));
}
