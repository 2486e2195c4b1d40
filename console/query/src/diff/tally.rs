//! Counts how much a group leaks in one trace and on how many chances: a number of handles, or bytes of memory.
//!
//! * One operation may leak several handles. Handles opened within a moment of each other form one **clump**. A moment
//!   is a part of the mean distance of the handles, so that handles at random times are hardly ever taken for a clump.
//!   It is also no longer than the time between two handles of an operation, so that a start in a trace of hours is no
//!   clump.
//! * Waves longer than a moment show in counts by parts of the time: if these counts vary more than chance allows,
//!   their dispersion is used.
//! * A cache with entries that live longer than the trace seems to leak all of them, but in a longer trace only some.
//!   Times of unequal lengths are therefore compared in **pieces** as long as the shorter one: handles opened in a
//!   piece and open at its end. Two recordings of an unchanged program have equally many in each piece, whatever the
//!   lifetimes.

use handlescope_model::rules::LossTimes;

use crate::growth::{Lifetime, ProcessLifetimes, TimeWindow};

/// Length of a moment as a part of the mean distance of handles.
const MOMENT: f64 = 0.02;

/// The longest moment in nanoseconds: what a user perceives as at once, such as a call, a request or a click (Miller,
/// 1968).
const MAX_MOMENT_NS: f64 = 100e6;

/// The largest amount one operation is taken to leak; more at once counts as several chances.
const MAX_AT_ONCE: f64 = 16.0;

/// Number of parts the time from the first to the last handle is split into to find waves.
const SLICES: usize = 16;

/// Minimum number of handles for looking for waves.
const MIN_SAMPLE: usize = 8;

/// Number of standard deviations above which dispersion is not chance (1 %).
const NO_CHANCE: f64 = 2.33;

/// How the leaked amount depends on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeDependence {
    /// Proportional to time.
    Rate,
    /// Independent of time, such as what is filled once.
    Fill,
}

/// Handles or allocations of a group in one trace.
#[derive(Debug, Clone, Default)]
pub struct GroupSample {
    /// When the processes that could leak handles ran in the trace.
    pub windows: Vec<TimeWindow>,
    /// What each process has of the group. What only process exit closed counts as open.
    pub processes: Vec<ProcessLifetimes>,
    /// For each process, the bytes of each of its lifetimes; empty if only their number counts.
    pub sizes: Vec<Vec<u64>>,
}

impl GroupSample {
    /// Returns the total time its processes ran, in nanoseconds.
    pub fn length_ns(&self) -> i64 {
        self.windows.iter().fold(0, |sum, window| sum.saturating_add(window.length_ns()))
    }

    /// Returns the longest time one of its processes ran, in nanoseconds.
    pub fn longest_ns(&self) -> i64 {
        self.windows.iter().map(|window| window.length_ns()).max().unwrap_or_default()
    }

    /// Adds what a process has of the group, or has as well if its place is taken.
    pub fn add(&mut self, place: usize, process: ProcessLifetimes, sizes: Vec<u64>) {
        match self.processes.get_mut(place).zip(self.sizes.get_mut(place)) {
            Some((known, known_sizes)) => {
                known.lifetimes.extend(process.lifetimes);
                known_sizes.extend(sizes);
            }
            None => {
                self.processes.push(process);
                self.sizes.push(sizes);
            }
        }
    }

    /// Returns a copy without the times of losses, as if processes ran only between losses.
    pub fn between(&self, losses: &LossTimes) -> Self {
        let windows = self.windows.iter().flat_map(|window| between(*window, losses));
        let mut parts = Self { windows: windows.collect(), ..Self::default() };
        for (ProcessLifetimes { lifetimes, window }, sizes) in
            self.processes.iter().zip(&self.sizes)
        {
            let mut pieces: Vec<(ProcessLifetimes, Vec<u64>)> = between(*window, losses)
                .into_iter()
                .map(|window| (ProcessLifetimes { lifetimes: Vec::new(), window }, Vec::new()))
                .collect();
            for (index, lifetime) in lifetimes.iter().enumerate() {
                let opened_ns = lifetime.opened_ns.max(window.start_ns).min(window.end_ns);
                let next = pieces.partition_point(|(piece, _)| piece.window.end_ns < opened_ns);
                let Some((piece, piece_sizes)) = pieces.get_mut(next) else { continue };
                if piece.window.start_ns > opened_ns {
                    continue;
                }
                piece.lifetimes.push(*lifetime);
                piece_sizes.extend(sizes.get(index));
            }
            let (processes, sizes): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            parts.processes.extend(processes);
            parts.sizes.extend(sizes);
        }
        parts
    }
}

