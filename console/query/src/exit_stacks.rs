//! Evidence from stacks for closes that the lifecycle attributes to process exit.
//!
//! The lifecycle does not use function names. If they are known, kernel functions for process exit confirm a close, and
//! a close in the kernel without any of these functions is doubtful.

use std::collections::HashMap;
use std::ops::AddAssign;

use handlescope_model::rules::is_exit_function;
use handlescope_model::{EventKind, StackIdx};
use serde::Serialize;

use super::context::FileContext;
use super::error::QueryError;
use super::frame_names::{Frames, NamedFrames};
use super::selection::Selection;
use super::stacks::StackSet;
use handlescope_session::cancel::Poll;

/// Closes at process exit, by what their stacks say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ExitStacks {
    /// All closes at exit of the objects that passed.
    pub closes: u64,
    /// Closes with a process exit function on the stack.
    pub confirmed: u64,
    /// Closes before the event that ends the process, if all kernel frames have names and none is a process exit
    /// function.
    pub doubtful: u64,
}

impl AddAssign for ExitStacks {
    fn add_assign(&mut self, other: Self) {
        self.closes += other.closes;
        self.confirmed += other.confirmed;
        self.doubtful += other.doubtful;
    }
}

impl ExitStacks {
    /// Judges the closes of the objects that passed by their stacks; looks up the names of their frames.
    pub fn new(
        file: &FileContext<'_>,
        frames: &Frames<'_>,
        selection: &Selection,
    ) -> Result<Self, QueryError> {
        let (table, times) = (&file.objects.table, file.trace.event_times()?);
        let columns = selection.columns(file.trace, &file.objects)?;
        let (stack, process) = (columns.stacks()?, columns.processes()?);
        let mut needed = StackSet::new(frames.stacks.len());
        let mut closes = Vec::new();
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            for event in file.objects.events(selected.object()).filter(|event| {
                table.is_closed_at_exit(*event)
                    && table.kind(*event) == Some(EventKind::HandleClose)
            }) {
                let end = process.get(event).and_then(|process| file.processes.get(process).end_ns);
                let is_after_end = times.get(event).zip(end).is_some_and(|(time, end)| time >= end);
                needed.add(stack.get(event));
                closes.push((stack.get(event), is_after_end));
            }
        }
        frames.resolve(needed.iter())?;
        let named = frames.named();
        let verdict = |stack| Some((stack, confirms_exit(stack, &named)?));
        let verdicts: HashMap<StackIdx, bool> = needed.iter().filter_map(verdict).collect();
        let mut sums = Self { closes: closes.len() as u64, ..Self::default() };
        for (stack, is_after_end) in closes {
            let is_confirmed = stack.and_then(|stack| verdicts.get(&stack).copied());
            sums.confirmed += u64::from(is_confirmed == Some(true));
            // A close after the end of its process belongs to the end, whichever thread does it.
            sums.doubtful += u64::from(is_confirmed == Some(false) && !is_after_end);
        }
        Ok(sums)
    }
}

/// Whether a stack confirms that process exit closed a handle, or contradicts it; `None` if it says nothing.
fn confirms_exit(stack: StackIdx, named: &NamedFrames<'_>) -> Option<bool> {
    let mut frames = named.stack(stack).peekable();
    // The kernel logs a close in its innermost frame.
    let kernel = frames.peek()?.module_name()?;
    let mut verdict = Some(false);
    for frame in frames.filter(|frame| frame.module_name() == Some(kernel)) {
        match frame.function() {
            Some(function) if is_exit_function(function) => return Some(true),
            Some(_) => {}
            None => verdict = None,
        }
    }
    verdict
}
