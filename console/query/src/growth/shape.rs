//! Decides the verdict from when the kept handles of a group were opened.

use std::ops::Range;

use super::kept::KeptHandles;
use super::lifetime::TimeWindow;
use super::rate::without_strays;
use super::segments::{Segments, segments};
use super::slowing::is_slowing;

/// Up to this number of handles, there are too few for any verdict.
const TOO_FEW: usize = 3;

/// Minimum number of kept handles for a burst or a fill.
const MIN_KEPT: usize = 5;

/// Minimum number of kept handles for a steady leak.
const MIN_STEADY: usize = 8;

/// Number of moments a steady leak's time is split into, and in how many of them handles must leak.
const MOMENTS: i64 = 32;
const MIN_MOMENTS: usize = 6;

/// Returns the verdict and the ascending opens it is about.
///
/// `opened` is the number of all handles of the group.
pub fn verdict(opened: usize, kept: &KeptHandles, window: TimeWindow) -> (Verdict, Vec<i64>) {
    let opens = &kept.opens;
    if opened <= TOO_FEW {
        return (Verdict::Short, opens.clone());
    }
    if opens.len() < MIN_KEPT {
        return (without_growth(kept, window), opens.clone());
    }
    if kept.is_stack {
        return (Verdict::Short, opens.clone());
    }
    let time = ObservedTime::new(kept, window);
    if let Some(steady) = time.steady(opens) {
        return (Verdict::Steady, opens[steady].to_vec());
    }
    let cluster = densest(opens, time.length_ns / 50);
    if cluster.len() >= MIN_KEPT && 2 * cluster.len() >= opens.len() {
        let verdict = time.cluster(&opens[cluster.clone()]);
        // A fill that ended includes all handles opened until then.
        let is_whole = verdict == Verdict::Once && time.has_stopped(opens);
        return (verdict, if is_whole { opens.clone() } else { opens[cluster].to_vec() });
    }
    if time.has_stopped(opens) {
        return (Verdict::Once, opens.clone());
    }
    let core = core(opens);
    if is_falling(opens) || time.has_stopped(core) {
        return (Verdict::Once, core.to_vec());
    }
    if opens.len() >= 3 * MIN_MOMENTS && moments(opens) < MIN_MOMENTS {
        return (Verdict::Burst, opens[cluster].to_vec());
    }
    (Verdict::Short, opens.clone())
}

/// Returns the verdict for a group that keeps next to nothing.
fn without_growth(kept: &KeptHandles, window: TimeWindow) -> Verdict {
    let is_closed = 2 * kept.closed >= kept.opens.len() + kept.young;
    // For a few handles, the mean lifetime is better evidence than the estimate of lifetimes.
    let age = kept.opens.first().map(|oldest| window.end_ns.saturating_sub(*oldest));
    let is_young = age.zip(kept.mean_lifetime_ns).is_some_and(|(age, mean)| age / 3 <= mean);
    let is_balanced = is_closed && (kept.closed >= 5 * kept.opens.len() || is_young);
    if is_balanced { Verdict::Balanced } else { Verdict::Short }
}

/// The time range in which kept handles are seen.
struct ObservedTime {
    window: TimeWindow,
    length_ns: i64,
    /// Opens later than this are too young to judge.
    horizon_ns: i64,
}

impl ObservedTime {
    fn new(kept: &KeptHandles, window: TimeWindow) -> Self {
        Self {
            window,
            length_ns: window.length_ns(),
            horizon_ns: window.end_ns.saturating_sub(kept.young_age_ns),
        }
    }

    /// Finds the leaked handles of the last part that lasts, if it leaks steadily. A part with few leaks lasts if it is
    /// longer than a quarter of the time, other parts if they take a tenth. It is steady only if it goes on, with leaks
    /// in the last quarter.
    fn steady(&self, opens: &[i64]) -> Option<Range<usize>> {
        let Segments { parts, dispersion } = segments(opens, self.window.start_ns, self.horizon_ns);
        let until = parts.iter().rposition(|part| {
            if part.opens.len() < MIN_STEADY {
                part.length_ns() > self.length_ns / 4
            } else {
                part.length_ns() >= self.length_ns / 10
            }
        })?;
        let parts = &parts[..=until];
        let opens_of_part = parts[until].opens.clone();
        let goes_on =
            opens.last().is_some_and(|last| self.quiet_after(*last) <= self.length_ns / 4);
        let is_steady = goes_on
            && self.is_steady(&opens[opens_of_part.clone()])
            && !is_slowing(opens, parts, dispersion);
        is_steady.then(|| {
            let strays = without_strays(&opens[opens_of_part.clone()], dispersion);
            opens_of_part.start + strays.start..opens_of_part.start + strays.end
        })
    }

