//! An event with its schema and values.

use super::fields::{Schema, SchemaId};
use super::node::{Node, Nodes, Value};
use super::read::{Ending, Slot};

/// An event with its schema and values.
#[derive(Debug, Clone, Copy)]
pub struct Decoded<'a> {
    pub id: SchemaId,
    pub schema: &'a Schema,
    pub(super) slots: &'a [Slot],
    pub(super) payload: &'a [u8],
    pub(super) ending: Ending,
}

impl<'a> Decoded<'a> {
    /// The fields of the top level; those that a short payload does not hold whole are missing.
    pub fn fields(&self) -> Nodes<'a> {
        let Self { schema, slots, payload, .. } = *self;
        let next = Node { slots, fields: &schema.fields, payload, at: 0 };
        Nodes { next, end: slots.len() }
    }

    /// The first field of a name, in any case.
    pub fn field(&self, name: &str) -> Option<Node<'a>> {
        self.fields().find(|node| node.name().eq_ignore_ascii_case(name))
    }

    /// The value of the first field of a name, in any case; `None` for an array or structure.
    pub fn value(&self, name: &str) -> Option<Value<'a>> {
        self.field(name)?.value()
    }

    /// Whether the payload ends before the fields do.
    pub fn is_short(&self) -> bool {
        self.ending == Ending::Short
    }

    /// Whether its fields claim more values than there can be; what is after those is missing.
    pub fn is_bad(&self) -> bool {
        self.ending == Ending::TooMany
    }

    /// Bytes of the payload after the fields.
    pub fn rest(&self) -> usize {
        match self.ending {
            Ending::Whole(rest) => rest,
            Ending::Short | Ending::TooMany => 0,
        }
    }
}
