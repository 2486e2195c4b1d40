//! What `-GroupBy` groups by: from a handle to a number, and from the number to a text.

use hashbrown::HashMap;

use handlescope_model::tables::{Events, Names, Objects};
use handlescope_model::{
    EventIdx, NameIdx, Numbers, ProcessIdx, StackIdx, Texts, TypeId, sentinel,
};

use super::lives::{Life, Times, code};
use super::name_pattern::NamePattern;
use super::stacks::TrimmedStacks;
use crate::query::context::FileContext;
use crate::query::criteria::{GroupColumn, ObjectCriteria};
use crate::query::error::QueryError;
use crate::query::objects::ObjectTable;

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
/// Rows below have a place of their own in a table; no table of processes or names of types is as long.
const NEAR: usize = 1 << 20;

const NOT_CLOSED: &str = "not closed";
const OPENED_BEFORE: &str = "opened before the trace";

/// What the handles of a group have in common in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey<'a> {
    /// A name of whatever it is.
    Text(&'a str),
    Number(u32),
    /// A stack: one of those that are equal.
    Stack(StackIdx),
    /// They have none: no name, no stack, not closed.
    None,
}

/// What handles have in columns, as rows of tables or other numbers.
pub(super) struct KeyRows<'a> {
    columns: Vec<GroupColumn>,
    objects: &'a ObjectTable,
    times: Times,
    stacks: Option<&'a TrimmedStacks>,
    stack: Numbers<StackIdx>,
    tid: Numbers<u32>,
    name: Numbers<NameIdx>,
}

/// Makes the numbers that handles are grouped by: one for each text.
pub(super) struct Keys<'a> {
    texts: RowTexts<'a>,
    coders: Vec<Coder>,
}

/// What rows are called.
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
    texts: Vec<String>,
    by_text: HashMap<String, u32>,
    /// By row, [`sentinel`] where it was not asked for yet.
    near: Vec<u32>,
    /// Of rows with large numbers.
    far: HashMap<u32, u32>,
}

/// What the numbers of all columns stand for.
pub(super) struct KeyTexts(Vec<(GroupColumn, Vec<String>)>);

impl<'a> Keys<'a> {
    pub(super) fn new(
        file: &'a FileContext<'a>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
        criteria: &ObjectCriteria,
    ) -> Result<Self, QueryError> {
        let coder = |column: &GroupColumn| Coder {
            column: *column,
            texts: Vec::new(),
            by_text: HashMap::new(),
            near: Vec::new(),
            far: HashMap::new(),
        };
        Ok(Self {
            texts: RowTexts {
                file,
                stacks,
                names: file.trace.values(Names::name)?,
                pattern: NamePattern,
                // The executable identifies a process.
                is_plain: criteria.plain_process_names || criteria.with_identities,
            },
            coders: columns.iter().map(coder).collect(),
        })
    }

    /// Number of columns.
    pub(super) fn width(&self) -> usize {
        self.coders.len()
    }

    /// Makes the numbers of handles of which [`KeyRows`] says what they have in each column.
    pub(super) fn learn(&mut self, rows: &[u32]) {
        let Self { texts, coders } = self;
        let width = coders.len();
        for (at, coder) in coders.iter_mut().enumerate() {
            rows.iter().skip(at).step_by(width).for_each(|row| coder.learn(*row, texts));
        }
    }

    /// The numbers of a handle, which were made.
    pub(super) fn codes(&self, rows: &[u32]) -> impl Iterator<Item = u32> {
        self.coders.iter().zip(rows).map(|(coder, row)| coder.known(*row).unwrap_or(sentinel()))
    }

    pub(super) fn into_texts(self) -> KeyTexts {
        KeyTexts(self.coders.into_iter().map(|coder| (coder.column, coder.texts)).collect())
    }
}

impl Coder {
    /// The number of a row, if it was made.
    fn known(&self, row: u32) -> Option<u32> {
        if is_own_text(self.column) || row == sentinel() {
            return Some(row);
        }
        let near = self.near.get(row as usize).copied().filter(|code| *code != sentinel());
        near.or_else(|| self.far.get(&row).copied())
    }

    fn learn(&mut self, row: u32, texts: &RowTexts<'_>) {
        if self.known(row).is_some() {
            return;
        }
        let text = texts.of(self.column, row);
        let next = code(Some(self.texts.len()));
        let code = *self.by_text.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        });
        let at = row as usize;
        if at >= NEAR {
            self.far.insert(row, code);
            return;
        }
        if self.near.len() <= at {
            self.near.resize(at + 1, sentinel());
        }
        if let Some(near) = self.near.get_mut(at) {
            *near = code;
        }
    }
}

/// Whether the number itself is the key.
fn is_own_text(column: GroupColumn) -> bool {
    use GroupColumn::{CloseStack, CreateStack, Lifetime, Thread};
    matches!(column, CreateStack | CloseStack | Thread | Lifetime)
}

