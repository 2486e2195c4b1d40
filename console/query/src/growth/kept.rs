//! Tells leaked handles of a group that are kept from those that are only young.

use super::cure::LifetimeSample;
use super::lifetime::{Lifetime, ProcessLifetimes, TimeWindow, leaked_opens};
use super::outlived::OutlivingHandles;
use super::sweeps::unswept_ns;

/// Handles the estimate needs at an age to say anything about older ones.
const MIN_AT_RISK: usize = 5;

/// Minimum log likelihood ratio in favour of handles that are never closed.
const CURED: f64 = 4.0;

/// Like [`CURED`], but for handles older than the young ones.
const CURED_LATE: f64 = 1.5;

/// With at least this many kept handles per close of an older handle, such a close is an exception.
const KEPT_PER_LATE_CLOSE: usize = 3;

/// The leaked handles of a group.
#[derive(Default)]
pub struct KeptHandles {
    /// When the kept ones were opened, ascending.
    pub opens: Vec<i64>,
    /// Number of the others: only as old as handles that were closed.
    pub young: usize,
    /// Age of the oldest young handle in nanoseconds; 0 if there are none.
    pub young_age_ns: i64,
    /// Number of handles that were closed.
    pub closed: usize,
    /// Mean lifetime of the closed handles in nanoseconds; `None` if there are none.
    pub mean_lifetime_ns: Option<i64>,
    /// Leaked handles too old to be explained by chance, given the lifetimes of closed ones.
    pub outlived: OutlivingHandles,
    /// Whether the last opened of several open handles is usually closed first. Handles at the bottom are then old,
    /// leaked or not.
    pub is_stack: bool,
}

impl KeptHandles {
    /// Separates kept handles from young ones.
    ///
    /// S(t), the share of handles still open at age t, is estimated as by Kaplan and Meier (1958): at each age from the
    /// share of closes among the handles that reached it, because a leaked handle is only known to live longer than its
    /// age. The last value of S is the share of handles that are never closed. A leaked handle of age t is kept if this
    /// share is at least two thirds of S(t).
    ///
    /// S ends where fewer than [`MIN_AT_RISK`] handles are left, so that one very late close does not make all other
    /// handles young. No handle is kept if the trace is too short to tell: if handles as old as a third of the window
    /// are young, or if lifetimes without never-closed handles explain the group nearly as well ([`are_never_closed`]).
    /// Handles opened since the last close say nothing if the pause may be chance ([`unswept_ns`]).
    pub fn new(lifetimes: &[Lifetime], window: TimeWindow) -> Self {
        let mut kept = Self::aged(lifetimes, window);
        kept.judge_stack(|| is_stack(lifetimes));
        kept
    }

    /// Checks for a stack, because its bottom handles are old, leaked or not. With few handles, nothing depends on it.
    fn judge_stack(&mut self, is_stack: impl FnOnce() -> bool) {
        let matters = self.opens.len() >= MIN_AT_RISK || self.outlived.count > 0;
        self.is_stack = matters && is_stack();
        if self.is_stack {
            self.outlived = self.outlived.by_chance();
        }
    }

