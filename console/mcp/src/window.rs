//! Reads of a document what one page may show, so that a page takes no more memory when the document has more.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The member with the stacks that rows refer to.
pub const STACKS: &str = "stacks";

/// Position of a page: rows before it, and elements of the list of its first row that were there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagePosition {
    pub row: usize,
    pub element: usize,
}

/// Names of members of the rows.
#[derive(Debug, Clone, Copy)]
pub struct MemberNames {
    /// Member of the document with the rows.
    pub rows: &'static str,
    /// List of a row that may be continued on the next page.
    pub list: Option<&'static str>,
}

/// Bytes of a document in memory; a larger one is in an unnamed temporary file.
pub const IN_MEMORY: usize = 8 << 20;

/// Elements of a list that are read: more than any page has.
const MAX_LIST: usize = 1000;

/// Elements of the list of a row that goes on on the next page.
const MAX_ELEMENTS: usize = 4000;

/// Bytes of one row, or of everything beside the rows: more than any page has.
const MAX_VALUE: usize = 1 << 20;

/// Bytes of the rows of a page before they are briefed.
const MAX_ROWS: usize = 64 << 20;

/// The rows that a page may show.
pub struct PageWindow<'w> {
    pub names: MemberNames,
    pub first: PagePosition,
    pub count: usize,
    /// Whether a row counts, where not all do. The others are in no page.
    pub counts: Option<&'w mut dyn FnMut(&Value) -> bool>,
}

/// The part of a document that a page may show.
#[derive(Default)]
pub struct DocumentPart {
    /// Everything but the rows and the stacks.
    pub document: Map<String, Value>,
    /// The rows of the window.
    pub rows: Vec<WindowRow>,
    /// The stacks that these rows refer to, if the document has stacks.
    pub stacks: Option<Map<String, Value>>,
    /// Number of all rows.
    pub total: usize,
}

/// A row, perhaps without elements of its lists.
pub struct WindowRow {
    pub value: Value,
    /// Elements of its list that may continue, in the document.
    pub length: usize,
    /// Whether something of it was left out that no page will show.
    pub is_cut: bool,
}

impl<'de> DeserializeSeed<'de> for PageWindow<'_> {
    type Value = DocumentPart;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DocumentPart, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageWindow<'_> {
    type Value = DocumentPart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<DocumentPart, M::Error> {
        let mut part = DocumentPart::default();
        let beside = ValueBudget::default();
        while let Some(name) = members.next_key::<String>()? {
            if name == self.names.rows {
                let rows = RowsSeed { window: &mut self, part: &mut part };
                members.next_value_seed(rows)?;
            } else if name == STACKS {
                // They stand behind the rows.
                let mut wanted = Vec::new();
                part.rows.iter().for_each(|row| collect_stacks(&row.value, &mut wanted));
                let wanted = wanted.into_iter().map(|number| number.to_string()).collect();
                part.stacks = Some(members.next_value_seed(StacksSeed { wanted })?);
            } else {
                let value = members.next_value_seed(&beside)?;
                part.document.insert(name, value);
            }
        }
        Ok(part)
    }
}

struct RowsSeed<'p, 'w> {
    window: &'p mut PageWindow<'w>,
    part: &'p mut DocumentPart,
}

impl<'de> DeserializeSeed<'de> for RowsSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut rows: S) -> Result<(), S::Error> {
        let RowsSeed { window: PageWindow { names, first, count, counts }, part } = self;
        let mut bytes = 0;
        loop {
            let index = part.total;
            let is_shown = index >= first.row && part.rows.len() < *count && bytes < MAX_ROWS;
            if !is_shown && counts.is_none() {
                match rows.next_element::<IgnoredAny>()? {
                    Some(_) => part.total += 1,
                    None => return Ok(()),
                }
                continue;
            }
            let skip = if index == first.row { first.element } else { 0 };
            let seed = RowSeed { list: names.list, skip, budget: ValueBudget::default() };
            let Some((row, used)) = rows.next_element_seed(seed)? else { return Ok(()) };
            if !counts.as_mut().is_none_or(|counts| counts(&row.value)) {
                continue;
            }
            part.total += 1;
            if is_shown {
                bytes += used;
                part.rows.push(row);
            }
        }
    }
}

struct RowSeed {
    list: Option<&'static str>,
    /// Elements of the list that pages before have shown.
    skip: usize,
    budget: ValueBudget,
}