    /// Whether handles leak one after the other, over at least a tenth of the time.
    fn is_steady(&self, opens: &[i64]) -> bool {
        let [first, .., last] = opens else { return false };
        opens.len() >= MIN_STEADY
            && last.saturating_sub(*first) >= self.length_ns / 10
            && moments(opens) >= MIN_MOMENTS
    }

    /// Returns the verdict for handles that leaked within a very short time.
    fn cluster(&self, cluster: &[i64]) -> Verdict {
        let [first, .., last] = cluster else { return Verdict::Short };
        if self.window.is_start(*first) {
            Verdict::Once
        } else if self.window.end_ns.saturating_sub(*last) < self.length_ns / 20
            || self.quiet_after(*last) < self.length_ns / 200
        {
            // The leak may go on after the end or with the oldest young handles.
            Verdict::Short
        } else {
            Verdict::Burst
        }
    }

    /// Whether nothing leaked in the last quarter, and for longer than the distances before would explain.
    fn has_stopped(&self, opens: &[i64]) -> bool {
        let [first, .., last] = opens else { return false };
        let distance = last.saturating_sub(*first) / (opens.len() as i64 - 1);
        let quiet = self.quiet_after(*last);
        quiet > self.length_ns / 4 && quiet > distance.saturating_mul(5)
    }

    fn quiet_after(&self, last: i64) -> i64 {
        self.horizon_ns.saturating_sub(last)
    }
}

/// Whether the first half of the time has more than three times the leaks of the second, and more than chance explains:
/// by four standard deviations of a Poisson difference.
fn is_falling(opens: &[i64]) -> bool {
    let [first, .., last] = opens else { return false };
    let middle = first.midpoint(*last);
    let before = opens.partition_point(|open| *open <= middle) as f64;
    let after = opens.len() as f64 - before;
    before > 3.0 * after && (before - after).powi(2) > 16.0 * (before + after)
}

/// Counts the moments in which handles leaked; a moment is 1/32 of the time from first to last.
fn moments(opens: &[i64]) -> usize {
    let [first, .., last] = opens else { return opens.len() };
    let moment = last.saturating_sub(*first) / MOMENTS;
    let (mut count, mut begin) = (1, *first);
    for open in opens {
        if open.saturating_sub(begin) > moment {
            (count, begin) = (count + 1, *open);
        }
    }
    count
}

/// Returns all but the first and last twentieth, so that a stray handle does not stretch the range.
fn core(opens: &[i64]) -> &[i64] {
    let strays = opens.len() / 20;
    &opens[strays..opens.len() - strays]
}

/// Returns the range with the most opens within `width_ns`.
fn densest(opens: &[i64], width_ns: i64) -> Range<usize> {
    let (mut best, mut from) = (0..0, 0);
    for (to, open) in opens.iter().enumerate() {
        while open.saturating_sub(opens[from]) > width_ns {
            from += 1;
        }
        if to + 1 - from > best.len() {
            best = from..to + 1;
        }
    }
    best
}

/// How the number of open handles of a group develops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Handles leak at a constant rate to the end.
    Steady,
    /// Many handles leaked within a very short time.
    Burst,
    /// The group was filled and then kept: a cache, a warm-up.
    Once,
    /// Opened handles are closed; those open at the end are young.
    Balanced,
    /// Too few handles, or too short a time, to judge.
    Short,
}

impl Verdict {
    pub const ALL: [Self; 5] = [Self::Steady, Self::Burst, Self::Once, Self::Balanced, Self::Short];

    /// Returns the word for it in every format, which never changes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Burst => "burst",
            Self::Once => "once",
            Self::Balanced => "balanced",
            Self::Short => "short",
        }
    }

    /// Returns the beginning of a sentence about it; contains the word.
    pub fn title(self) -> &'static str {
        match self {
            Self::Steady => "Steady leak",
            Self::Burst => "Burst",
            Self::Once => "Filled once",
            Self::Balanced => "Balanced",
            Self::Short => "Too short to judge",
        }
    }
}
