//! Sets of small numbers that are close to each other.

/// Bits per word.
const BITS: usize = u64::BITS as usize;

/// Set of numbers that takes one bit for each number up to the largest.
#[derive(Default)]
pub struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    /// Adds a number; returns whether it is new.
    pub fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (number / BITS, 1 << (number % BITS));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// Whether the set has a number.
    pub fn has(&self, number: usize) -> bool {
        self.words.get(number / BITS).is_some_and(|word| word & (1 << (number % BITS)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut numbers = NumberSet::default();
        let new = [3, 64, 3, 1000, 64].map(|number| numbers.insert(number));
        assert_eq!(new, [true, true, false, true, false]);
        for number in [3, 64, 1000] {
            assert!(numbers.has(number), "{number}");
            assert!(!numbers.has(number + 1) && !numbers.has(number + 64), "{number}");
        }
        assert!(!numbers.has(5000));
    }
}
