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
use super::process_stacks::{NumberedStacks, ProcessStacks};
use crate::context::FileContext;
use crate::criteria::{GroupColumn, GroupKey};
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::objects::ObjectTable;
use crate::trimmed_stacks::TrimmedStacks;

/// What the codes of a column mean.
enum CodeMeaning {
    Stack,
    Number,
    Word(fn(u32) -> &'static str),
    /// Texts of rows: rows with the same text have one code.
    Text(fn(&RowTexts<'_>, u32) -> String),
}

/// Returns what the codes of a column mean.
fn key_of(column: GroupColumn) -> CodeMeaning {
    match column {
        GroupColumn::CreateStack => CodeMeaning::Stack,
        GroupColumn::CloseStack => CodeMeaning::Stack,
        GroupColumn::Type => {
            CodeMeaning::Text(|texts, row| texts.file.types.get(TypeId(row)).to_owned())
        }
        GroupColumn::Process => CodeMeaning::Text(|of, row| {
            of.file.processes.get(ProcessIdx(row)).shown_label(of.is_plain)
        }),
        GroupColumn::Name => {
            CodeMeaning::Text(|texts, row| texts.names.text(row as usize).to_owned())
        }
        GroupColumn::NamePattern => {
            CodeMeaning::Text(|texts, row| texts.pattern.of(texts.names.text(row as usize)))
        }
        GroupColumn::Module => CodeMeaning::Text(|of, row| of.of_stack(row, TrimmedStacks::module)),
        GroupColumn::Function => {
            CodeMeaning::Text(|of, row| of.of_stack(row, TrimmedStacks::function))
        }
        GroupColumn::Thread => CodeMeaning::Number,
        GroupColumn::Lifetime => CodeMeaning::Word(lifetime_word),
    }
}

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

/// Looks up the column values of handles, as rows of tables or other numbers.
pub struct KeyRows<'a> {
    columns: Vec<GroupColumn>,
    objects: &'a ObjectTable,
    times: HandleTimes,
    stacks: Option<&'a TrimmedStacks>,
    process_stacks: Option<&'a ProcessStacks>,
    stack: Option<EventValues<StackIdx>>,
    tid: Option<EventValues<u32>>,
    name: Numbers<NameIdx>,
    owner: Numbers<ProcessIdx>,
    /// The processes of events that create objects, for objects without handles.
    creator: Option<EventProcesses>,
}

/// Makes the codes that handles are grouped by: one for each text.
pub struct HandleKeys<'a> {
    texts: RowTexts<'a>,
    /// Columns with the codes of their texts; empty if the number itself is the value.
    coders: Vec<(GroupColumn, Coder)>,
}

/// Texts of rows.
struct RowTexts<'a> {
    file: &'a FileContext<'a>,
    stacks: Option<&'a TrimmedStacks>,
    names: Texts,
    pattern: NamePattern,
    /// Whether processes are shown by executable name.
    is_plain: bool,
}

/// Texts for the codes of all columns.
pub struct KeyTexts {
    columns: Vec<(GroupColumn, Vec<String>)>,
    stacks: NumberedStacks,
}

impl<'a> HandleKeys<'a> {
    pub fn new(
        file: &'a FileContext<'a>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
        is_plain: bool,
    ) -> Result<Self, QueryError> {
        Ok(Self {
            texts: RowTexts {
                file,
                stacks,
                names: file.trace.values(Names::name)?,
                pattern: NamePattern,
                is_plain,
            },
            coders: columns.iter().map(|column| (*column, Coder::default())).collect(),
        })
    }

    /// Assigns a code to each new value, column by column.
    pub fn learn(&mut self, distinct: &[Vec<u32>]) {
        let Self { texts, coders } = self;
        for ((column, coder), rows) in coders.iter_mut().zip(distinct) {
            let CodeMeaning::Text(text) = key_of(*column) else { continue };
            rows.iter().for_each(|row| coder.learn(*row, || text(texts, *row)));
        }
    }

    /// Replaces values by their codes, column by column; all must have been learned.
    pub fn put_codes(&self, values: &mut [Vec<u32>]) {
        for ((column, coder), values) in self.coders.iter().zip(values) {
            if matches!(key_of(*column), CodeMeaning::Text(_)) {
                values.iter_mut().for_each(|row| *row = coder.known(*row).unwrap_or(sentinel()));
            }
        }
    }

