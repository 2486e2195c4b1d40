//! Members whose names are only known together with their values.

use serde::{Serialize, Serializer};

use crate::traces::StackOffset;
use handlescope_query::GroupKey;

/// A value of any type in a document.
type ErasedValue<'a> = Box<dyn erased_serde::Serialize + 'a>;

/// The members of a document, in order; each is produced while it is written.
#[derive(Default)]
pub struct Document<'a>(Vec<(&'static str, ErasedValue<'a>)>);

impl<'a> Document<'a> {
    /// Adds a member.
    pub fn with(mut self, name: &'static str, value: impl Serialize + 'a) -> Self {
        self.0.push((name, Box::new(value)));
        self
    }

    /// Adds the value that the handles of a group share in a column.
    pub fn with_key(
        self,
        column: &'static str,
        key: GroupKey<impl Serialize + 'a>,
        numbers: StackOffset,
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
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