impl<'de> DeserializeSeed<'de> for RowSeed {
    type Value = (WindowRow, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed {
    type Value = (WindowRow, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let RowSeed { list, skip, budget } = self;
        let (mut row, mut length) = (Map::new(), 0);
        while let Some(name) = members.next_key::<String>()? {
            if list != Some(name.as_str()) {
                let value = members.next_value_seed(&budget)?;
                row.insert(name, value);
                continue;
            }
            let elements = ElementsSeed { skip, most: MAX_ELEMENTS, budget: &budget };
            let (elements, all) = members.next_value_seed(elements)?;
            length = all;
            row.insert(name.clone(), elements);
            if skip > 0 {
                row.insert(format!("{name}_before"), skip.into());
            }
        }
        let row = WindowRow { value: row.into(), length, is_cut: budget.is_cut.get() };
        Ok((row, MAX_VALUE - budget.left.get()))
    }
}

/// Some elements of a list, and how many it has.
struct ElementsSeed<'b> {
    skip: usize,
    most: usize,
    budget: &'b ValueBudget,
}

impl<'de> DeserializeSeed<'de> for ElementsSeed<'_> {
    type Value = (Value, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ElementsSeed<'_> {
    type Value = (Value, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok((Value::Null, 0))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Value, S::Error> {
        let (mut shown, mut length) = (Vec::new(), 0);
        loop {
            let is_shown = length >= self.skip
                && shown.len() < self.most
                && (shown.is_empty() || self.budget.left.get() > MAX_VALUE / 4);
            let found = if is_shown {
                let element = elements.next_element_seed(self.budget)?;
                let found = element.is_some();
                shown.extend(element);
                found
            } else {
                elements.next_element::<IgnoredAny>()?.is_some()
            };
            if !found {
                return Ok((shown.into(), length));
            }
            length += 1;
        }
    }
}

/// The stacks of these numbers.
struct StacksSeed {
    wanted: HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for StacksSeed {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for StacksSeed {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stacks")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut stacks: M) -> Result<Self::Value, M::Error> {
        let mut shown = Map::new();
        while let Some(number) = stacks.next_key::<String>()? {
            if self.wanted.contains(&number) {
                let frames = stacks.next_value_seed(&ValueBudget::default())?;
                shown.insert(number, frames);
            } else {
                stacks.next_value::<IgnoredAny>()?;
            }
        }
        Ok(shown)
    }
}

/// Bytes that values may still take. Lists, members and texts beyond are left out.
struct ValueBudget {
    left: Cell<usize>,
    is_cut: Cell<bool>,
}

impl Default for ValueBudget {
    fn default() -> Self {
        Self { left: Cell::new(MAX_VALUE), is_cut: Cell::new(false) }
    }
}

impl ValueBudget {
    /// Takes bytes of a value, as many as are left.
    fn take(&self, bytes: usize) -> usize {
        let taken = bytes.min(self.left.get());
        self.left.set(self.left.get() - taken);
        taken
    }

    /// Whether there is room for another value; notes that one is left out where not.
    fn has_room(&self) -> bool {
        let has_room = self.left.get() > 0;
        self.is_cut.set(self.is_cut.get() || !has_room);
        has_room
    }
}

impl<'de> DeserializeSeed<'de> for &ValueBudget {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take(size_of::<Value>());
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &ValueBudget {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let length = text.floor_char_boundary(self.take(text.len()));
        self.is_cut.set(self.is_cut.get() || length < text.len());
        Ok(text.get(..length).unwrap_or_default().into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Value, S::Error> {
        let mut shown = Vec::new();
        while shown.len() < MAX_LIST && self.left.get() > 0 {
            match elements.next_element_seed(self)? {
                Some(element) => shown.push(element),
                None => return Ok(shown.into()),
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {
            self.is_cut.set(true);
        }
        Ok(shown.into())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Value, M::Error> {
        let mut shown = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if self.has_room() {
                self.take(name.len());
                let value = members.next_value_seed(self)?;
                shown.insert(name, value);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(shown.into())
    }
}

/// The numbers of the stacks that a row refers to.
pub fn collect_stacks(value: &Value, numbers: &mut Vec<u64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_stacks(item, numbers)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Number(number) if name.ends_with("stack") => {
                        numbers.extend(number.as_u64());
                    }
                    Value::Array(items) if name.ends_with(STACKS) => {
                        numbers.extend(items.iter().filter_map(Value::as_u64));
                    }
                    value => collect_stacks(value, numbers),
                }
            }
        }
        _ => {}
    }
}
