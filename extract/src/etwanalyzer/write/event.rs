//! The records of events.

use handlescope_model::tables::Event;
use handlescope_model::{EventKind, ProcessIdx, sentinel};
use serde::Serialize;

use super::context::Context;

/// One event. The members that a kind does not have are left out.
///
/// ETWAnalyzer always writes an offset of 0 into views; an offset that is not known is left out,
/// which it reads as 0.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct EventJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    ref_count_change: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_handle_value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_process_idx: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    view_base: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_object: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misc_info: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    view_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_offset: Option<i64>,
    time_ns: i64,
    stack_idx: u32,
    process_idx: i64,
    thread_id: u32,
    // What follows is ours.
    /// The process that called for a duplicate, where it is not the one that got the handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    caller_process_idx: Option<i64>,
    /// The child that inherited the handle of a duplicate, -1 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited_by_idx: Option<i64>,
    /// The process id of the source, where no process has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_pid: Option<u32>,
    /// The row of the stack, where it is not the first one with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_row: Option<u32>,
}

/// The number of a process; -1 for none.
pub(super) fn index(process: Option<ProcessIdx>) -> i64 {
    process.filter(|process| process.0 != sentinel()).map_or(-1, |process| i64::from(process.0))
}

impl EventJson {
    pub(super) fn new(event: &Event, context: Context<'_>) -> Self {
        let (stack_idx, stack_row) = context.stacks.number(event.stack);
        let common = Self {
            time_ns: event.time_ns,
            stack_idx,
            stack_row,
            process_idx: index(Some(event.process)),
            thread_id: event.tid,
            ..Self::default()
        };
        // The kernel's addresses and sizes are signed numbers there.
        let signed = |value: Option<u64>| value.map(|value| value as i64);
        match EventKind::from_code(event.kind) {
            Some(EventKind::HandleCreate | EventKind::HandleClose) => {
                Self { handle_value: Some(event.handle.unwrap_or_default()), ..common }
            }
            Some(EventKind::HandleDuplicate) => Self {
                handle_value: Some(event.handle.unwrap_or_default()),
                source_handle_value: Some(event.source_handle.unwrap_or_default()),
                source_process_idx: Some(index(event.source_process)),
                // ETWAnalyzer does not know who got the handle, writes the caller, and takes it for
                // the owner: in leaks, for inheritance, for sharing. The owner is written.
                caller_process_idx: Some(index(event.caller_process))
                    .filter(|caller| *caller != index(Some(event.process))),
                inherited_by_idx: Some(index(event.inherited_by)),
                source_pid: event.source_pid.filter(|pid| Some(*pid) != context.source_pid(event)),
                ..common
            },
            Some(EventKind::Map | EventKind::Unmap) => Self {
                view_base: Some(signed(event.view_base).unwrap_or_default()),
                view_size: signed(event.view_size),
                byte_offset: signed(event.byte_offset),
                file_object: signed(event.file_object),
                misc_info: Some(0),
                ..common
            },
            Some(EventKind::ObjectCreate) => Self { ref_count_change: Some(1), ..common },
            Some(EventKind::ObjectDelete) => Self { ref_count_change: Some(-1), ..common },
            Some(EventKind::Reference | EventKind::Dereference) | None => {
                Self { ref_count_change: Some(event.ref_delta.unwrap_or_default()), ..common }
            }
        }
    }
}
