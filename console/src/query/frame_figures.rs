//! How many frames of stacks are known.

use std::ops::AddAssign;

/// How many frames are what, each counted as often as its stack was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameFigures {
    /// All frames.
    pub total: u64,
    /// Those in an image.
    pub in_modules: u64,
    /// Those in no image, but in a managed method.
    pub managed: u64,
    /// The others.
    pub unknown: u64,
}

impl AddAssign for FrameFigures {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.in_modules += other.in_modules;
        self.managed += other.managed;
        self.unknown += other.unknown;
    }
}
