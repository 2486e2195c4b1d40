//! Columns of `-GroupBy`: from a handle to a code, and from the code to a text.

use std::sync::LazyLock;

use hashbrown::HashSet;
use regex::Regex;

use handlescope_model::tables::{Acquisitions, Names, Objects};
use handlescope_model::{
    AcquisitionIdx, EventColumns, EventProcesses, EventValues, NameIdx, Numbers, ObjectIdx,
    ProcessIdx, StackIdx, Texts, TypeId, sentinel,
};

use super::coder::Coder;
use super::counted::CompactHandle;
use super::lifetimes::{HandleTimes, LifeTables};
use super::process_stacks::ProcessStacks;
use crate::context::FileContext;
use crate::criteria::{AcquisitionCriteria, GroupColumn, KeyKind};
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::trimmed_stacks::TrimmedStacks;

/// Upper bounds of lifetimes in nanoseconds, with the names of the ranges below them.
const LIFETIMES: [(i64, &str); 9] = [
    (1_000_000, "under 1 ms"),
    (10_000_000, "1 to 10 ms"),
    (100_000_000, "10 to 100 ms"),
    (1_000_000_000, "100 ms to 1 s"),
    (10_000_000_000, "1 to 10 s"),
    (60_000_000_000, "10 s to 1 min"),
    (600_000_000_000, "1 to 10 min"),
    (3_600_000_000_000, "10 min to 1 h"),
    (i64::MAX, "over 1 h"),
];
const NOT_CLOSED: &str = "not closed";
const OPENED_BEFORE: &str = "opened before the trace";

/// The values of handles in columns: rows of tables or other numbers, and codes for them, one for each text.
pub struct HandleKeys<'a> {
    texts: RowTexts<'a>,
    /// Columns with the codes of their texts; without codes if the number itself is the value.
    columns: Vec<(GroupColumn, Coder)>,
    process_stacks: Option<&'a ProcessStacks<'a>>,
    stack: Option<EventValues<StackIdx>>,
    tid: Option<EventValues<u32>>,
    name: Numbers<NameIdx>,
    owner: Numbers<ProcessIdx>,
    /// The processes of events that create objects, for objects without handles.
    creator: Option<EventProcesses>,
}

/// Texts of rows.
struct RowTexts<'a> {
    file: &'a FileContext<'a>,
    stacks: Option<&'a TrimmedStacks>,
    names: Texts,
    /// Whether processes are shown by executable name.
    is_plain: bool,
}

impl<'a> HandleKeys<'a> {
    /// Loads what the columns need; `has_partial` if filters removed events.
    pub fn load(
        file: &'a FileContext<'a>,
        criteria: &AcquisitionCriteria,
        stacks: Option<&'a TrimmedStacks>,
        process_stacks: Option<&'a ProcessStacks<'a>>,
        has_partial: bool,
    ) -> Result<Self, QueryError> {
        let (trace, by) = (file.trace, criteria.groups.by.as_deref().unwrap_or_default());
        let has_any = |wanted: &[GroupColumn]| by.iter().any(|column| wanted.contains(column));
        let needs = criteria.groups.needs_stacks();
        let has_names = has_any(&[GroupColumn::Name, GroupColumn::NamePattern]);
        let has_threads = has_any(&[GroupColumn::Thread]);
        let events = EventColumns::with_all(trace)?;
        let stack = (needs != (false, false)).then(|| events.stacks_of(needs)).transpose()?;
        let name = has_names.then(|| trace.values(Objects::name)).transpose()?;
        let tid = has_threads.then(|| events.tids()).transpose()?;
        let has_processes = has_any(&[GroupColumn::Process]);
        let owner = has_processes.then(|| trace.values(Acquisitions::process)).transpose()?;
        // Only then are there objects without handles.
        let has_bare = has_partial || file.objects.table.has_other_events();
        let creator = (has_processes && has_bare).then(|| events.processes()).transpose()?;
        let is_plain = criteria.is_plain();
        Ok(Self {
            texts: RowTexts { file, stacks, names: trace.values(Names::name)?, is_plain },
            columns: by.iter().map(|column| (*column, Coder::default())).collect(),
            process_stacks,
            stack,
            tid,
            name: name.unwrap_or_default(),
            owner: owner.unwrap_or_default(),
            creator,
        })
    }

    /// Assigns a code to each new value, column by column.
    pub fn learn(&mut self, distinct: &[Vec<u32>]) {
        let Self { texts, columns, .. } = self;
        for ((column, coder), rows) in columns.iter_mut().zip(distinct) {
            rows.iter().for_each(|row| coder.learn(*row, || texts.text(*column, *row)));
        }
    }