/// Returns the parts of a window in which nothing was lost.
fn between(window: TimeWindow, losses: &LossTimes) -> Vec<TimeWindow> {
    if losses.is_anywhere() {
        return Vec::new();
    }
    let starts = losses.spans().iter().map(|(_, last)| window.start_ns.max(*last));
    let ends = losses.spans().iter().map(|(first, _)| window.end_ns.min(*first));
    let starts = [window.start_ns].into_iter().chain(starts);
    starts
        .zip(ends.chain([window.end_ns]))
        .map(|(start_ns, end_ns)| TimeWindow { start_ns, end_ns })
        .filter(|span| span.start_ns < span.end_ns)
        .collect()
}

/// How much leaks in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LeakTally {
    /// Number of handles or allocations.
    pub count: f64,
    /// Leaked amount: the same as the count or, for memory, the bytes.
    pub amount: f64,
    /// The time, nanoseconds.
    pub length_ns: f64,
    /// Sum of the squared clumps.
    squares: f64,
    /// Dispersion of the counts over parts of the time: chi-squared and its degrees of freedom.
    waves: (f64, f64),
}

impl LeakTally {
    /// Counts handles when only their number is known.
    pub fn from_counts(handles: u64) -> Self {
        let count = handles as f64;
        Self { count, amount: count, squares: count, ..Self::default() }
    }

    /// Counts whole traces, given as leaks and length in nanoseconds. Traces take the place of parts of the time: they
    /// vary in the same way.
    pub fn from_traces(traces: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let count: f64 = traces.clone().map(|(count, _)| count).sum();
        let length_ns: f64 = traces.clone().map(|(_, length_ns)| length_ns).sum();
        let ran = traces.filter(|(_, length_ns)| *length_ns > 0.0);
        let number = ran.clone().count();
        let mut waves = (0.0, 0.0);
        if number > 1 && count > 0.0 {
            let chi_squared = ran.map(|(leaked, part_ns)| {
                let expected = count * part_ns / length_ns;
                (leaked - expected).powi(2) / expected
            });
            waves = (chi_squared.sum(), (number - 1) as f64);
        }
        Self { count, amount: count, length_ns, squares: count, waves }
    }

    /// Counts what leaks in the whole time, or in pieces of `piece_ns` nanoseconds.
    pub fn new(sample: &GroupSample, piece_ns: Option<i64>) -> Self {
        let by_process: Vec<Vec<SizedOpen>> = sample
            .processes
            .iter()
            .zip(&sample.sizes)
            .map(|(process, sizes)| {
                let pieces = WindowPieces::new(process.window, piece_ns);
                let size = |index| sizes.get(index).map_or(1.0, |size| *size as f64);
                let mut opens: Vec<SizedOpen> = process
                    .lifetimes
                    .iter()
                    .enumerate()
                    .filter(|(_, lifetime)| pieces.keeps(lifetime))
                    .map(|(index, lifetime)| (lifetime.opened_ns, size(index)))
                    .collect();
                opens.sort_unstable_by_key(|(opened_ns, _)| *opened_ns);
                opens
            })
            .collect();
        let length_ns: f64 = sample
            .windows
            .iter()
            .map(|window| WindowPieces::new(*window, piece_ns).length_ns() as f64)
            .sum();
        let count = by_process.iter().map(Vec::len).sum::<usize>() as f64;
        let moment_ns = (MOMENT * length_ns / count.max(1.0)).min(MAX_MOMENT_NS) as i64;
        let squares = by_process.iter().map(|opens| squares(opens, moment_ns)).sum();
        let mut opens = by_process.concat();
        opens.sort_unstable_by_key(|(opened_ns, _)| *opened_ns);
        Self { count, amount: amount(&opens), length_ns, squares, waves: waves(&opens) }
    }

