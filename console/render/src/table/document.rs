//! Members of documents: their meanings, and values combined with the names of their members.

use std::rc::Rc;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::columns::{MemberTaker, RowMembers};
use super::value::DocumentMember;

/// The answers to agents that include a member of a document or of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// All answers.
    Brief,
    /// Answers with details.
    Detail,
    /// No answers.
    Programs,
}

/// A member of a document, or of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMeaning {
    /// The name; a member of a member is named like `member.name`.
    pub name: String,
    /// The type as in JSON Schema, with `?` if it may be null; empty if it was not declared.
    pub kind: &'static str,
    /// The meaning in Markdown.
    pub meaning: &'static str,
    /// The answers to agents that include it.
    pub depth: Depth,
}

impl MemberMeaning {
    /// Creates a member of documents.
    pub fn new(name: &str, meaning: &'static str) -> Self {
        Self { name: name.to_owned(), kind: "", meaning, depth: Depth::Brief }
    }
}

/// A row and the names of its members.
pub struct RowOf<'r, 'a, R>(pub &'r RowMembers<'a, R>, pub &'r R);

impl<R> Serialize for RowOf<'_, '_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_members(serializer, &(), |take| self.0.each(self.1, None, take))
    }
}

/// A value and the names of its members.
pub struct PartOf<'a, P>(pub Rc<RowMembers<'a, P>>, pub P);

/// Values and the names of their members.
pub struct PartsOf<'a, P>(pub Rc<RowMembers<'a, P>>, pub Vec<P>);

impl<P> PartOf<'_, P> {
    /// Passes the members on one by one.
    pub fn each(&self, take: MemberTaker<'_>) {
        self.0.each(&self.1, None, take);
    }
}

impl<P> Serialize for PartOf<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_members(serializer, &(), |take| self.each(take))
    }
}

impl<P> Serialize for PartsOf<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|part| RowOf(&self.0, part)))
    }
}

/// A document around rows. The type of the rows is not erased, because there may be tens of millions.
pub struct DocumentWithRows<'d, R> {
    pub members: &'d dyn Fn(MemberTaker<'_>),
    pub rows: R,
}

impl<R: Serialize> Serialize for DocumentWithRows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_members(serializer, &self.rows, self.members)
    }
}

/// Writes members as they are passed on, and the rows in their place.
pub fn serialize_members<S: Serializer>(
    serializer: S,
    rows: &impl Serialize,
    each: impl FnOnce(MemberTaker<'_>),
) -> Result<S::Ok, S::Error> {
    let (mut map, mut written) = (serializer.serialize_map(None)?, Ok(()));
    each(&mut |name, value| {
        if written.is_ok() {
            written = match value {
                DocumentMember::Rows => map.serialize_entry(name, rows),
                value => map.serialize_entry(name, &value),
            };
        }
    });
    written?;
    map.end()
}
