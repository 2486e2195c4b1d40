//! Codes for rows; rows with the same text have the same code.

use handlescope_model::sentinel;
use hashbrown::HashMap;

/// Codes for the texts of rows, in the order they were learned.
#[derive(Default)]
pub struct Coder {
    pub texts: Vec<String>,
    by_text: HashMap<String, u32>,
    by_row: NumberMap,
}

impl Coder {
    /// Returns the code of a row, if it was learned.
    pub fn known(&self, row: u32) -> Option<u32> {
        self.by_row.get(row)
    }

    /// Gives a row a code by its text unless it has one; [`sentinel`] gets none.
    pub fn learn(&mut self, row: u32, text: impl FnOnce() -> String) {
        if row == sentinel() || self.known(row).is_some() {
            return;
        }
        let next = self.texts.len() as u32;
        let code = *self.by_text.entry(text()).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        });
        self.by_row.set(row, code);
    }
}

/// A map from numbers to numbers; most keys are small.
#[derive(Default)]
pub struct NumberMap {
    /// Values of small keys; the first is that of [`sentinel`].
    near: Vec<u32>,
    far: HashMap<u32, u32>,
}

impl NumberMap {
    /// Keys below this are small; most tables have fewer rows. Takes 4 MiB.
    const DENSE_LIMIT: usize = 1 << 20;

    pub fn get(&self, number: u32) -> Option<u32> {
        let near = self.near.get(number.wrapping_add(1) as usize).copied();
        near.filter(|slot| *slot != sentinel()).or_else(|| self.far_slot(number))
    }

    fn far_slot(&self, number: u32) -> Option<u32> {
        // Most maps have no large keys.
        if self.far.is_empty() { None } else { self.far.get(&number).copied() }
    }

    pub fn set(&mut self, number: u32, slot: u32) {
        let index = number.wrapping_add(1) as usize;
        if index >= Self::DENSE_LIMIT {
            self.far.insert(number, slot);
            return;
        }
        if self.near.len() <= index {
            self.near.resize(index + 1, sentinel());
        }
        if let Some(near) = self.near.get_mut(index) {
            *near = slot;
        }
    }

    /// Forgets everything but keeps the memory; `numbers` are the keys in use.
    pub fn clear(&mut self, numbers: impl Iterator<Item = u32>) {
        self.far.clear();
        for number in numbers {
            if let Some(near) = self.near.get_mut(number.wrapping_add(1) as usize) {
                *near = sentinel();
            }
        }
    }
}
