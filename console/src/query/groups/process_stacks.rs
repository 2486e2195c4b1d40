//! Stacks through unknown code: one row of the table stands for other code in each process that has it.

use handlescope_model::tables::Events;
use handlescope_model::{EventIdx, Numbers, ProcessIdx, StackIdx, Table, Trace};
use hashbrown::HashMap;

use super::stacks::TrimmedStacks;
use crate::cancel::{Cancel, Poll};
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;

/// Numbers of the stacks of each process: the first process has the row of the table, others have numbers after it.
pub(super) struct ProcessStacks {
    events: EventProcesses,
    numbers: HashMap<(StackIdx, Option<ProcessIdx>), StackIdx>,
    rows: StackNumbers,
}

/// The processes whose threads logged events, which is where the addresses of their stacks lie.
struct EventProcesses {
    process: Numbers<ProcessIdx>,
    caller: Numbers<ProcessIdx>,
    knows_modules: Vec<bool>,
}

/// Rows of the table of stacks, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct StackNumbers {
    /// Number of rows in the table, which are their own numbers.
    height: usize,
    /// Rows of the numbers after these.
    further: Vec<StackIdx>,
}

impl EventProcesses {
    fn get(&self, event: usize) -> Option<ProcessIdx> {
        let process = self.caller.get(event).or_else(|| self.process.get(event));
        // Processes without modules share their code.
        process.filter(|process| self.knows_modules.get(process.row()).copied().unwrap_or_default())
    }
}

impl StackNumbers {
    /// The row that a number stands for.
    pub(super) fn row(&self, number: u32) -> StackIdx {
        let further = (number as usize).checked_sub(self.height);
        let row = further.and_then(|further| self.further.get(further));
        row.copied().unwrap_or(StackIdx(number))
    }

    fn push(&mut self, row: StackIdx) -> StackIdx {
        self.further.push(row);
        StackIdx::of(self.height + self.further.len() - 1)
    }
}

impl ProcessStacks {
    /// Numbers the stacks that are equal in one process only; `None` if there are none.
    pub(super) fn number(
        trace: &Trace,
        frames: Option<&Frames<'_>>,
        stacks: Option<&TrimmedStacks>,
        cancel: &Cancel,
    ) -> Result<Option<Self>, QueryError> {
        let stacks = stacks.filter(|stacks| stacks.has_stacks_of_one_process());
        let Some((stacks, frames)) = stacks.zip(frames) else { return Ok(None) };
        let stack = trace.values(Events::stack)?;
        let events = EventProcesses {
            process: trace.values(Events::process)?,
            caller: trace.values(Events::caller_process)?,
            knows_modules: (0..trace.height(Table::Processes)?)
                .map(|row| frames.knows_modules(Some(ProcessIdx::of(row))))
                .collect(),
        };
        let mut rows = StackNumbers { height: stacks.height(), further: Vec::new() };
        let mut firsts: HashMap<StackIdx, Option<ProcessIdx>> = HashMap::new();
        let mut numbers = HashMap::new();
        let mut poll = Poll::new(cancel);
        for event in 0..stack.len() {
            poll.round()?;
            let Some(stack) = stack.get(event).filter(|stack| stacks.is_of_one_process(*stack))
            else {
                continue;
            };
            let (stack, process) = (stacks.equal(stack), events.get(event));
            let is_first = *firsts.entry(stack).or_insert(process) == process;
            let number = || if is_first { stack } else { rows.push(stack) };
            numbers.entry((stack, process)).or_insert_with(number);
        }
        Ok(Some(Self { events, numbers, rows }))
    }

    /// The number of the stack of an event, if it leads through unknown code.
    pub(super) fn of_event(
        &self,
        stacks: &TrimmedStacks,
        stack: StackIdx,
        event: EventIdx,
    ) -> Option<StackIdx> {
        if !stacks.is_of_one_process(stack) {
            return None;
        }
        self.numbers.get(&(stacks.equal(stack), self.events.get(event.row()))).copied()
    }

    /// The rows that the numbers stand for.
    pub(super) fn rows(&self) -> &StackNumbers {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use crate::cancel::Cancel;
    use crate::query::fixture::{APP, CHILD, Fixture, OTHER, Saved, With, create};
    use crate::query::{GroupKey, Inventory};

    /// Numbers of handles of the groups by create stack.
    fn counts(saved: &Saved) -> Vec<u32> {
        saved.ask("-GroupBy createstack", |answer| {
            let groups = answer.files[0].groups.as_ref().unwrap();
            let shown =
                groups.tree.shown().filter(|node| matches!(groups.key(*node), GroupKey::Stack(_)));
            let mut counts: Vec<u32> = shown.map(|node| groups.tree.stats(node).handles).collect();
            counts.sort_unstable();
            counts
        })
    }

    /// A handle for each process and stack.
    fn trace(opened: &[(u32, &[&str])]) -> Saved {
        let mut fixture = Fixture::new();
        for (number, (process, stack)) in (1..).zip(opened) {
            let stack = fixture.stack(stack);
            fixture.event_object(vec![create(*process, number, 4).leaked().on(stack)]);
        }
        fixture.save()
    }

    const MAIN: &str = "app.exe!main";

    #[test]
    fn unknown_code_is_equal_at_one_address_of_one_process() {
        let (here, there) = (["0x1F4B0000123", MAIN], ["0x1F4B0000456", MAIN]);
        assert_eq!(counts(&trace(&[(APP, &here), (APP, &here), (APP, &there)])), [1, 2]);
        assert_eq!(counts(&trace(&[(APP, &here), (OTHER, &here), (APP, &here)])), [1, 2]);
        // The fixture has modules of APP alone, so that the other two share their code.
        assert_eq!(counts(&trace(&[(APP, &here), (OTHER, &here), (CHILD, &here)])), [1, 2]);
    }

    #[test]
    fn the_kernel_and_code_with_a_name_are_the_same_in_every_process() {
        let kernel = ["0xFFFFF80000001000", MAIN];
        assert_eq!(counts(&trace(&[(APP, &kernel), (OTHER, &kernel)])), [2]);
        let other = ["0xFFFFF80000002000", MAIN];
        assert_eq!(counts(&trace(&[(APP, &kernel), (OTHER, &other)])), [1, 1]);
        let known = ["app.exe+0x10", MAIN];
        assert_eq!(counts(&trace(&[(APP, &known), (OTHER, &known)])), [2]);
    }

    #[test]
    fn datasets_tell_stacks_through_unknown_code_apart() {
        let (here, there) = (["0x1F4B0000123", MAIN], ["0x1F4B0000456", MAIN]);
        let saved = trace(&[(APP, &here), (OTHER, &here), (APP, &there), (APP, &[MAIN])]);
        let (source, cancel) = (saved.source(), Cancel::default());
        let inventory = Inventory::of(&source, &saved, &cancel).unwrap();
        let mut ids: Vec<String> =
            inventory.stacks().into_iter().map(|(_, stack)| stack.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }
}
