//! Schemas, compiled: what a payload consists of.

use std::sync::Arc;

use super::reading::{Extent, Form};
use crate::etl::Guid;

/// Most fields of one event. EventInfo records have room for 2,700.
const MAX_FIELDS: usize = 4096;

/// How deep structures may stand in structures.
const MAX_DEPTH: u8 = 8;

/// Where a schema comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaSource {
    /// The event itself has it.
    TraceLogging,
    /// An EventInfo record (TRACE_EVENT_INFO).
    EventInfo,
    /// A manifest that an EventSource wrote into the trace.
    Manifest,
}

/// The number of a schema in its [`Decoder`](super::Decoder).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub u32);

impl SchemaId {
    /// The number, for indexing.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

/// What an event is called, and what its payload consists of.
#[derive(Debug, Clone)]
pub struct Schema {
    pub source: SchemaSource,
    /// Name of the provider; empty where the trace does not say.
    pub provider: Arc<str>,
    pub guid: Guid,
    pub id: u16,
    pub version: u8,
    /// Name of the task, or of the event for TraceLogging; empty where there is none.
    pub task: Arc<str>,
    /// Name of the opcode; empty where there is none.
    pub opcode: Arc<str>,
    pub fields: Arc<Fields>,
}

impl Schema {
    /// The name of the event: task, `/` and opcode; `Event(7)` without a task.
    pub fn name(&self) -> String {
        let mut name = self.task.to_string();
        if name.is_empty() {
            name = format!("Event({})", self.id);
        }
        if !self.opcode.is_empty() {
            name.push('/');
            name.push_str(&self.opcode);
        }
        name
    }
}

/// A field: a value, a structure, or an array of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPlan {
    pub name: Box<str>,
    pub kind: FieldKind,
    pub count: Count,
    /// The map that names its values.
    pub map: Option<Box<str>>,
}

/// What a field, or an item of an array, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    Value(Form, Extent),
    /// The members are so many fields from the first on.
    Structure {
        first: u16,
        members: u16,
    },
}

/// How often it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Once; it is not an array.
    One,
    /// An array of so many.
    Fixed(u16),
    /// An array of as many as the integer in this field says.
    Field(u16),
    /// An array of as many as the 16-bit number in front of it says.
    Prefixed,
}

/// The fields of an event: first those of the top level, then members of structures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    all: Vec<FieldPlan>,
    top_level: usize,
}

impl Fields {
    /// Fields of which the first `top_level` are those of the event. `None` when there are too many, when
    /// references lead nowhere, or structures are not a tree of little depth.
    pub(super) fn new(all: Vec<FieldPlan>, top_level: usize) -> Option<Self> {
        if all.len() > MAX_FIELDS || top_level > all.len() {
            return None;
        }
        let is_field = |at: u16| usize::from(at) < all.len();
        let mut depths = vec![1_u8; all.len()];
        let mut members_in_all = 0;
        // Members follow their structure, so from the end each depth is known when it is asked for.
        for (at, field) in all.iter().enumerate().rev() {
            let counts = !matches!(field.count, Count::Field(at) if !is_field(at));
            let extends = match field.kind {
                FieldKind::Value(_, Extent::BytesOf(at) | Extent::CharactersOf(at)) => is_field(at),
                FieldKind::Value(..) => true,
                FieldKind::Structure { first, members } => {
                    let (first, members) = (usize::from(first), usize::from(members));
                    members_in_all += members;
                    let inner = depths.get(first..first + members)?;
                    let deepest = inner.iter().max().copied().unwrap_or(0);
                    let is_tree = first > at && members_in_all <= all.len();
                    if !is_tree || deepest >= MAX_DEPTH {
                        return None;
                    }
                    depths[at] = deepest + 1;
                    true
                }
            };
            if !counts || !extends {
                return None;
            }
        }
        Some(Self { all, top_level })
    }

    /// Those of the event itself.
    pub fn top_level(&self) -> &[FieldPlan] {
        self.all.get(..self.top_level).unwrap_or_default()
    }

    /// The field of a number.
    pub fn get(&self, at: usize) -> Option<&FieldPlan> {
        self.all.get(at)
    }

    pub fn all(&self) -> &[FieldPlan] {
        &self.all
    }

    /// The members of a structure.
    pub fn members(&self, first: u16, members: u16) -> &[FieldPlan] {
        let first = usize::from(first);
        self.all.get(first..first + usize::from(members)).unwrap_or_default()
    }

    /// Bytes they take in memory.
    pub(super) fn size(&self) -> usize {
        let text =
            |text: &FieldPlan| text.name.len() + text.map.as_ref().map_or(0, |map| map.len());
        self.all.iter().map(|field| size_of::<FieldPlan>() + text(field)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: FieldKind, count: Count) -> FieldPlan {
        FieldPlan { name: "x".into(), kind, count, map: None }
    }

    fn structure(first: u16, members: u16) -> FieldPlan {
        field(FieldKind::Structure { first, members }, Count::One)
    }

    fn value() -> FieldPlan {
        field(FieldKind::Value(Form::Unsigned, Extent::Bytes(4)), Count::One)
    }

    #[test]
    fn structures_are_a_tree() {
        let is_sound = |all: Vec<FieldPlan>| Fields::new(all, 1).is_some();
        assert!(is_sound(vec![structure(1, 2), value(), value()]));
        assert!(!is_sound(vec![structure(0, 1)]), "a member of itself");
        assert!(!is_sound(vec![structure(1, 1), structure(0, 1)]), "a circle");
        assert!(!is_sound(vec![structure(1, 2), value()]), "members that are not there");
        let shared = vec![structure(2, 2), structure(2, 2), value(), value()];
        assert!(!is_sound([shared, vec![structure(2, 2)]].concat()), "shared members");
        let deep = |depth: u16| (0..depth).map(|at| structure(at + 1, 1)).chain([value()]);
        assert!(is_sound(deep(7).collect()));
        assert!(!is_sound(deep(200).collect()));
    }

    #[test]
    fn references_lead_to_a_field() {
        let counted =
            |at| field(FieldKind::Value(Form::Unsigned, Extent::Bytes(1)), Count::Field(at));
        let sized = |at| field(FieldKind::Value(Form::Binary, Extent::BytesOf(at)), Count::One);
        for (one, other) in [(counted(0), counted(2)), (sized(0), sized(2))] {
            assert!(Fields::new(vec![value(), one], 2).is_some());
            assert!(Fields::new(vec![value(), other], 2).is_none());
        }
        assert!(Fields::new(vec![value(); MAX_FIELDS + 1], 1).is_none());
    }
}
