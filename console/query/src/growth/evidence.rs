//! The figures of a verdict, as numbers and as a sentence.

use std::fmt;

use indicatif::HumanCount;

use super::kept::Kept;
use super::lifetime::{Bounds, Lifetime, Window};
use super::outlived::Outlived;
use super::rate::Rate;
use super::shape::Verdict;
use handlescope_session::values::Length;

/// Unit of time of a rate.
#[derive(Clone, Copy)]
struct Unit {
    minutes: f64,
    name: &'static str,
    short: &'static str,
}

const UNITS: [Unit; 4] = [
    Unit { minutes: 1.0 / 60.0, name: "second", short: "s" },
    Unit { minutes: 1.0, name: "minute", short: "min" },
    Unit { minutes: 60.0, name: "hour", short: "h" },
    Unit { minutes: 1_440.0, name: "day", short: "day" },
];

/// A number without the digits that say nothing: it is a multiple of the largest power of ten that is not larger than
/// `step`.
fn rounded(number: f64, step: f64) -> String {
    let exponent = step.max(f64::MIN_POSITIVE).log10().floor() as i32;
    if exponent < 0 {
        let decimals = exponent.unsigned_abs().min(9) as usize;
        return format!("{number:.decimals$}");
    }
    let power = 10_f64.powi(exponent);
    HumanCount(((number / power).round() * power) as u64).to_string()
}

/// Requests that a rate is by, at least.
const MIN_REQUESTS: usize = 8;

/// Handles leaked before a steady leak that are worth words, at least.
const MIN_EARLIER: usize = 5;

/// Words for what becomes of handles, or of allocations.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// Those that the program releases, as in "closed".
    pub closed: &'a str,
    /// The others, as in "leaked".
    pub leaked: &'a str,
    /// How the program got them, as in "opened".
    pub opened: &'a str,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Self { closed: "closed", leaked: "leaked", opened: "opened" }
    }
}

/// The figures of a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Handles of the group.
    pub opened: usize,
    /// Handles that the program closed.
    pub closed: usize,
    /// Mean lifetime of the closed ones in nanoseconds; `None` without.
    pub mean_lifetime_ns: Option<i64>,
    /// Handles that nothing closed, or only the end of the process.
    pub unreleased: usize,
    /// Leaked handles that are older than handles of the group get that are closed.
    pub kept: usize,
    /// Leaked handles whose age is no chance beside the lifetimes of closed ones.
    pub outlived: Outlived,
    /// Kept handles that the verdict speaks of: of a burst those in it, of a leak those of its rate.
    pub count: usize,
    /// Time at which the first of them was opened, in nanoseconds since session start.
    pub first_ns: Option<i64>,
    /// Time at which the last of them was opened, in nanoseconds since session start.
    pub last_ns: Option<i64>,
    /// Time at which the last of all handles was opened, leaked or not, in nanoseconds since session start.
    pub last_open_ns: Option<i64>,
    /// Kept handles that were opened before the first of them.
    pub earlier: usize,
    /// Time at which the last of these was opened, in nanoseconds since session start.
    pub earlier_until_ns: Option<i64>,
    /// The rate at which handles leak (verdict steady).
    pub rate: Option<Rate>,
    /// The time in which the group was seen.
    pub window: Window,
    /// Words for its start and its end.
    pub bounds: Bounds,
    /// Processes that leaked some of them.
    pub processes: usize,
    /// Requests that these processes began from the first to the last open that the verdict speaks of, as far as the trace
    /// says.
    pub requests: usize,
}

impl Evidence {
    /// Evidence from handles without their times.
    pub fn without_clock(lifetimes: &[Lifetime]) -> Self {
        let unreleased = lifetimes.iter().filter(|lifetime| lifetime.closed_ns.is_none()).count();
        Self {
            opened: lifetimes.len(),
            closed: lifetimes.len() - unreleased,
            mean_lifetime_ns: None,
            unreleased,
            kept: unreleased,
            outlived: Outlived::default(),
            count: unreleased,
            first_ns: None,
            last_ns: None,
            last_open_ns: None,
            earlier: 0,
            earlier_until_ns: None,
            rate: None,
            window: Window { start_ns: 0, end_ns: 0 },
            bounds: Bounds::TRACE,
            processes: 1,
            requests: 0,
        }
    }

    /// `opened`: the number of all handles; `opens`: when those were opened that the verdict speaks of,
    /// ascending.
    pub fn new(
        opened: usize,
        kept: &Kept,
        opens: &[i64],
        rate: Option<Rate>,
        window: Window,
    ) -> Self {
        let first_ns = opens.first().copied();
        let earlier =
            kept.opens.partition_point(|open| first_ns.is_some_and(|first| *open < first));
        Self {
            opened,
            closed: kept.closed,
            mean_lifetime_ns: kept.mean_lifetime_ns,
            unreleased: kept.opens.len() + kept.young,
            kept: kept.opens.len(),
            outlived: kept.outlived,
            count: opens.len(),
            first_ns,
            last_ns: opens.last().copied(),
            last_open_ns: None,
            earlier,
            earlier_until_ns: earlier.checked_sub(1).map(|last| kept.opens[last]),
            rate,
            window,
            bounds: Bounds::TRACE,
            processes: 1,
            requests: 0,
        }
    }

