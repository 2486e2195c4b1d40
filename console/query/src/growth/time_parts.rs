//! Time in equal parts, and sums at their ends.

use super::lifetime::Window;

/// A time in equal parts.
pub struct TimeParts {
    window: Window,
    parts: usize,
}

impl TimeParts {
    pub fn new(window: Window, parts: usize) -> Self {
        Self { window, parts }
    }

    /// Parts, and one for later events.
    pub fn width(&self) -> usize {
        self.parts + 1
    }

    /// The first part that ends at or after a time.
    pub fn part_of(&self, time_ns: i64) -> usize {
        let length = i128::from(self.window.length_ns()).max(1);
        let since = i128::from(time_ns) - i128::from(self.window.start_ns);
        let ends = (since.max(1) * self.parts as i128 + length - 1) / length;
        usize::try_from(ends - 1).unwrap_or(usize::MAX).min(self.parts)
    }

    /// Sums of these changes up to the end of each part.
    pub fn sums(&self, changes: &[i64]) -> Vec<i64> {
        let sums = changes.iter().take(self.parts).scan(0_i64, |sum, change| {
            *sum = sum.saturating_add(*change);
            Some(*sum)
        });
        sums.collect()
    }
}
