//! Columns of `-GroupBy`: from a handle to a number, and from the number to a text.

use std::sync::LazyLock;

use hashbrown::HashMap;
use regex::Regex;

use handlescope_model::tables::{Names, Objects};
use handlescope_model::{
    NameIdx, Numbers, ObjectIdx, ProcessIdx, StackIdx, Texts, TypeId, sentinel,
};

use super::lifetimes::{Lifetime, Times, code};
use super::process_stacks::{ProcessStacks, StackNumbers};
use crate::context::FileContext;
use crate::criteria::{GroupColumn, GroupKey};
use crate::error::QueryError;
use crate::events::{EventColumns, EventValues};
use crate::objects::ObjectTable;
use crate::trimmed_stacks::TrimmedStacks;

/// Meaning of the numbers of a column.
enum Key {
    Stack,
    Number,
    Word(fn(u32) -> &'static str),
    /// Texts of rows: those of the same text have one number.
    Text(fn(&RowTexts<'_>, u32) -> String),
}

/// Returns what a column reads from a handle: a row, a number, or [`sentinel`] for nothing. A `match` instead of a function
/// pointer, because it is called for every handle.
fn row_of(column: GroupColumn, rows: &KeyRows<'_>, lifetime: &Lifetime) -> u32 {
    match column {
        GroupColumn::CreateStack => rows.stack_in_process(lifetime.opened),
        GroupColumn::CloseStack => rows.stack_in_process(lifetime.closed),
        GroupColumn::Type => rows.objects.type_id(lifetime.object).0,
        GroupColumn::Process => lifetime.owner.unwrap_or(ProcessIdx::NONE).0,
        GroupColumn::Name => rows.name(lifetime.object),
        GroupColumn::NamePattern => rows.name(lifetime.object),
        GroupColumn::Module => rows.stack(lifetime.opened),
        GroupColumn::Function => rows.stack(lifetime.opened),
        GroupColumn::Thread => rows.thread(lifetime),
        GroupColumn::Lifetime => duration(lifetime, &rows.times),
    }
}

/// Returns what the numbers of a column stand for.
fn key_of(column: GroupColumn) -> Key {
    match column {
        GroupColumn::CreateStack => Key::Stack,
        GroupColumn::CloseStack => Key::Stack,
        GroupColumn::Type => Key::Text(|texts, row| texts.file.types.get(TypeId(row)).to_owned()),
        GroupColumn::Process => {
            Key::Text(|of, row| of.file.processes.get(ProcessIdx(row)).shown_label(of.is_plain))
        }
        GroupColumn::Name => Key::Text(|texts, row| texts.names.text(row as usize).to_owned()),
        GroupColumn::NamePattern => {
            Key::Text(|texts, row| texts.pattern.of(texts.names.text(row as usize)))
        }
        GroupColumn::Module => {
            Key::Text(|of, row| of.of_stack(|stacks| stacks.module(of.file, StackIdx(row))))
        }
        GroupColumn::Function => {
            Key::Text(|of, row| of.of_stack(|stacks| stacks.function(of.file, StackIdx(row))))
        }
        GroupColumn::Thread => Key::Number,
        GroupColumn::Lifetime => Key::Word(lifetime_word),
    }
}

/// Upper ends of lifetimes in nanoseconds, with what those below are called.
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
/// Rows below have a slot in a table; no table of processes or names of types is as long.
const DENSE_LIMIT: usize = 1 << 20;

const NOT_CLOSED: &str = "not closed";
const OPENED_BEFORE: &str = "opened before the trace";

/// Values of handles in the columns, as rows of tables or other numbers.
pub struct KeyRows<'a> {
    columns: Vec<GroupColumn>,
    objects: &'a ObjectTable,
    times: Times,
    stacks: Option<&'a TrimmedStacks>,
    process_stacks: Option<&'a ProcessStacks>,
    stack: Option<EventValues<StackIdx>>,
    tid: Option<EventValues<u32>>,
    name: Numbers<NameIdx>,
}

/// Makes the numbers that handles are grouped by: one for each text.
pub struct Keys<'a> {
    texts: RowTexts<'a>,
    coders: Vec<Coder>,
}

/// Texts of rows.
struct RowTexts<'a> {
    file: &'a FileContext<'a>,
    stacks: Option<&'a TrimmedStacks>,
    names: Texts,
    pattern: NamePattern,
    /// Whether processes go by the names of their executables.
    is_plain: bool,
}

