//! The stacks part.

use handlescope_model::tables::{Stack, Stacks};
use serde::de::MapAccess;
use std::collections::HashMap;

use super::frames::FrameTexts;
use super::json::{EachText, Record};
use crate::lifecycle::NONE;

/// The stacks that events refer to by number.
#[derive(Default)]
pub(super) struct StackTexts {
    /// For each number the row of the stacks table, or [`NONE`] for an empty text.
    rows: Vec<u32>,
    table: Stacks,
    frames: FrameTexts,
}

impl<'de> Record<'de> for StackTexts {
    const MEMBERS: &'static [&'static str] = &["StackList"];

    fn member<A: MapAccess<'de>>(&mut self, _: &'static str, map: &mut A) -> Result<(), A::Error> {
        map.next_value_seed(EachText(|text: &str| self.add(text)))
    }
}

impl StackTexts {
    /// Takes the text of the next stack: a line for each frame, the innermost first.
    fn add(&mut self, text: &str) {
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let lines = lines.filter(|line| !line.is_empty());
        let frames: Vec<u32> = lines.map(|line| self.frames.row(line)).collect();
        let row = if frames.is_empty() { NONE } else { self.table.len() as u32 };
        self.rows.push(row);
        if row != NONE {
            self.table.push(Stack { frames });
        }
    }

    /// What events take their stacks from. `is_missing` says that the file has no texts; the
    /// numbers then still tell which events share a stack.
    pub(super) fn numbers(&mut self, is_missing: bool) -> StackNumbers<'_> {
        StackNumbers {
            rows: &self.rows,
            table: &mut self.table,
            without_text: is_missing.then(HashMap::new),
        }
    }

    pub(super) fn into_parts(self) -> (Stacks, FrameTexts) {
        (self.table, self.frames)
    }
}

/// The stacks by their numbers in the file.
pub(super) struct StackNumbers<'a> {
    rows: &'a [u32],
    table: &'a mut Stacks,
    without_text: Option<HashMap<i64, u32>>,
}

impl StackNumbers<'_> {
    /// The row of a stack; none for the empty text and for numbers that mean nothing.
    pub(super) fn row(&mut self, number: Option<i64>) -> Option<u32> {
        let number = number.filter(|number| *number >= 0)?;
        if let Some(known) = &mut self.without_text {
            let table = &mut *self.table;
            return Some(*known.entry(number).or_insert_with(|| {
                table.push(Stack::default());
                table.len() as u32 - 1
            }));
        }
        let row = self.rows.get(usize::try_from(number).ok()?)?;
        Some(*row).filter(|row| *row != NONE)
    }

    /// Whether a number is that of a stack, if only of an empty one.
    pub(super) fn has(&self, number: i64) -> bool {
        self.without_text.is_some()
            || usize::try_from(number).is_ok_and(|number| number < self.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Fill;
    use super::*;
    use serde::de::DeserializeSeed;

    fn stacks(text: &str) -> StackTexts {
        let mut stacks = StackTexts::default();
        Fill(&mut stacks)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        stacks
    }

    #[test]
    fn lines_end_one_way_or_the_other_or_not_at_all() {
        let mut stacks = stacks(r#"{"StackList":["","a!F\r\nb!G\r\n","a!F\nb!G","b!G\n\n",null]}"#);
        let mut numbers = stacks.numbers(false);
        let rows = [0, 1, 2, 3, 4, 5, -1].map(|number| numbers.row(Some(number)));
        assert_eq!(rows, [None, Some(0), Some(1), Some(2), None, None, None]);
        assert_eq!(numbers.row(None), None);
        let (table, _) = stacks.into_parts();
        assert_eq!(table.frames, [vec![0, 1], vec![0, 1], vec![1]]);
    }

    #[test]
    fn without_texts_equal_numbers_are_equal_stacks() {
        let mut stacks = StackTexts::default();
        let mut numbers = stacks.numbers(true);
        let rows = [9, 5, 9, -1].map(|number| numbers.row(Some(number)));
        assert_eq!(rows, [Some(0), Some(1), Some(0), None]);
        assert_eq!(stacks.into_parts().0.len(), 2);
    }
}
