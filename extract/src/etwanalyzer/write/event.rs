//! The records of events.

use handlescope_model::tables::Event;
use handlescope_model::{EventKind, ProcessIdx, sentinel};

use super::super::records::EventRecord;
use super::stacks_part::StackTexts;

/// What the records are made with.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) stacks: &'a StackTexts,
    /// Process ids by row.
    pub(super) pids: &'a [u32],
}

impl Context<'_> {
    /// The process id that the number of the source process means.
    pub(super) fn source_pid(&self, event: &Event) -> Option<u32> {
        self.pids.get(event.source_process?.row()).copied()
    }
}

/// The number of a process; -1 for none.
pub(super) fn index(process: Option<ProcessIdx>) -> i64 {
    process.filter(|process| process.0 != sentinel()).map_or(-1, |process| i64::from(process.0))
}

pub(super) fn record(event: &Event, context: Context<'_>) -> EventRecord {
    let (stack, stack_row) = context.stacks.number(event.stack);
    let common = EventRecord {
        time_ns: Some(event.time_ns),
        stack: Some(stack.into()),
        stack_row,
        process: Some(index(Some(event.process))),
        tid: Some(event.tid),
        ..EventRecord::default()
    };
    let signed = |value: Option<u64>| value.map(|value| value as i64);
    match EventKind::from_code(event.kind) {
        Some(EventKind::HandleCreate) => {
            EventRecord { handle: Some(event.handle.unwrap_or_default()), ..common }
        }
        Some(EventKind::HandleClose) => EventRecord {
            handle: Some(event.handle.unwrap_or_default()),
            is_by_exit: event.closed_at_exit.filter(|is_by_exit| *is_by_exit),
            ..common
        },
        Some(EventKind::HandleDuplicate) => EventRecord {
            handle: Some(event.handle.unwrap_or_default()),
            source_handle: Some(event.source_handle.unwrap_or_default()),
            source_process: Some(index(event.source_process)),
            // ETWAnalyzer does not know who got the handle, writes the caller, and takes it for
            // the owner: in leaks, for inheritance, for sharing. The owner is written.
            caller_process: Some(index(event.caller_process))
                .filter(|caller| *caller != index(Some(event.process))),
            inherited_by: Some(index(event.inherited_by)),
            source_pid: event.source_pid.filter(|pid| Some(*pid) != context.source_pid(event)),
            ..common
        },
        Some(EventKind::Map | EventKind::Unmap) => EventRecord {
            view_base: Some(signed(event.view_base).unwrap_or_default()),
            view_size: signed(event.view_size),
            byte_offset: signed(event.byte_offset),
            file_object: signed(event.file_object),
            misc_info: Some(0),
            ..common
        },
        Some(EventKind::ObjectCreate) => EventRecord { ref_change: Some(1), ..common },
        Some(EventKind::ObjectDelete) => EventRecord { ref_change: Some(-1), ..common },
        Some(EventKind::Reference | EventKind::Dereference) | None => {
            EventRecord { ref_change: Some(event.ref_delta.unwrap_or_default().into()), ..common }
        }
    }
}