    /// Replaces values by their codes, column by column; all must have been learned.
    pub fn put_codes(&self, values: &mut [Vec<u32>]) {
        for ((column, coder), values) in self.columns.iter().zip(values) {
            if has_codes(*column) {
                values.iter_mut().for_each(|row| *row = coder.known(*row).unwrap_or(sentinel()));
            }
        }
    }

    /// Returns the texts for the codes of each column.
    pub fn into_texts(self) -> Vec<Vec<String>> {
        self.columns.into_iter().map(|(_, coder)| coder.texts).collect()
    }

    /// Returns the values of handles column by column, as rows of tables or other numbers, with [`sentinel`] for none.
    /// For columns with codes, also returns each distinct value.
    pub fn values(
        &self,
        lives: &LifeTables,
        handles: &[CompactHandle],
    ) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        self.columns
            .iter()
            .map(|(column, _)| {
                let values = self.column(*column, lives, handles);
                let distinct = if has_codes(*column) { distinct(&values) } else { Vec::new() };
                (values, distinct)
            })
            .unzip()
    }

    fn column(
        &self,
        column: GroupColumn,
        lives: &LifeTables,
        handles: &[CompactHandle],
    ) -> Vec<u32> {
        let opened = |handle: CompactHandle| lives.opening(handle);
        let closed = |handle: CompactHandle| lives.ending(handle);
        match column {
            GroupColumn::CreateStack if self.process_stacks.is_none() => {
                self.united(each(handles, |handle| self.stack_of_opening(handle)))
            }
            GroupColumn::CreateStack => {
                self.united(each(handles, |handle| self.stack_in_process(opened(handle))))
            }
            GroupColumn::CloseStack => {
                self.united(each(handles, |handle| self.stack_in_process(closed(handle))))
            }
            GroupColumn::Module | GroupColumn::Function => {
                self.united(each(handles, |handle| self.stack_of_opening(handle)))
            }
            GroupColumn::Type => {
                each(handles, |handle| self.texts.file.objects.type_id(handle.object).0)
            }
            GroupColumn::Process => each(handles, |handle| self.process(handle)),
            GroupColumn::Name | GroupColumn::NamePattern => {
                each(handles, |handle| self.name(handle.object))
            }
            GroupColumn::Thread => {
                each(handles, |handle| self.thread(opened(handle).or(closed(handle))))
            }
            GroupColumn::Lifetime => each(handles, |handle| {
                duration(handle, opened(handle), closed(handle), &lives.times)
            }),
            // Only allocations have the others.
            _ => vec![sentinel(); handles.len()],
        }
    }

    /// Replaces each stack by the first of its equals, for many handles at once. A loop that does nothing else lets the
    /// processor load many scattered rows at the same time.
    fn united(&self, mut values: Vec<u32>) -> Vec<u32> {
        if let Some(stacks) = self.texts.stacks {
            // Larger numbers are stacks of single processes, which equal no others.
            let height = stacks.height();
            for row in values.iter_mut().filter(|row| (**row as usize) < height) {
                *row = stacks.equal(StackIdx(*row)).0;
            }
        }
        values
    }

    /// Returns the stack that opened a handle, or that created an object without handles.
    fn stack_of_opening(&self, handle: CompactHandle) -> u32 {
        match (&self.stack, handle.is_bare()) {
            (Some(stack), false) => stack.opened(handle.row.row()).unwrap_or(StackIdx::NONE).0,
            (Some(_), true) if handle.row != AcquisitionIdx::NONE => {
                self.stack(Some(handle.row.row()))
            }
            _ => sentinel(),
        }
    }

    /// Returns the owner of a handle, or the process that created an object without handles.
    fn process(&self, handle: CompactHandle) -> u32 {
        let process = match (handle.is_bare(), handle.row == AcquisitionIdx::NONE) {
            (true, true) => None,
            (true, false) => self.creator.as_ref().and_then(|it| it.get(handle.row.row())),
            (false, _) => self.owner.get(handle.row.row()),
        };
        process.unwrap_or(ProcessIdx::NONE).0
    }

    /// Returns the stack of an event.
    fn stack(&self, event: Option<usize>) -> u32 {
        let stack = self.stack.as_ref().zip(event).and_then(|(stack, event)| stack.get(event));
        stack.unwrap_or(StackIdx::NONE).0
    }

    /// Returns the stack of an event; with unknown code in it, its number within the process.
    fn stack_in_process(&self, event: Option<usize>) -> u32 {
        let stack = self.stack(event);
        let of_process = || {
            let (stacks, process_stacks) = (self.texts.stacks?, self.process_stacks?);
            process_stacks.of_event(stacks, StackIdx(stack), event?)
        };
        of_process().map_or(stack, |stack| stack.0)
    }

    /// Returns the name of an object.
    fn name(&self, object: ObjectIdx) -> u32 {
        self.name.get(object.row()).unwrap_or(NameIdx::NONE).0
    }

    /// Returns the thread of an event.
    fn thread(&self, event: Option<usize>) -> u32 {
        let tid = self.tid.as_ref().zip(event);
        tid.map_or(sentinel(), |(tid, event)| tid.get(event).unwrap_or_default())
    }
}

