//! Stacks with unknown code: one row of the table means different code in each process that has it.

use handlescope_model::{EventColumns, EventProcesses, ProcessIdx, StackIdx, Trace};
use hashbrown::HashMap;

use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::cancel::{Cancel, Poll};

/// Numbers for the stacks of each process: the first process keeps the row number, others get numbers after the table.
pub struct ProcessStacks<'a> {
    frames: &'a Frames<'a>,
    /// The processes of events.
    process: EventProcesses,
    numbers: HashMap<(StackIdx, Option<ProcessIdx>), StackIdx>,
    /// The rows that the numbers stand for.
    pub rows: NumberedStacks,
}

/// Rows of the stack table by number.
#[derive(Debug, Clone, Default)]
pub struct NumberedStacks {
    /// Number of rows in the table; these are their own numbers.
    height: usize,
    /// Rows of the further numbers.
    further: Vec<StackIdx>,
}

impl NumberedStacks {
    /// Returns the row that a number stands for.
    pub fn row(&self, number: u32) -> StackIdx {
        let further = (number as usize).checked_sub(self.height);
        let row = further.and_then(|further| self.further.get(further));
        row.copied().unwrap_or(StackIdx(number))
    }

    fn push(&mut self, row: StackIdx) -> StackIdx {
        self.further.push(row);
        StackIdx::from_row(self.height + self.further.len() - 1)
    }
}

impl<'a> ProcessStacks<'a> {
    /// Numbers the stacks that belong to one process only; `None` if there are none.
    pub fn number(
        trace: &Trace,
        frames: Option<&'a Frames<'a>>,
        stacks: Option<&TrimmedStacks>,
        cancel: &Cancel,
    ) -> Result<Option<Self>, QueryError> {
        let stacks = stacks.filter(|stacks| stacks.has_stacks_of_one_process());
        let Some((stacks, frames)) = stacks.zip(frames) else { return Ok(None) };
        let (columns, height) = (EventColumns::with_all(trace)?, trace.event_table()?.height());
        let stack = columns.stacks()?;
        let mut numbered = Self {
            frames,
            process: columns.processes()?,
            numbers: HashMap::new(),
            rows: NumberedStacks { height: stacks.height(), further: Vec::new() },
        };
        let mut firsts: HashMap<StackIdx, Option<ProcessIdx>> = HashMap::new();
        let mut poll = Poll::new(cancel);
        for event in 0..height {
            poll.round()?;
            let Some(stack) = stack.get(event).filter(|stack| stacks.is_of_one_process(*stack))
            else {
                continue;
            };
            let (stack, process) = (stacks.equal(stack), numbered.logging_process(event));
            let is_first = *firsts.entry(stack).or_insert(process) == process;
            let Self { numbers, rows, .. } = &mut numbered;
            let number = || if is_first { stack } else { rows.push(stack) };
            numbers.entry((stack, process)).or_insert_with(number);
        }
        Ok(Some(numbered))
    }

    /// Returns the process whose thread logged an event; the addresses in its stack belong to it.
    fn logging_process(&self, event: usize) -> Option<ProcessIdx> {
        self.frames.owner_of_code(self.process.caller(event).or_else(|| self.process.get(event)))
    }

    /// Returns the number of an event's stack, if it contains unknown code.
    pub fn of_event(
        &self,
        stacks: &TrimmedStacks,
        stack: StackIdx,
        event: usize,
    ) -> Option<StackIdx> {
        if !stacks.is_of_one_process(stack) {
            return None;
        }
        self.numbers.get(&(stacks.equal(stack), self.logging_process(event))).copied()
    }
}
