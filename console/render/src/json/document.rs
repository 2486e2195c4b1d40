//! Members whose names are only known together with their values.

use serde::{Serialize, Serializer};

use crate::traces::StackOffset;
use handlescope_query::{GroupColumn, GroupKey};

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

    /// Makes a document of the values that the members of a group share, by column.
    pub fn from_keys<T: Serialize + 'a>(
        by: &[GroupColumn],
        numbers: StackOffset,
        key: impl Fn(GroupColumn) -> GroupKey<T>,
    ) -> Self {
        by.iter().fold(Self::default(), |keys, column| match key(*column) {
            GroupKey::Text(text) => keys.with(column.word(), text),
            GroupKey::Number(number) => keys.with(column.word(), number),
            GroupKey::Stack(stack) => keys.with(column.word(), numbers.of(stack)),
            GroupKey::None => keys.with(column.word(), ()),
        })
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