    /// Handles leaked for each request that the processes began, where these are known and more than a few.
    pub fn per_request(&self) -> Option<f64> {
        let is_known = self.requests >= MIN_REQUESTS;
        is_known.then(|| self.count as f64 / self.requests as f64)
    }

    /// The rate by time and, where requests are known, by request.
    fn rates(&self) -> String {
        let by_time = self.rate.map_or_else(String::new, |rate| format!(", {rate}"));
        let Some((rate, per_request)) = self.rate.zip(self.per_request()) else { return by_time };
        let step = (rate.high - rate.low) / rate.per_minute * per_request / 4.0;
        let requests = HumanCount(self.requests as u64);
        format!("{by_time}, {} per request of {requests}", rounded(per_request, step))
    }

    /// The evidence for a verdict as a sentence without a full stop.
    pub fn sentence(&self, verdict: Verdict, words: Words<'_>, opened: u64) -> String {
        let closed = (self.closed > 0).then(|| self.closes(words.closed, opened));
        let leaks = self.leaks(verdict, words);
        let outlived = match verdict {
            Verdict::Balanced => self.outlived(words.closed),
            _ => String::new(),
        };
        match (closed, verdict, self.kept) {
            (None, ..) => leaks,
            (Some(closed), Verdict::Balanced, 0) => format!("{closed}, {leaks}{outlived}"),
            (Some(closed), ..) => format!("{leaks}{outlived}; {closed}"),
        }
    }

    /// Number and age of those that are older than chance explains, as in ", 4 of them at least 5.1 times as old as any
    /// that was closed".
    fn outlived(&self, closed: &str) -> String {
        let Outlived { count, times, .. } = self.outlived;
        let these = match (count, self.unreleased) {
            (0, _) => return String::new(),
            (1, 1) => String::new(),
            (count, unreleased) if count == unreleased => "all ".to_owned(),
            (count, _) => format!("{} of them ", HumanCount(count as u64)),
        };
        // They are as old or older.
        let times = if times < 10.0 { (times * 10.0).floor() / 10.0 } else { times.floor() };
        let times =
            if times < 10.0 { format!("{times:.1}") } else { HumanCount(times as u64).to_string() };
        let least = if count > 1 { "at least " } else { "" };
        format!(", {these}{least}{times} times as old as any that was {closed}")
    }

    /// Number and lifetime of those that are closed.
    fn closes(&self, word: &str, opened: u64) -> String {
        let (closed, opened) = (HumanCount(self.closed as u64), HumanCount(opened));
        let mean = self.mean_lifetime_ns.map(|ns| format!(" after {} on average", Length(ns)));
        format!("{closed} of {opened} {word}{}", mean.unwrap_or_default())
    }

    /// Time from the first to the last open that the verdict speaks of.
    fn width_ns(&self) -> i64 {
        self.last_ns.zip(self.first_ns).map_or(0, |(last, first)| last.saturating_sub(first))
    }

    /// Whether the group stopped opening handles, after more than a start: neither leaked nor closed ones follow.
    fn has_stopped(&self, verdict: Verdict) -> bool {
        let is_start = |ns| self.window.is_start(ns);
        let Some((last_leak, last_open)) = self.last_ns.zip(self.last_open_ns) else {
            return false;
        };
        let quiet = self.window.end_ns.saturating_sub(last_open);
        verdict == Verdict::Once && !is_start(last_leak) && quiet > self.window.length_ns() / 4
    }

    /// Time from the last open that the verdict speaks of to the end of the window.
    fn quiet_ns(&self) -> i64 {
        self.last_ns.map_or(0, |last| self.window.end_ns.saturating_sub(last))
    }

    /// Number of those leaked before a leak became steady, where that is more than a few: a warm-up, or another rate.
    fn before_it(&self, leaked: &str) -> Option<String> {
        let until_ns = self.earlier_until_ns.filter(|_| self.earlier >= MIN_EARLIER)?;
        let phase = if self.window.is_start(until_ns) { " (warm-up)" } else { "" };
        let until_ns = until_ns.saturating_sub(self.window.start_ns).max(0);
        Some(format!("{} {leaked} in the first {}{phase}", self.earlier, Length(until_ns)))
    }

    /// Text for the time since which a leak is steady, where it began late.
    fn since(&self) -> String {
        let since_ns = self.first_ns.map_or(0, |ns| ns.saturating_sub(self.window.start_ns));
        match since_ns >= self.window.length_ns() / 4 && since_ns > 0 {
            true => format!(", since {} {}", Length(since_ns), self.bounds.after_start()),
            false => String::new(),
        }
    }