    /// Separates kept handles of several processes from young ones by their ages at the end of their process. Ages are
    /// compared with the mean run time of the processes; `window` spans all of them.
    pub fn from_processes(processes: &[ProcessLifetimes], window: TimeWindow) -> Self {
        let lengths = processes.iter().map(|process| i128::from(process.window.length_ns()));
        let mean_ns = lengths.sum::<i128>() / processes.len().max(1) as i128;
        let mean_ns = i64::try_from(mean_ns).unwrap_or(i64::MAX);
        let shift = |process: &ProcessLifetimes, ns: i64| {
            ns.saturating_add(window.end_ns.saturating_sub(process.window.end_ns))
        };
        let aged: Vec<Lifetime> = processes
            .iter()
            .flat_map(|process| {
                process.lifetimes.iter().map(|lifetime| Lifetime {
                    opened_ns: shift(process, lifetime.opened_ns),
                    closed_ns: lifetime.closed_ns.map(|ns| shift(process, ns)),
                })
            })
            .collect();
        let start_ns = window.end_ns.saturating_sub(mean_ns);
        let kept = Self::aged(&aged, TimeWindow { start_ns, ..window });
        let oldest_young_ns = window.end_ns.saturating_sub(kept.young_age_ns);
        let mut opens: Vec<i64> = processes
            .iter()
            .flat_map(|process| {
                leaked_opens(&process.lifetimes, process.window)
                    .filter(|open| kept.young == 0 || shift(process, *open) < oldest_young_ns)
            })
            .collect();
        opens.sort_unstable();
        let young = kept.young + kept.opens.len() - opens.len();
        let mut kept = Self { opens, young, ..kept };
        kept.judge_stack(|| processes.iter().any(|process| is_stack(&process.lifetimes)));
        kept
    }

    /// Returns the first handle that each of several processes keeps.
    pub fn first_of_each(&self, processes: &[ProcessLifetimes]) -> Self {
        let mut opens: Vec<i64> = processes
            .iter()
            .filter_map(|ProcessLifetimes { lifetimes, window }| {
                leaked_opens(lifetimes, *window)
                    .filter(|open| self.opens.binary_search(open).is_ok())
                    .min()
            })
            .collect();
        opens.sort_unstable();
        Self { opens, ..*self }
    }

    /// Whether two thirds of the handles that several processes keep were opened at process start. Only processes that
    /// started during the `trace` count.
    pub fn is_filled(&self, processes: &[ProcessLifetimes], trace: TimeWindow) -> bool {
        let started = processes.iter().filter(|process| process.window.start_ns > trace.start_ns);
        let early = started.flat_map(|ProcessLifetimes { lifetimes, window }| {
            lifetimes.iter().filter(|lifetime| {
                lifetime.closed_ns.is_none() && window.is_start(lifetime.opened_ns)
            })
        });
        // Few of the handles opened at the start of a process are young.
        self.opens.len() >= MIN_AT_RISK && 3 * early.count() >= 2 * self.opens.len()
    }

    /// Separates kept handles from young ones by their ages at the end of the window.
    fn aged(lifetimes: &[Lifetime], window: TimeWindow) -> Self {
        let mut opens: Vec<i64> = leaked_opens(lifetimes, window).collect();
        // The estimate starts with the youngest handle.
        opens.sort_unstable_by(|a, b| b.cmp(a));
        let age = |opened: i64| window.end_ns.saturating_sub(opened);
        let still_open = still_open(lifetimes, &opens, age);
        let plateau = still_open.last().copied().unwrap_or(1.0);
        let young = still_open[..opens.len()].partition_point(|share| *share > 1.5 * plateau);
        let young_age_ns = young.checked_sub(1).map_or(0, |oldest| age(opens[oldest]));
        let closed = lifetimes.len() - opens.len();
        let ages: Vec<i64> = opens.iter().map(|opened| age(*opened)).collect();
        // A few handles, or a few lifetimes, are no evidence of long lifetimes.
        let is_evidence = opens.len() >= MIN_AT_RISK && 2 * closed >= opens.len();
        let can_tell = young_age_ns <= window.length_ns() / 3
            && (!is_evidence || are_never_closed(lifetimes, &ages, young));
        let unswept_ns = unswept_ns(lifetimes, window);
        let young = match can_tell {
            true if is_evidence => young.max(ages.partition_point(|age| *age < unswept_ns)),
            true => young,
            false => opens.len(),
        };
        let young_age_ns = young.checked_sub(1).map_or(0, |oldest| ages[oldest]);
        opens.drain(..young);
        opens.reverse();
        Self {
            opens,
            young,
            young_age_ns,
            closed,
            mean_lifetime_ns: mean_lifetime_ns(lifetimes),
            outlived: OutlivingHandles::new(lifetimes, &ages, unswept_ns),
            is_stack: false,
        }
    }
}