/// The numbers of one column.
struct Coder {
    column: GroupColumn,
    /// Text of a row; `None` where the text is the number itself.
    text: Option<fn(&RowTexts<'_>, u32) -> String>,
    texts: Vec<String>,
    by_text: HashMap<String, u32>,
    /// Numbers by row, [`sentinel`] for rows that have none yet.
    near: Vec<u32>,
    /// Numbers of large rows.
    far: HashMap<u32, u32>,
}

/// Texts of the numbers of all columns.
pub struct KeyTexts {
    columns: Vec<(GroupColumn, Vec<String>)>,
    stacks: StackNumbers,
}

impl<'a> Keys<'a> {
    pub fn new(
        file: &'a FileContext<'a>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
        is_plain: bool,
    ) -> Result<Self, QueryError> {
        let coders = columns.iter().map(|column| Coder {
            column: *column,
            text: match key_of(*column) {
                Key::Text(text) => Some(text),
                _ => None,
            },
            texts: Vec::new(),
            by_text: HashMap::new(),
            near: Vec::new(),
            far: HashMap::new(),
        });
        Ok(Self {
            texts: RowTexts {
                file,
                stacks,
                names: file.trace.values(Names::name)?,
                pattern: NamePattern,
                is_plain,
            },
            coders: coders.collect(),
        })
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.coders.len()
    }

    /// Makes the numbers of handles of which [`KeyRows`] says what they have in each column.
    pub fn learn(&mut self, rows: &[u32]) {
        let Self { texts, coders } = self;
        let width = coders.len();
        for (index, coder) in coders.iter_mut().enumerate() {
            rows.iter().skip(index).step_by(width).for_each(|row| coder.learn(*row, texts));
        }
    }

    /// The numbers of a handle, which were made.
    pub fn codes(&self, rows: &[u32]) -> impl Iterator<Item = u32> {
        self.coders.iter().zip(rows).map(|(coder, row)| coder.known(*row).unwrap_or(sentinel()))
    }

    /// The texts, and the rows of stacks of single processes.
    pub fn into_texts(self, process_stacks: Option<&ProcessStacks>) -> KeyTexts {
        let columns = self.coders.into_iter().map(|coder| (coder.column, coder.texts));
        let stacks = process_stacks.map(|stacks| stacks.rows().clone()).unwrap_or_default();
        KeyTexts { columns: columns.collect(), stacks }
    }
}

impl Coder {
    /// The number of a row, if it was made.
    fn known(&self, row: u32) -> Option<u32> {
        if self.text.is_none() || row == sentinel() {
            return Some(row);
        }
        let near = self.near.get(row as usize).copied().filter(|code| *code != sentinel());
        near.or_else(|| self.far.get(&row).copied())
    }

    fn learn(&mut self, row: u32, texts: &RowTexts<'_>) {
        let Some(text) = self.text.filter(|_| self.known(row).is_none()) else { return };
        let text = text(texts, row);
        let next = code(Some(self.texts.len()));
        let code = *self.by_text.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        });
        let index = row as usize;
        if index >= DENSE_LIMIT {
            self.far.insert(row, code);
            return;
        }
        if self.near.len() <= index {
            self.near.resize(index + 1, sentinel());
        }
        if let Some(near) = self.near.get_mut(index) {
            *near = code;
        }
    }
}

impl<'a> KeyRows<'a> {
    pub fn load(
        file: &'a FileContext<'_>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
        process_stacks: Option<&'a ProcessStacks>,
    ) -> Result<Self, QueryError> {
        let trace = file.trace;
        let has_any = |wanted: &[GroupColumn]| columns.iter().any(|column| wanted.contains(column));
        let has_stacks = columns.iter().any(|column| column.needs_stacks() != (false, false));
        let has_names = has_any(&[GroupColumn::Name, GroupColumn::NamePattern]);
        let has_threads = has_any(&[GroupColumn::Thread]);
        let events = EventColumns::of_all(trace)?;
        let stack = has_stacks.then(|| events.stacks()).transpose()?;
        let name = has_names.then(|| trace.values(Objects::name)).transpose()?;
        let tid = has_threads.then(|| events.tids()).transpose()?;
        Ok(Self {
            columns: columns.to_vec(),
            times: Times::load(file)?,
            objects: &file.objects,
            stacks,
            process_stacks,
            stack,
            tid,
            name: name.unwrap_or_default(),
        })
    }