/// Returns the value of each handle.
fn each(handles: &[CompactHandle], value: impl Fn(CompactHandle) -> u32) -> Vec<u32> {
    handles.iter().map(|handle| value(*handle)).collect()
}

/// Returns each value once, in order of first occurrence.
fn distinct(values: &[u32]) -> Vec<u32> {
    let mut known = HashSet::new();
    values.iter().copied().filter(|value| known.insert(*value)).collect()
}

/// Whether rows with the same text have one code; other columns have numbers that need none.
fn has_codes(column: GroupColumn) -> bool {
    column.kind() == KeyKind::Text && column != GroupColumn::Lifetime
}

impl RowTexts<'_> {
    /// Returns the text of a row in a column that has codes.
    fn text(&self, column: GroupColumn, row: u32) -> String {
        match column {
            GroupColumn::Type => self.file.types.get(TypeId(row)).to_owned(),
            GroupColumn::Process => {
                self.file.processes.get(ProcessIdx(row)).shown_label(self.is_plain)
            }
            GroupColumn::Name => self.names.text(row as usize).to_owned(),
            GroupColumn::NamePattern => name_pattern(self.names.text(row as usize)),
            GroupColumn::Module => self.of_stack(row, TrimmedStacks::module),
            GroupColumn::Function => self.of_stack(row, TrimmedStacks::function),
            _ => String::new(),
        }
    }

    /// Returns the text for a stack's representative frame.
    fn of_stack(
        &self,
        row: u32,
        text: fn(&TrimmedStacks, &Frames<'_>, StackIdx) -> String,
    ) -> String {
        let stacks = self.stacks.zip(self.file.frames.as_ref());
        stacks.map(|(stacks, frames)| text(stacks, frames, StackIdx(row))).unwrap_or_default()
    }
}

/// Returns the text for the code of a lifetime.
pub fn lifetime_text(code: u32) -> &'static str {
    let is_open = code as usize == LIFETIMES.len();
    let unknown = if is_open { NOT_CLOSED } else { OPENED_BEFORE };
    LIFETIMES.get(code as usize).map_or(unknown, |(_, text)| *text)
}

/// Returns the code of a lifetime: its place in [`LIFETIMES`], or one of the two codes after them.
fn duration(
    handle: CompactHandle,
    opened: Option<usize>,
    closed: Option<usize>,
    times: &HandleTimes,
) -> u32 {
    let (not_closed, before) = (LIFETIMES.len() as u32, LIFETIMES.len() as u32 + 1);
    let time = |event: Option<usize>| event.and_then(|event| times.of(event));
    match (time(opened), time(closed)) {
        _ if handle.is_bare() => sentinel(),
        // Without a clock, the duration is unknown.
        (None, _) if opened.is_some() => sentinel(),
        (None, _) => before,
        (Some(_), None) => not_closed,
        (Some(opened), Some(closed)) => {
            let lived = closed.saturating_sub(opened);
            let index = LIFETIMES.iter().position(|(end, _)| lived < *end);
            index.map_or(not_closed - 1, |index| index as u32)
        }
    }
}

/// GUIDs, hexadecimal numbers with a prefix, and digits.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let guid = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
    Regex::new(&format!("{guid}|0[xX][0-9A-Fa-f]+|[0-9]+")).ok()
});

/// Replaces numbers and GUIDs in a name by `#`, so that names made from one pattern become equal.
pub fn name_pattern(name: &str) -> String {
    VARYING.as_ref().map_or(name.into(), |varying| varying.replace_all(name, "#")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_guids_collapse() {
        for (name, pattern) in [
            ("SignalEvent_118", "SignalEvent_#"),
            ("Global\\{0B2C1A4E-11D0-9dda-00C0-4FD7BA7C0000}", "Global\\{#}"),
            (
                r"\Sessions\1\BaseNamedObjects\SM0:7316:304:WilStaging_02",
                r"\Sessions\#\BaseNamedObjects\SM#:#:#:WilStaging_#",
            ),
            ("at 0x7FFE1234", "at #"),
            ("plain", "plain"),
            ("", ""),
            ("ä9ö", "ä#ö"),
        ] {
            assert_eq!(name_pattern(name), pattern);
        }
    }
}
