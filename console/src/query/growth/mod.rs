//! How a group of handles grows: it leaks at a rate, it was filled once, it is balanced.
//!
//! The group is any set of handles; the queries take those of one process, one type and one create
//! stack. A handle is *lost* when its program never closes it: a close by the end of the process is none.
//! The rule has two steps, and knows no absolute times, so that it holds for seconds and for days.
//!
//! 1. Which of the lost handles are *kept* ([`kept`])? Those that were opened shortly before the end are
//!    open in a balanced group too. The Kaplan-Meier estimate of the lifetimes tells them apart: a lost
//!    handle is kept if, of the handles that got as old as it is, at least two thirds are never closed.
//! 2. How are the opens of the kept handles distributed over time ([`shape`])? That is the verdict.
//!
//! The rate is a count by time with a Poisson interval, checked with the slope of Theil and Sen
//! ([`rate`]). `docs/growth.md` explains the rule to users.
//!
//! A group of n handles, m of them lost, costs O(n log m) time and O(m) memory.

mod evidence;
mod kept;
mod outstanding;
#[cfg(test)]
mod published_tests;
mod rate;
mod shape;
#[cfg(test)]
mod tests;

pub use self::evidence::Evidence;
pub use self::outstanding::{outstanding, sparkline};
pub use self::rate::Rate;

use self::kept::Kept;

/// When a handle was opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// When it was opened.
    pub opened_ns: i64,
    /// When its program closed it; `None` when nothing did, or only the end of its process.
    pub closed_ns: Option<i64>,
}

/// The time in which handles of the group could be opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The start of the trace, or of the process if that is later.
    pub start_ns: i64,
    /// The end of the trace, or of the process if that is earlier.
    pub end_ns: i64,
}

/// How the number of open handles of a group develops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It leaks: handles are lost at one rate, to the end.
    Steady,
    /// Many handles were lost within a very short time.
    Burst,
    /// It was filled and then kept: a cache, a warm-up.
    Once,
    /// What is opened is closed; what is open at the end is young.
    Balanced,
    /// Too few handles, or in too short a time, to say.
    Short,
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// How the group grows.
    pub verdict: Verdict,
    /// The figures behind it.
    pub evidence: Evidence,
}

impl Window {
    /// Its length in nanoseconds; 0 when it ends before it starts.
    fn length_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] = [Self::Steady, Self::Burst, Self::Once, Self::Balanced, Self::Short];

    /// The word in JSON and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Burst => "burst",
            Self::Once => "once",
            Self::Balanced => "balanced",
            Self::Short => "short",
        }
    }
}

impl Growth {
    /// Judges a group of handles, in any order.
    pub fn of(lives: &[Life], window: Window) -> Self {
        let kept = Kept::of(lives, window);
        let (verdict, opens) = shape::verdict(lives.len(), &kept, window);
        let rate = (verdict == Verdict::Steady).then(|| Rate::of(&opens)).flatten();
        Self { verdict, evidence: Evidence::new(lives, &kept, &opens, rate, window) }
    }
}