impl<'a> KeyRows<'a> {
    pub(super) fn load(
        file: &'a FileContext<'_>,
        columns: &[GroupColumn],
        stacks: Option<&'a TrimmedStacks>,
    ) -> Result<Self, QueryError> {
        Ok(Self {
            columns: columns.to_vec(),
            times: Times::load(file.trace)?,
            objects: &file.objects,
            stacks,
            stack: file.trace.values(Events::stack)?,
            tid: file.trace.values(Events::tid)?,
            name: file.trace.values(Objects::name)?,
        })
    }

    /// What a handle has in each column, before [`Self::unite`].
    pub(super) fn of(&self, life: &Life) -> impl Iterator<Item = u32> {
        self.columns.iter().map(|column| self.row(*column, life))
    }

    /// Puts the first of the stacks that are equal in the place of each, for many handles at once: of rows
    /// here and there, the processor reads many at the same time in a loop that does nothing else.
    pub(super) fn unite(&self, rows: &mut [u32]) {
        let Some(stacks) = self.stacks else { return };
        let columns = self.columns.iter().enumerate();
        for (at, _) in columns.filter(|(_, column)| column.needs_stacks() != (false, false)) {
            for row in rows.iter_mut().skip(at).step_by(self.columns.len()) {
                *row = stacks.equal(StackIdx(*row)).0;
            }
        }
    }

    /// A row, or a number; [`sentinel`] for nothing.
    fn row(&self, column: GroupColumn, life: &Life) -> u32 {
        let stack = |event: Option<EventIdx>| {
            let stack = event.and_then(|event| self.stack.get(event.row()));
            stack.unwrap_or(StackIdx::NONE).0
        };
        match column {
            GroupColumn::CreateStack | GroupColumn::Module | GroupColumn::Function => {
                stack(life.opened)
            }
            GroupColumn::CloseStack => stack(life.closed),
            GroupColumn::Type => self.objects.type_id(life.object).0,
            GroupColumn::Process => life.owner.unwrap_or(ProcessIdx::NONE).0,
            GroupColumn::Name | GroupColumn::NamePattern => {
                self.name.get(life.object.row()).unwrap_or(NameIdx::NONE).0
            }
            GroupColumn::Thread => {
                let event = life.opened.or(life.closed);
                event.and_then(|event| self.tid.get(event.row())).unwrap_or(sentinel())
            }
            GroupColumn::Lifetime => lifetime(life, &self.times),
        }
    }
}

impl RowTexts<'_> {
    fn of(&self, column: GroupColumn, row: u32) -> String {
        let name = || self.names.text(row as usize);
        let stacks = self.stacks;
        match column {
            GroupColumn::Type => self.file.types.get(TypeId(row)).to_owned(),
            GroupColumn::Process => {
                self.file.processes.get(ProcessIdx(row)).shown_label(self.is_plain)
            }
            GroupColumn::Name => name().to_owned(),
            GroupColumn::NamePattern => self.pattern.of(name()),
            GroupColumn::Module => {
                stacks.map_or_else(String::new, |stacks| stacks.module(self.file, StackIdx(row)))
            }
            GroupColumn::Function => {
                stacks.map_or_else(String::new, |stacks| stacks.function(self.file, StackIdx(row)))
            }
            _ => String::new(),
        }
    }
}

/// The number of a lifetime: its place in [`LIFETIMES`], or one of the two after them.
fn lifetime(life: &Life, times: &Times) -> u32 {
    let (not_closed, before) = (LIFETIMES.len() as u32, LIFETIMES.len() as u32 + 1);
    let time = |event: Option<EventIdx>| event.and_then(|event| times.of(event.row()));
    match (time(life.opened), time(life.closed)) {
        _ if life.is_bare => sentinel(),
        // Without a clock, how long is unknown.
        (None, _) if life.opened.is_some() => sentinel(),
        (None, _) => before,
        (Some(_), None) => not_closed,
        (Some(opened), Some(closed)) => {
            let lived = closed.saturating_sub(opened);
            let place = LIFETIMES.iter().position(|(end, _)| lived < *end);
            place.map_or(not_closed - 1, |place| place as u32)
        }
    }
}

impl KeyTexts {
    /// What a number of a column stands for.
    pub(super) fn key(&self, column: GroupColumn, code: u32) -> GroupKey<'_> {
        if code == sentinel() {
            return GroupKey::None;
        }
        match column {
            GroupColumn::CreateStack | GroupColumn::CloseStack => GroupKey::Stack(StackIdx(code)),
            GroupColumn::Thread => GroupKey::Number(code),
            GroupColumn::Lifetime => {
                let known = LIFETIMES.get(code as usize).map(|(_, text)| *text);
                let is_open = code as usize == LIFETIMES.len();
                GroupKey::Text(known.unwrap_or(if is_open { NOT_CLOSED } else { OPENED_BEFORE }))
            }
            _ => {
                let texts = self.0.iter().find(|(own, _)| *own == column).map(|(_, texts)| texts);
                let text = texts.and_then(|texts| texts.get(code as usize));
                text.map_or(GroupKey::None, |text| GroupKey::Text(text))
            }
        }
    }
}
