//! The members of a document, whatever it is about.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Meanings;
use super::file::{StackNumbers, StacksJson, TraceJson, Traces};
use crate::no_match::InOptions;
use handlescope_query::{GroupKey, NoMatch};

/// A value of any type in a document.
type Erased<'a> = Box<dyn erased_serde::Serialize + 'a>;

/// Members of a document in their order, which are made while they are written.
#[derive(Default)]
pub struct Document<'a>(Vec<(&'static str, Erased<'a>)>);

impl<'a> Document<'a> {
    /// Creates a document of this kind.
    pub fn of(kind: &'static str) -> Self {
        Self::default().with("kind", kind)
    }

    /// Adds a member.
    pub fn with(mut self, name: &'static str, value: impl Serialize + 'a) -> Self {
        self.0.push((name, Box::new(value)));
        self
    }

    /// Adds the common value of a group in a column.
    pub fn with_key(
        self,
        column: &'static str,
        key: GroupKey<impl Serialize + 'a>,
        numbers: StackNumbers,
    ) -> Self {
        match key {
            GroupKey::Text(text) => self.with(column, text),
            GroupKey::Number(number) => self.with(column, number),
            GroupKey::Stack(stack) => self.with(column, numbers.of(stack)),
            GroupKey::None => self.with(column, ()),
        }
    }

    /// Like [`with`](Self::with), but adds nothing without a value.
    pub fn with_some(self, name: &'static str, value: Option<impl Serialize + 'a>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the traces.
    pub fn files(self, traces: &Traces<'a>) -> Self {
        let headers: Vec<_> = traces.iter().map(TraceJson::header).collect();
        self.with("files", headers)
    }

    /// Adds the stacks that the answers for some traces refer to, if these are shown.
    pub fn stacks_if(self, are_shown: bool, traces: &Traces<'a>) -> Self {
        if are_shown { self.stacks(traces) } else { self }
    }

    /// Adds the stacks that the answers for some traces refer to.
    pub fn stacks(self, traces: &Traces<'a>) -> Self {
        self.with("stacks", StacksJson(Traces::clone(traces)))
    }

    /// Adds the caveats of the answers for some traces, and the reason why nothing matches.
    pub fn caveats(self, traces: &Traces<'a>) -> Self {
        let caveats: Vec<_> = traces.iter().flat_map(TraceJson::caveats).collect();
        self.with("caveats", caveats).no_match(traces.iter().map(TraceJson::no_match))
    }

    /// Adds the first of the reasons why nothing passes, by the numbers of traces.
    pub fn no_match<'n: 'a>(
        self,
        mut answers: impl Iterator<Item = (usize, Option<&'n NoMatch>)>,
    ) -> Self {
        let first = answers.find_map(|(file, no_match)| Some((file, no_match?)));
        let document = first.map(|(file, no_match)| {
            Document::default()
                .with("file", file)
                .with("option", InOptions(no_match).option())
                .with("before", no_match.before)
                .with("nearest", InOptions(no_match).nearest_options())
                .with("existing", &no_match.existing)
        });
        self.with_some("no_match", document)
    }

    /// Adds the members of another document.
    pub fn and<'d>(self, members: &'a Document<'d>) -> Self {
        members.0.iter().fold(self, |document, (name, value)| document.with(name, value))
    }
}

impl Document<'_> {
    fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_members(&mut map)?;
        map.end()
    }
}

/// A document with many rows between its other members, whose type is not erased.
pub struct Rows<'d, R> {
    pub head: Document<'d>,
    pub name: &'static str,
    pub rows: R,
    pub tail: Document<'d>,
}

impl<R: Serialize> Serialize for Rows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.head.write_members(&mut map)?;
        map.serialize_entry(self.name, &self.rows)?;
        self.tail.write_members(&mut map)?;
        map.end()
    }
}

/// Meanings of the members of `no_match` in `.dump ObjectRef`.
pub const NO_MATCH_MEMBERS: Meanings = &[
    ("file", "the first file for which this is known"),
    (
        "option",
        "the option with its filter as given, as in `\"-Type Evnt\"`; options that are not text \
         filters without their value, as in `\"-MinMaxTime\"`. No object or allocation passes \
         this filter and those before it, in filter order",
    ),
    (
        "before",
        "number of objects or allocations that pass the filters before it; for other lists, \
         number of rows",
    ),
    ("nearest", "what may have been meant, as options"),
    (
        "existing",
        "if nothing is near: some of the existing names of processes and types, for allocations \
         also of kinds and allocators",
    ),
];