    /// Adds `more` handles or allocations of size `each`, or removes them if negative. They are assumed to clump like
    /// the others.
    pub fn with(self, more: f64, each: f64) -> Self {
        let at_once = if self.amount > 0.0 { self.squares / self.amount } else { each };
        let amount = (self.amount + more * each).max(0.0);
        Self { count: (self.count + more).max(0.0), amount, squares: amount * at_once, ..self }
    }

    /// Returns the size of a chance over both traces.
    pub fn dispersion([first, second]: [&LeakTally; 2], kind: TimeDependence) -> f64 {
        let amount = first.amount + second.amount;
        let clump = if amount > 0.0 { (first.squares + second.squares) / amount } else { 1.0 };
        let (chi_squared, freedom) =
            (first.waves.0 + second.waves.0, first.waves.1 + second.waves.1);
        // A cache that is filled once is a single wave.
        if kind == TimeDependence::Fill || freedom == 0.0 {
            return clump;
        }
        let waves = chi_squared / freedom;
        if waves > clump * (1.0 + NO_CHANCE * (2.0 / freedom).sqrt()) { waves } else { clump }
    }
}

/// When something that leaks was opened, and its size.
type SizedOpen = (i64, f64);

fn amount(opens: &[SizedOpen]) -> f64 {
    opens.iter().map(|(_, amount)| amount).sum()
}

/// Returns the sum of the squared clumps. A clump is a run of opens, each less than a moment after the one before;
/// `opens` must be in ascending order.
fn squares(opens: &[SizedOpen], moment_ns: i64) -> f64 {
    let clumps = opens.chunk_by(|(open, _), (next, _)| next.saturating_sub(*open) < moment_ns);
    clumps
        .map(|clump| {
            let amount = amount(clump);
            amount * amount.min(MAX_AT_ONCE * amount / clump.len() as f64)
        })
        .sum()
}

/// Returns chi-squared of the amounts by parts of the time from first to last, and its degrees of freedom; 0 for too
/// few.
fn waves(opens: &[SizedOpen]) -> (f64, f64) {
    let (Some((first, _)), Some((last, _))) = (opens.first(), opens.last()) else {
        return (0.0, 0.0);
    };
    let width = i128::from(*last) - i128::from(*first) + 1;
    if opens.len() < MIN_SAMPLE || width < SLICES as i128 {
        return (0.0, 0.0);
    }
    let mut amounts = [0.0; SLICES];
    for (open, amount) in opens {
        let slice = (i128::from(*open) - i128::from(*first)) * SLICES as i128 / width;
        amounts[slice as usize] += amount;
    }
    let mean = amount(opens) / SLICES as f64;
    if mean <= 0.0 {
        return (0.0, 0.0);
    }
    let chi_squared = amounts.iter().map(|amount: &f64| (amount - mean).powi(2) / mean).sum();
    (chi_squared, (SLICES - 1) as f64)
}

/// A window cut into equal pieces from its end; the remainder at its start does not count.
struct WindowPieces {
    window: TimeWindow,
    piece_ns: i64,
    number: i64,
}

impl WindowPieces {
    fn new(window: TimeWindow, piece_ns: Option<i64>) -> Self {
        let length_ns = window.length_ns();
        let piece_ns =
            piece_ns.filter(|piece| (1..=length_ns).contains(piece)).unwrap_or(length_ns);
        let number = length_ns.checked_div(piece_ns).unwrap_or(1);
        Self { window, piece_ns, number }
    }

    fn length_ns(&self) -> i64 {
        self.piece_ns.saturating_mul(self.number)
    }

