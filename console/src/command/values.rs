//! Values of options: ranges with units, numbers, limits.

use std::ops::RangeInclusive;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// A range of seconds, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondsRange {
    /// Seconds.
    pub min: f64,
    /// Seconds; infinite when only a minimum was given.
    pub max: f64,
}

impl SecondsRange {
    /// Whether a number of seconds is in the range.
    pub fn contains(&self, seconds: f64) -> bool {
        self.min <= seconds && seconds <= self.max
    }

    /// The range in whole nanoseconds, so that times of events compare exactly with what was typed.
    pub fn nanoseconds(&self) -> RangeInclusive<i64> {
        // A float too large for the integer becomes the largest integer, which is what is meant.
        let whole = |seconds: f64| (seconds * NANOSECONDS_PER_SECOND).round() as i64;
        whole(self.min)..=whole(self.max)
    }
}

/// A range of whole numbers (ids, bytes), both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRange {
    /// The smallest number.
    pub min: u64,
    /// The largest number; `u64::MAX` when only a minimum was given.
    pub max: u64,
}

impl CountRange {
    /// Whether a number is in the range.
    pub fn contains(&self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }
}

/// `n [skip]`: the `take` largest rows after the `skip` largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopN {
    /// Rows to show.
    pub take: usize,
    /// Largest rows to leave out.
    pub skip: usize,
}
