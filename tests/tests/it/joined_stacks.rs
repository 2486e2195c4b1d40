//! Stack parts joined to their events buffer by buffer are the ones that a search among all events finds. An extract
//! with all stacks, which reads each part at its own time, serves as the reference.

use std::path::Path;

use handlescope_extract::{ExtractOptions, StackChoice};
use handlescope_model::tables::{Frames, Stacks};
use handlescope_model::{FrameIdx, ModuleIdx, Trace};
use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::sample_trace;
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::containers::members_of;
use handlescope_tests::data::{hostile, shared_data};
use handlescope_tests::header::{HeaderKind, Stamp};
use handlescope_tests::needs_data;
use handlescope_tests::payload::{HandleEvent, HandleRecord, stack_walk};
use handlescope_tests::scenario::TraceBuilder;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use crate::extraction_threads::{archive_in, traces, traces_of_any_shape};
use crate::handle_model::with_cases;

/// A frame: module, RVA and address.
type JoinedFrame = (Option<ModuleIdx>, Option<u64>, Option<u64>);

#[derive(Debug, PartialEq)]
struct JoinedTables {
    /// The members with the acquisitions and the objects.
    members: [Vec<u8>; 2],
    /// The stacks; those of handle events come first.
    stacks: Vec<Vec<JoinedFrame>>,
}

/// Extracts a trace and returns its tables, or the reason why there are none.
fn tables(trace: &Path, stacks: StackChoice) -> Result<JoinedTables, String> {
    let folder = tempfile::tempdir().unwrap();
    let options = ExtractOptions { stacks, ..ExtractOptions::default() };
    let output = archive_in(folder.path(), trace, options)?;
    let members = members_of(&output);
    let content = |name| members.iter().find(|member| member.name == name).unwrap().content.clone();
    let extract = Trace::open(&output).unwrap();
    let frames = (
        extract.values(Frames::module).unwrap(),
        extract.values(Frames::rva).unwrap(),
        extract.values(Frames::address).unwrap(),
    );
    let frame = |frame: FrameIdx| {
        let row = frame.row();
        (frames.0.get(row), frames.1.get(row), frames.2.get(row))
    };
    let lists = extract.values(Stacks::frames).unwrap();
    let stacks = (0..lists.len()).map(|row| lists.get(row).map(frame).collect()).collect();
    Ok(JoinedTables { members: ["acquisitions.parquet", "objects.parquet"].map(content), stacks })
}

fn assert_same_with_all_stacks(trace: &Path) {
    let (joined, mut searched) =
        (tables(trace, StackChoice::HandleEvents), tables(trace, StackChoice::All));
    if let (Ok(joined), Ok(searched)) = (&joined, &mut searched) {
        searched.stacks.truncate(joined.stacks.len());
    }
    assert!(joined == searched, "{}", trace.display());
}

#[test]
fn of_the_sample() {
    assert_same_with_all_stacks(&sample_trace());
}

#[needs_data]
#[test]
fn of_published_real_and_hostile_traces() {
    for path in traces(&shared_data().join("synthetic"), &[".etl.7z"])
        .into_iter()
        .chain(traces(&shared_data().join("real"), &[".zip", ".7z"]))
        .chain(traces(&hostile(), &[".etl", ".zip"]))
    {
        assert_same_with_all_stacks(&path);
    }
}

#[test]
fn of_traces_of_any_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.etl");
    with_cases(12, traces_of_any_shape(), |trace: LargeTrace| {
        write_large_trace(&path, &trace).unwrap();
        assert_same_with_all_stacks(&path);
    });
}

const POINTERS: [PointerSize; 2] = [PointerSize::Four, PointerSize::Eight];
const HEADERS: [HeaderKind; 3] = [HeaderKind::System, HeaderKind::Compact, HeaderKind::PerfInfo];

/// A create of a handle, or a part of a stack, with the time since the previous action.
#[derive(Debug, Clone, Copy)]
struct JoinAction {
    /// Microseconds since the previous action.
    later: i64,
    cpu: u16,
    thread: u32,
    header: HeaderKind,
    pointer: PointerSize,
    /// For a part: which create on its processor it belongs to, counted backwards. `None` for a create.
    part_of: Option<usize>,
    is_user: bool,
}

fn actions() -> impl Strategy<Value = Vec<JoinAction>> {
    let of_thread = (0..3_i64, 0..2_u16, 0..2_u32, 0..3_usize, 0..2_usize);
    let action = (of_thread, proptest::option::of(0..5_usize), any::<bool>());
    let action = action.prop_map(|((later, cpu, thread, header, pointer), part_of, is_user)| {
        let (header, pointer) = (HEADERS[header], POINTERS[pointer]);
        JoinAction {
            later,
            cpu,
            thread: 10 * u32::from(cpu) + thread,
            header,
            pointer,
            part_of,
            is_user,
        }
    });
    vec(action, 1..80)
}

/// Builds a trace by a kernel with this pointer size.
fn trace_of(actions: &[JoinAction], kernel: PointerSize) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    trace.object_type(16, "Event");
    let (mut ns, mut creates) = (1_000_000, [Vec::new(), Vec::new()]);
    for (number, action) in (0..).zip(actions) {
        ns += action.later * 1_000;
        let raw = |ns| trace.options().raw(ns);
        let creates = &mut creates[usize::from(action.cpu)];
        let payload = match action.part_of {
            None => {
                creates.push((ns, action.thread));
                let object = 0x8000_1000 + 0x40 * number;
                let create = HandleRecord { object, handle: 4, type_id: 16, ..Default::default() };
                create.payload(HandleEvent::Create, action.pointer)
            }
            Some(before) => {
                let event = creates.iter().rev().nth(before).copied();
                let (event, thread) = event.unwrap_or((5, action.thread));
                let space = match (action.is_user, kernel) {
                    (true, _) => 0x7000_0000,
                    (false, PointerSize::Four) => 0x8000_0000,
                    (false, PointerSize::Eight) => 0xFFFF_8000_0000_0000,
                };
                let frames = [space + number, space + 1];
                stack_walk(kernel, raw(event), 700, 701 + thread, &frames)
            }
        };
        let stamp = Stamp::new(raw(ns), 700, 701 + action.thread);
        let pointer = if action.part_of.is_some() { kernel } else { action.pointer };
        let event = payload.event(action.header, pointer, stamp);
        trace.raw_event(ns, action.cpu, event);
    }
    trace
}

/// Times repeat, threads alternate between two processors, some events have no ids, and pointers have both sizes.
#[test]
fn of_any_events_and_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.etl");
    with_cases(24, (actions(), 0..2_usize), |(actions, kernel)| {
        trace_of(&actions, POINTERS[kernel]).write(&path).unwrap();
        assert_same_with_all_stacks(&path);
    });
}

#[test]
fn of_a_part_with_wider_pointers_than_its_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.etl");
    let first = JoinAction {
        later: 1,
        cpu: 0,
        thread: 1,
        header: HeaderKind::System,
        pointer: PointerSize::Four,
        part_of: None,
        is_user: false,
    };
    let part = JoinAction { part_of: Some(0), ..first };
    // The first event of a buffer is left to the search.
    trace_of(&[first, first, part], PointerSize::Eight).write(&path).unwrap();
    assert_same_with_all_stacks(&path);
}