/// Whether some handles must be never closed: lifetimes of a usual kind do not explain the `ages` of open handles (in
/// order), nor does a second kind explain the handles older than the `young` ones.
fn are_never_closed(lifetimes: &[Lifetime], ages: &[i64], young: usize) -> bool {
    let (young, kept) = ages.split_at(young);
    if kept.is_empty() {
        return true;
    }
    let lengths: Vec<i64> = lifetimes.iter().filter_map(Lifetime::length_ns).collect();
    // Some handles of a pool may live much longer than the others.
    let late_ns = young.last().copied().unwrap_or_default();
    let late: Vec<i64> = lengths
        .iter()
        .filter(|length| **length > late_ns)
        .map(|length| length.saturating_sub(late_ns))
        .collect();
    if KEPT_PER_LATE_CLOSE * late.len() >= kept.len() {
        let kept: Vec<i64> = kept.iter().map(|age| age.saturating_sub(late_ns)).collect();
        let sample = LifetimeSample::from_late(&late, &kept);
        if sample.is_some_and(|sample| sample.exponential_evidence() <= CURED_LATE) {
            return false;
        }
    }
    LifetimeSample::from_group(lengths, ages).is_none_or(|sample| sample.evidence() > CURED)
}

/// Computes S at the age of each leaked handle, youngest first, and where it ends.
fn still_open(lifetimes: &[Lifetime], opens: &[i64], age: impl Fn(i64) -> i64) -> Vec<f64> {
    // Between the ages of two leaked handles, only closes reduce the number of handles at risk. So all closes in an
    // interval change S at once.
    let mut closes = vec![0usize; opens.len() + 1];
    for lifetime in lifetimes {
        if let Some(closed_ns) = lifetime.closed_ns {
            let duration = closed_ns.saturating_sub(lifetime.opened_ns);
            closes[opens.partition_point(|opened| age(*opened) < duration)] += 1;
        }
    }
    let (mut at_risk, mut share, mut has_ended) = (lifetimes.len(), 1.0, false);
    let mut shares = Vec::with_capacity(closes.len());
    for closes in closes {
        has_ended |= at_risk < MIN_AT_RISK;
        if !has_ended {
            let surviving = at_risk - closes;
            share *= surviving as f64 / at_risk as f64;
        }
        shares.push(share);
        // The leaked handle of this age is not at risk at greater ages.
        at_risk = at_risk.saturating_sub(closes + 1);
    }
    shares
}

/// Whether handles are closed in reverse order of opening. That takes at least ten closes while three or more handles
/// are open that are closed later, and nine in ten must close the last one opened.
fn is_stack(lifetimes: &[Lifetime]) -> bool {
    let mut events: Vec<(i64, bool, usize)> = lifetimes
        .iter()
        .enumerate()
        .filter_map(|(index, lifetime)| Some((index, lifetime, lifetime.closed_ns?)))
        .flat_map(|(index, lifetime, closed_ns)| {
            [(lifetime.opened_ns, false, index), (closed_ns, true, index)]
        })
        .collect();
    events.sort_unstable();
    let mut is_open = vec![false; lifetimes.len()];
    let (mut stack, mut open) = (Vec::new(), 0);
    let (mut closes, mut in_order) = (0, 0);
    for (_, is_close, index) in events {
        if !is_close {
            stack.push(index);
            (is_open[index], open) = (true, open + 1);
        } else if is_open[index] {
            while stack.last().is_some_and(|last| !is_open[*last]) {
                stack.pop();
            }
            if open >= 3 {
                closes += 1;
                in_order += usize::from(stack.last() == Some(&index));
            }
            (is_open[index], open) = (false, open - 1);
        }
    }
    closes >= 10 && in_order * 10 >= closes * 9
}

