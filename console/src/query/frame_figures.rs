//! How many frames of stacks are known.

use std::ops::AddAssign;

/// How many frames are what, each counted as often as its stack was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameFigures {
    pub frames_total: u64,
    /// Frames in an image.
    pub frames_in_modules: u64,
    /// Frames in no image, but in a managed method.
    pub frames_managed: u64,
    /// The others.
    pub frames_unknown: u64,
}

impl AddAssign for FrameFigures {
    fn add_assign(&mut self, other: Self) {
        self.frames_total += other.frames_total;
        self.frames_in_modules += other.frames_in_modules;
        self.frames_managed += other.frames_managed;
        self.frames_unknown += other.frames_unknown;
    }
}
