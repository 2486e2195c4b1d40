//! Answers as pictures.

mod flame;
mod folded;
mod group;
mod plot_svg;
mod plot_text;
mod pprof;
mod speedscope;
mod ticks;
mod timeline;

use indicatif::{HumanBytes, HumanCount};

pub use self::flame::{FlameGraph, colors, line};
pub use self::folded::{FoldedStack, FrameTable, PictureFrame, folded};
pub use self::group::{PictureGroup, Weight, allocation_groups, handle_groups};
pub use self::plot_svg::write_svg as write_plot_svg;
pub use self::plot_text::{columns, write_text as write_plot_text};
pub use self::pprof::{PprofProfile, SuspectIds};
pub use self::timeline::OpenTimeline;
use handlescope_query::Amount;

/// The unit of counts over time and of frame widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Handles,
    Bytes,
    Allocations,
}

impl Measure {
    /// Returns bytes if any of these allocations have some; GDI and USER handles have none.
    pub fn new(mut amounts: impl Iterator<Item = Amount>) -> Self {
        Self::for_bytes(amounts.any(|amount| amount.bytes != 0))
    }

    /// Returns bytes if the allocations have some, else their number.
    pub fn for_bytes(has_bytes: bool) -> Self {
        if has_bytes { Self::Bytes } else { Self::Allocations }
    }

    /// Returns the word for the unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Handles => "handles",
            Self::Bytes => "bytes",
            Self::Allocations => "allocations",
        }
    }

    /// Returns the amount in this unit. Sums of bytes may be negative if the events say so.
    pub fn width(self, amount: Amount) -> u64 {
        match self {
            Self::Bytes => u64::try_from(amount.bytes).unwrap_or_default(),
            Self::Handles | Self::Allocations => amount.count,
        }
    }

    /// Returns what a drawing shows, for its caption.
    pub fn caption(self) -> &'static str {
        match self {
            Self::Handles => "open handles",
            Self::Bytes => "allocated bytes",
            Self::Allocations => "allocations",
        }
    }

    /// Describes which of them count.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Handles => "opened in the trace and not yet closed",
            Self::Bytes | Self::Allocations => "allocated in the trace and not yet freed",
        }
    }

    /// Like [`meaning`](Self::meaning), including the subject; for allocations it is part of the text.
    pub fn sentence(self) -> String {
        match self {
            Self::Allocations => "allocations of the trace not yet freed".to_owned(),
            Self::Handles | Self::Bytes => format!("{} {}", self.unit(), self.meaning()),
        }
    }

    /// Formats a number for people.
    pub fn shown(self, number: u64) -> String {
        match self {
            Self::Bytes => HumanBytes(number).to_string(),
            Self::Handles => number.to_string(),
            Self::Allocations => HumanCount(number).to_string(),
        }
    }
}