/// Returns the mean lifetime of closed handles.
fn mean_lifetime_ns(lifetimes: &[Lifetime]) -> Option<i64> {
    let (sum, count) = lifetimes
        .iter()
        .filter_map(Lifetime::length_ns)
        .fold((0i128, 0i128), |(sum, count), lifetime| (sum + i128::from(lifetime), count + 1));
    sum.checked_div(count).and_then(|mean| i64::try_from(mean).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: TimeWindow = TimeWindow { start_ns: 0, end_ns: 1_000 };

    fn lifetime(opened_ns: i64, duration: Option<i64>) -> Lifetime {
        Lifetime { opened_ns, closed_ns: duration.map(|duration| opened_ns + duration) }
    }

    /// Opens a handle every 10 ns that lives for 40 to 60 ns.
    fn pool() -> Vec<Lifetime> {
        (0..100)
            .map(|n| (n * 10, 40 + n * 7 % 20))
            .map(|(opened, duration)| {
                lifetime(opened, Some(duration).filter(|l| opened + l <= 1_000))
            })
            .collect()
    }

    #[test]
    fn without_closes_every_leaked_handle_is_kept() {
        let lifetimes = [lifetime(300, None), lifetime(100, None), lifetime(999, None)];
        let kept = KeptHandles::new(&lifetimes, WINDOW);
        assert_eq!((kept.opens, kept.young, kept.closed), (vec![100, 300, 999], 0, 0));
    }

    #[test]
    fn a_leaked_handle_that_is_not_older_than_others_got_is_young() {
        let kept = KeptHandles::new(&pool(), WINDOW);
        assert_eq!((kept.opens, kept.young, kept.young_age_ns), (vec![], 4, 40));
    }

    #[test]
    fn a_leaked_handle_that_is_older_than_all_others_got_is_kept() {
        let lifetimes: Vec<Lifetime> =
            (0..8).map(|n| lifetime(n * 100 + 3, None)).chain(pool()).collect();
        let kept = KeptHandles::new(&lifetimes, WINDOW);
        assert_eq!(kept.opens, (0..8).map(|n| n * 100 + 3).collect::<Vec<_>>());
        assert_eq!(kept.young, 4);
    }

    #[test]
    fn one_very_late_close_does_not_make_leaked_handles_young() {
        let lifetimes: Vec<Lifetime> = (0..8)
            .map(|n| lifetime(n * 100 + 3, None))
            .chain([lifetime(0, Some(999))])
            .chain(pool())
            .collect();
        assert_eq!(KeptHandles::new(&lifetimes, WINDOW).opens.len(), 8);
    }

    #[test]
    fn a_window_of_two_lifetimes_says_nothing() {
        let lifetimes: Vec<Lifetime> =
            (0..100).map(|n| lifetime(n * 10, Some(600).filter(|l| n * 10 + l < 1_000))).collect();
        let kept = KeptHandles::new(&lifetimes, WINDOW);
        assert_eq!((kept.opens.len(), kept.young, kept.closed), (0, 60, 40));
    }

    #[test]
    fn times_outside_of_the_window_and_closes_before_opens_do_no_harm() {
        let extremes = [i64::MIN, -1, 0, 1_000, 1_001, i64::MAX];
        let lifetimes: Vec<Lifetime> = extremes
            .iter()
            .flat_map(|opened| extremes.map(|closed| (*opened, Some(closed))))
            .chain(extremes.map(|opened| (opened, None)))
            .map(|(opened_ns, closed_ns)| Lifetime { opened_ns, closed_ns })
            .collect();
        for window in [WINDOW, TimeWindow { start_ns: i64::MAX, end_ns: i64::MIN }] {
            let kept = KeptHandles::new(&lifetimes, window);
            assert_eq!(kept.opens.len() + kept.young, 6);
        }
    }
}