    /// Returns the texts, and the rows of stacks that belong to a single process.
    pub fn into_texts(self, process_stacks: Option<&ProcessStacks>) -> KeyTexts {
        let columns = self.coders.into_iter().map(|(column, coder)| (column, coder.texts));
        let stacks = process_stacks.map(|stacks| stacks.rows().clone()).unwrap_or_default();
        KeyTexts { columns: columns.collect(), stacks }
    }
}

impl<'a> KeyRows<'a> {
    /// Loads what the columns need; `has_partial` if filters removed events.
    pub fn load(
        file: &'a FileContext<'_>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
        process_stacks: Option<&'a ProcessStacks>,
        has_partial: bool,
    ) -> Result<Self, QueryError> {
        let trace = file.trace;
        let has_any = |wanted: &[GroupColumn]| columns.iter().any(|column| wanted.contains(column));
        let needs = columns
            .iter()
            .map(|column| column.needs_stacks())
            .fold((false, false), |all, of| (all.0 || of.0, all.1 || of.1));
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
        Ok(Self {
            columns: columns.to_vec(),
            times: HandleTimes::load(file)?,
            objects: &file.objects,
            stacks,
            process_stacks,
            stack,
            tid,
            name: name.unwrap_or_default(),
            owner: owner.unwrap_or_default(),
            creator,
        })
    }

    /// Returns the values of handles column by column, as rows of tables or other numbers, with [`sentinel`] for none.
    /// For columns with texts, also returns each distinct value.
    pub fn values(
        &self,
        lives: &LifeTables,
        handles: &[CompactHandle],
    ) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        self.columns
            .iter()
            .map(|column| {
                let values = self.column(*column, lives, handles);
                let distinct = match key_of(*column) {
                    CodeMeaning::Text(_) => distinct(&values),
                    CodeMeaning::Stack | CodeMeaning::Number | CodeMeaning::Word(_) => Vec::new(),
                };
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
            GroupColumn::Type => each(handles, |handle| self.objects.type_id(handle.object).0),
            GroupColumn::Process => each(handles, |handle| self.process(handle)),
            GroupColumn::Name | GroupColumn::NamePattern => {
                each(handles, |handle| self.name(handle.object))
            }
            GroupColumn::Thread => {
                each(handles, |handle| self.thread(opened(handle).or(closed(handle))))
            }
            GroupColumn::Lifetime => each(handles, |handle| {
                duration(handle, opened(handle), closed(handle), &self.times)
            }),
        }
    }

    /// Replaces each stack by the first of its equals, for many handles at once. A loop that does nothing else lets the
    /// processor load many scattered rows at the same time.
    fn united(&self, mut values: Vec<u32>) -> Vec<u32> {
        if let Some(stacks) = self.stacks {
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
            let (stacks, process_stacks) = (self.stacks?, self.process_stacks?);
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

impl RowTexts<'_> {
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
fn lifetime_word(number: u32) -> &'static str {
    let is_open = number as usize == LIFETIMES.len();
    let unknown = if is_open { NOT_CLOSED } else { OPENED_BEFORE };
    LIFETIMES.get(number as usize).map_or(unknown, |(_, text)| *text)
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

impl KeyTexts {
    /// Returns the rows that stack numbers stand for.
    pub fn stack_numbers(&self) -> &NumberedStacks {
        &self.stacks
    }

    /// Returns the key that a code of a column stands for.
    pub fn key(&self, column: GroupColumn, code: u32) -> GroupKey<&str> {
        if code == sentinel() {
            return GroupKey::None;
        }
        match key_of(column) {
            CodeMeaning::Stack => GroupKey::Stack(self.stacks.row(code)),
            CodeMeaning::Number => GroupKey::Number(code.into()),
            CodeMeaning::Word(word) => GroupKey::Text(word(code)),
            CodeMeaning::Text(_) => {
                let texts = self.columns.iter().find(|(known, _)| *known == column);
                let texts = texts.map(|(_, texts)| texts);
                let text = texts.and_then(|texts| texts.get(code as usize));
                text.map_or(GroupKey::None, |text| GroupKey::Text(text))
            }
        }
    }
}

/// GUIDs, hexadecimal numbers with a prefix, and digits.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let guid = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
    Regex::new(&format!("{guid}|0[xX][0-9A-Fa-f]+|[0-9]+")).ok()
});

/// Replaces numbers and GUIDs in a name by `#`, so that names made from one pattern become equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamePattern;

impl NamePattern {
    /// Returns the pattern of a name.
    pub fn of(self, name: &str) -> String {
        VARYING.as_ref().map_or(name.into(), |varying| varying.replace_all(name, "#")).into_owned()
    }
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
            assert_eq!(NamePattern.of(name), pattern);
        }
    }
}