    /// Values of a handle in the columns, before [`Self::unite`].
    pub fn of(&self, lifetime: &Lifetime) -> impl Iterator<Item = u32> {
        self.columns.iter().map(|column| row_of(*column, self, lifetime))
    }

    /// Puts the first of the stacks that are equal in the place of each, for many handles at once: of rows
    /// here and there, the processor reads many at the same time in a loop that does nothing else.
    pub fn unite(&self, rows: &mut [u32]) {
        let Some(stacks) = self.stacks else { return };
        let columns = self.columns.iter().enumerate();
        for (index, _) in columns.filter(|(_, column)| column.needs_stacks() != (false, false)) {
            for row in rows.iter_mut().skip(index).step_by(self.columns.len()) {
                // Larger numbers are of stacks of single processes, and are equal to no other.
                if (*row as usize) < stacks.height() {
                    *row = stacks.equal(StackIdx(*row)).0;
                }
            }
        }
    }

    /// The stack of an event.
    fn stack(&self, event: Option<usize>) -> u32 {
        let stack = self.stack.as_ref().zip(event).and_then(|(stack, event)| stack.get(event));
        stack.unwrap_or(StackIdx::NONE).0
    }

    /// The stack of an event; of one through unknown code, its number in the process.
    fn stack_in_process(&self, event: Option<usize>) -> u32 {
        let stack = self.stack(event);
        let of_process = || {
            let (stacks, process_stacks) = (self.stacks?, self.process_stacks?);
            process_stacks.of_event(stacks, StackIdx(stack), event?)
        };
        of_process().map_or(stack, |stack| stack.0)
    }

    /// The name of an object.
    fn name(&self, object: ObjectIdx) -> u32 {
        self.name.get(object.row()).unwrap_or(NameIdx::NONE).0
    }

    /// The thread of the opening, or else of the close.
    fn thread(&self, lifetime: &Lifetime) -> u32 {
        let event = lifetime.opened.or(lifetime.closed);
        let tid = self.tid.as_ref().zip(event);
        tid.map_or(sentinel(), |(tid, event)| tid.get(event).unwrap_or_default())
    }
}

impl RowTexts<'_> {
    /// Text of a stack, by its representative frame.
    fn of_stack(&self, text: impl FnOnce(&TrimmedStacks) -> String) -> String {
        self.stacks.map(text).unwrap_or_default()
    }
}

/// Text for the number of a lifetime.
fn lifetime_word(number: u32) -> &'static str {
    let is_open = number as usize == LIFETIMES.len();
    let unknown = if is_open { NOT_CLOSED } else { OPENED_BEFORE };
    LIFETIMES.get(number as usize).map_or(unknown, |(_, text)| *text)
}

/// The number of a lifetime: its place in [`LIFETIMES`], or one of the two after them.
fn duration(lifetime: &Lifetime, times: &Times) -> u32 {
    let (not_closed, before) = (LIFETIMES.len() as u32, LIFETIMES.len() as u32 + 1);
    let time = |event: Option<usize>| event.and_then(|event| times.of(event));
    match (time(lifetime.opened), time(lifetime.closed)) {
        _ if lifetime.is_bare => sentinel(),
        // Without a clock, the duration is unknown.
        (None, _) if lifetime.opened.is_some() => sentinel(),
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
    /// Key that a number of a column stands for.
    pub fn key(&self, column: GroupColumn, code: u32) -> GroupKey<&str> {
        if code == sentinel() {
            return GroupKey::None;
        }
        match key_of(column) {
            Key::Stack => GroupKey::Stack(self.stacks.row(code)),
            Key::Number => GroupKey::Number(code.into()),
            Key::Word(word) => GroupKey::Text(word(code)),
            Key::Text(_) => {
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

/// Collapses numbers and GUIDs of a name to `#`, so that names which were made from one pattern are equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamePattern;

impl NamePattern {
    /// The pattern of a name.
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