    /// Number of processes, and of leaked handles in each, on average.
    fn by_process(&self) -> String {
        let mean = self.unreleased as f64 / self.processes as f64;
        let mean =
            rounded(mean, if self.unreleased.is_multiple_of(self.processes) { 1.0 } else { 0.1 });
        format!(" in {} processes ({mean} per process)", HumanCount(self.processes as u64))
    }

    /// How long it took to open those that the verdict speaks of, as in "opened within 10.0 ms".
    fn opened_within(&self, opened: &str) -> String {
        match self.width_ns() {
            ..=0 if self.count == 1 => opened.to_owned(),
            ..=0 => format!("{opened} at once"),
            width => format!("{opened} within {}", Length(width)),
        }
    }

    /// When the first and the last of them were opened, as in ", 11.0 ms after process start and 6.92 ms before process
    /// exit".
    fn first_and_last(&self) -> String {
        // A handle may be inherited just before its process starts.
        let since = self.first_ns.map_or(0, |ns| ns.saturating_sub(self.window.start_ns));
        let (after_start, to) = (self.bounds.after_start(), self.before_end());
        match since {
            ..=0 => format!(" {}, {to}", self.bounds.at_start()),
            since => format!(", {} {after_start} and {to}", Length(since)),
        }
    }

    /// When the last of them was opened, as in "6.92 ms before process exit".
    fn before_end(&self) -> String {
        match self.quiet_ns() {
            ..=0 => format!("at {}", self.bounds.end()),
            quiet => format!("{} before {}", Length(quiet), self.bounds.end()),
        }
    }

    /// Number and times of those that are leaked.
    fn leaks(&self, verdict: Verdict, words: Words<'_>) -> String {
        let Words { leaked, opened, .. } = words;
        let (in_verdict, unreleased) =
            (HumanCount(self.count as u64), HumanCount(self.unreleased as u64));
        let mut count = match self.unreleased == self.count {
            true => format!("{unreleased} {leaked}"),
            false => format!("{in_verdict} of {unreleased} {leaked}"),
        };
        if self.processes > 1 {
            count.push_str(&self.by_process());
        }
        match verdict {
            Verdict::Steady => {
                let (width, rate) = (Length(self.width_ns()), self.rates());
                match self.before_it(leaked) {
                    Some(before) if self.processes > 1 => {
                        format!("{before}, then {count} over {width}{rate}")
                    }
                    Some(before) => format!("{before}, then {in_verdict} over {width}{rate}"),
                    None => format!("{count} over {width}{rate}{}", self.since()),
                }
            }
            Verdict::Burst | Verdict::Once => {
                let within = self.opened_within(opened);
                match self.last_open_ns.filter(|_| self.has_stopped(verdict)) {
                    Some(last_ns) => {
                        let last = Length(last_ns.saturating_sub(self.window.start_ns));
                        let after_start = self.bounds.after_start();
                        format!(
                            "{count}, {within}; nothing {opened} later than {last} {after_start}"
                        )
                    }
                    None => format!("{count}, {within}{}", self.first_and_last()),
                }
            }
            _ if self.kept > 0 && self.last_ns.is_none() => format!("{count}, at unknown times"),
            Verdict::Balanced | Verdict::Short if self.kept > 0 => {
                let last = if self.count > 1 { "the last one " } else { "" };
                format!("{count}, {last}{opened} {}", self.before_end())
            }
            Verdict::Balanced | Verdict::Short if self.unreleased > 0 => {
                let state = match opened {
                    "opened" => "open",
                    "mapped" => "mapped",
                    _ => "allocated",
                };
                format!("{unreleased} still {state} at {}", self.bounds.end())
            }
            Verdict::Balanced | Verdict::Short => format!("none {leaked}"),
        }
    }
}

impl Rate {
    /// The smallest unit in which at least one handle leaks, with the rate and its interval in that.
    fn in_unit(self) -> (Unit, [f64; 3]) {
        let unit = UNITS.into_iter().find(|unit| self.per_minute * unit.minutes >= 1.0);
        let unit = unit.unwrap_or(UNITS[UNITS.len() - 1]);
        (unit, [self.per_minute, self.low, self.high].map(|rate| rate * unit.minutes))
    }

    /// The rate without its interval, as in `30/min`.
    pub fn short(self) -> String {
        let (unit, [rate, low, high]) = self.in_unit();
        format!("{}/{}", rounded(rate, (high - low) / 4.0), unit.short)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, [rate, low, high]) = self.in_unit();
        let about = if high > 2.0 * low { "about " } else { "" };
        let [rate, low, high] = [rate, low, high].map(|number| rounded(number, (high - low) / 4.0));
        write!(f, "{about}{rate} per {} (95 % confidence: {low} to {high})", unit.name)
    }
}