    /// Whether a handle was opened in a piece and is open at its end.
    fn keeps(&self, lifetime: &Lifetime) -> bool {
        let end_ns = self.window.end_ns;
        // A handle may be inherited before its process starts, or opened after the session was stopped.
        let opened_ns = lifetime.opened_ns.max(self.window.start_ns);
        let age_ns = end_ns.saturating_sub(opened_ns).clamp(0, i64::MAX);
        // An open at the very start of a piece belongs to that piece.
        let piece = (age_ns - 1).max(0).checked_div(self.piece_ns).unwrap_or_default();
        let piece_end_ns = end_ns.saturating_sub(piece.saturating_mul(self.piece_ns));
        piece < self.number && lifetime.closed_ns.is_none_or(|closed| closed > piece_end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Makes a sample of one process.
    fn sample_of(window: TimeWindow, lifetimes: Vec<Lifetime>) -> GroupSample {
        let processes = vec![ProcessLifetimes { lifetimes, window }];
        GroupSample { windows: vec![window], processes, sizes: vec![Vec::new()] }
    }

    fn sample(
        seconds: i64,
        lifetimes: impl IntoIterator<Item = (i64, Option<i64>)>,
    ) -> GroupSample {
        let window = TimeWindow { start_ns: 0, end_ns: seconds * SECOND };
        let lifetimes = lifetimes.into_iter().map(|(opened_ns, lived)| {
            let closed_ns = lived.map(|lived| opened_ns + lived);
            Lifetime { opened_ns, closed_ns: closed_ns.filter(|closed| *closed <= window.end_ns) }
        });
        sample_of(window, lifetimes.collect())
    }

    fn chances(tally: &LeakTally) -> f64 {
        tally.amount / LeakTally::dispersion([tally, &LeakTally::default()], TimeDependence::Rate)
    }

    #[test]
    fn handles_of_one_operation_are_one_chance() {
        for at_once in [1, 2, 3, 5, 9] {
            let opens = (0..60).flat_map(|operation| {
                (0..at_once).map(move |n| (operation * 10 * SECOND + n * 100_000, None))
            });
            let tally = LeakTally::new(&sample(600, opens), None);
            assert!((chances(&tally) - 60.0).abs() < 1e-9, "{at_once}: {tally:?}");
        }
    }

    #[test]
    fn handles_of_operations_that_take_seconds_are_few_chances_too() {
        let opens = (0..20).flat_map(|operation: i64| {
            // Operations come at uneven times.
            let start_ns = (operation * operation * 37 % 590) * SECOND;
            (0..5).map(move |n| (start_ns + n * 2 * SECOND, None))
        });
        let tally = LeakTally::new(&sample(600, opens), None);
        assert!(chances(&tally) < 40.0, "{tally:?}");
    }

    #[test]
    fn very_many_at_once_are_several_chances() {
        let tally = LeakTally::new(&sample(600, (0..1_000).map(|n| (n * 1_000, None))), None);
        assert!((chances(&tally) - 62.5).abs() < 1.0, "{tally:?}");
    }

    #[test]
    fn a_start_is_no_operation_however_long_the_trace_is() {
        let starting = (0..40).map(|n| (n * 500_000_000 + n * n * 1_000_000, None));
        for hours in [1, 24] {
            let tally = LeakTally::new(&sample(hours * 3_600, starting.clone()), None);
            assert_eq!(tally.squares, 40.0, "{hours} h");
        }
    }

    #[test]
    fn a_leak_that_begins_late_is_no_wave() {
        let opens = (0..40).map(|n| ((500 + n * 2) * SECOND + n * n * 10_000_000, None));
        let tally = LeakTally::new(&sample(600, opens), None);
        assert!(chances(&tally) > 35.0, "{tally:?}");
    }

    #[test]
    fn bytes_count_as_the_allocations_that_they_come_in() {
        let seconds = |count: i64| (0..count).map(|n| ((n * n * 37 % 590) * SECOND + n, None));
        let sized = |count: i64, size: fn(usize) -> u64| {
            let mut sample = sample(600, seconds(count));
            sample.sizes[0] = (0..sample.processes[0].lifetimes.len()).map(size).collect();
            sample
        };
        let equal = LeakTally::new(&sized(40, |_| 4096), None);
        assert_eq!((equal.count, equal.amount), (40.0, 40.0 * 4096.0));
        let numbers = LeakTally::new(&sample(600, seconds(40)), None);
        assert!((chances(&equal) - chances(&numbers)).abs() < 1e-9, "{equal:?}");
        // One block makes up nearly all of the amount.
        let uneven = LeakTally::new(&sized(40, |at| if at == 7 { 1 << 30 } else { 16 }), None);
        assert!(chances(&uneven) < 1.1, "{uneven:?}");
        assert_eq!(LeakTally::new(&sized(40, |_| 0), None).amount, 0.0);
    }

    #[test]
    fn pieces_have_what_a_trace_of_their_length_has() {
        // A cache: one entry per second that lives for 100 s.
        let cache = |seconds| {
            let opens = (-200..seconds).map(|n: i64| (n * SECOND + 1, Some(100 * SECOND)));
            sample(seconds, opens.filter(|(opened, _)| *opened > 0))
        };
        let short = LeakTally::new(&cache(60), Some(60 * SECOND));
        assert_eq!((short.count, short.length_ns), (60.0, 60e9));
        for (seconds, pieces) in [(120, 2.0), (600, 10.0), (650, 10.0)] {
            let long = LeakTally::new(&cache(seconds), Some(60 * SECOND));
            assert_eq!((long.count, long.length_ns), (60.0 * pieces, 60e9 * pieces), "{seconds}");
        }
        // Over its whole length, a longer trace leaks less per time.
        assert_eq!(LeakTally::new(&cache(600), None).count, 100.0);
    }

    #[test]
    fn between_losses_is_what_was_opened_there() {
        let opens = [1, 9, 15, 21, 40, 59].map(|second| (second * SECOND, None));
        let losses = LossTimes::new([
            Some((10 * SECOND, 20 * SECOND)),
            Some((50, 50)),
            Some((90 * SECOND, 99 * SECOND)),
        ]);
        let between_losses = sample(60, opens).between(&losses);
        let tally = LeakTally::new(&between_losses, None);
        assert_eq!((tally.count, tally.length_ns), (5.0, 50e9));
        assert_eq!(between_losses.length_ns(), 50 * SECOND);
        // A close seen after the loss shows that the handle was open until then.
        let closed = sample(60, [(SECOND, Some(30 * SECOND)), (2 * SECOND, Some(SECOND))]);
        assert_eq!(LeakTally::new(&closed.between(&losses), None).count, 1.0);
        let anywhere = sample(60, opens).between(&LossTimes::new([None]));
        assert_eq!((anywhere.windows.len(), LeakTally::new(&anywhere, None).count), (0, 0.0));
    }

    #[test]
    fn extreme_times_do_no_harm() {
        let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
        let lifetimes: Vec<Lifetime> = extremes
            .iter()
            .flat_map(|opened_ns| {
                let closed = [None, Some(i64::MIN), Some(0), Some(i64::MAX)];
                closed.map(|closed_ns| Lifetime { opened_ns: *opened_ns, closed_ns })
            })
            .collect();
        for window in [
            TimeWindow { start_ns: 0, end_ns: 1_000 },
            TimeWindow { start_ns: 5, end_ns: 5 },
            TimeWindow { start_ns: i64::MAX, end_ns: i64::MIN },
            TimeWindow { start_ns: i64::MIN, end_ns: i64::MAX },
        ] {
            let sample = sample_of(window, lifetimes.clone());
            let losses = LossTimes::new([Some((i64::MIN, 3)), Some((700, i64::MAX))]);
            for piece_ns in [None, Some(0), Some(1), Some(700), Some(i64::MAX)] {
                assert!(LeakTally::new(&sample, piece_ns).count <= lifetimes.len() as f64);
                assert!(
                    LeakTally::new(&sample.between(&losses), piece_ns).count
                        <= lifetimes.len() as f64
                );
            }
        }
    }
}
