//! The figures behind a verdict, as numbers and as a sentence.

use std::fmt;

use indicatif::HumanCount;

use super::kept::KeptHandles;
use super::lifetime::{Bounds, Lifetime, TimeWindow};
use super::outlived::OutlivingHandles;
use super::rate::Rate;
use super::shape::Verdict;
use handlescope_session::values::Length;

/// A unit of time for rates.
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

/// Formats a number without meaningless digits: rounds to the largest power of ten that is not larger than `step`.
fn rounded(number: f64, step: f64) -> String {
    let exponent = step.max(f64::MIN_POSITIVE).log10().floor() as i32;
    if exponent < 0 {
        let decimals = exponent.unsigned_abs().min(9) as usize;
        return format!("{number:.decimals$}");
    }
    let power = 10_f64.powi(exponent);
    HumanCount(((number / power).round() * power) as u64).to_string()
}

/// Minimum number of requests for a rate per request.
const MIN_REQUESTS: usize = 8;

/// Minimum number of handles leaked before a steady leak that are worth a mention.
const MIN_EARLIER: usize = 5;

/// Words for what happens to handles or allocations.
#[derive(Debug, Clone, Copy)]
pub struct GrowthWords<'a> {
    /// Those that the program releases, such as "closed".
    pub closed: &'a str,
    /// The others, such as "leaked".
    pub leaked: &'a str,
    /// How the program got them, such as "opened".
    pub opened: &'a str,
}

/// The figures behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthEvidence {
    /// Handles of the group.
    pub opened: usize,
    /// Handles that the program closed.
    pub closed: usize,
    /// Mean lifetime of the closed ones in nanoseconds; `None` if there are none.
    pub mean_lifetime_ns: Option<i64>,
    /// Handles that nothing closed, or only process exit.
    pub unreleased: usize,
    /// Leaked handles that are older than handles of the group get before they are closed.
    pub kept: usize,
    /// Leaked handles too old to be explained by chance, given the lifetimes of closed ones.
    pub outlived: OutlivingHandles,
    /// Kept handles the verdict is about: those in a burst, or those of a leak's rate.
    pub count: usize,
    /// When the first of these was opened, nanoseconds since session start.
    pub first_ns: Option<i64>,
    /// When the last of these was opened, nanoseconds since session start.
    pub last_ns: Option<i64>,
    /// When the last handle at all was opened, leaked or not, nanoseconds since session start.
    pub last_open_ns: Option<i64>,
    /// Kept handles opened before the first of these.
    pub earlier: usize,
    /// When the last of those earlier ones was opened, nanoseconds since session start.
    pub earlier_until_ns: Option<i64>,
    /// The rate at which handles leak, if the verdict is steady.
    pub rate: Option<Rate>,
    /// The time range in which the group was seen.
    pub window: TimeWindow,
    /// How to name the start and the end of that range.
    pub bounds: Bounds,
    /// Number of processes that leaked some of them.
    pub processes: usize,
    /// Number of requests these processes began between the first and the last open the verdict is about, as far as the
    /// trace shows.
    pub requests: usize,
}

impl GrowthEvidence {
    /// Makes evidence from handles without times.
    pub fn without_clock<'l>(lifetimes: impl Iterator<Item = &'l Lifetime>) -> Self {
        let (opened, closed) = lifetimes.fold((0, 0), |(opened, closed), lifetime| {
            (opened + 1, closed + usize::from(lifetime.closed_ns.is_some()))
        });
        let unreleased = opened - closed;
        let kept = KeptHandles { young: unreleased, closed, ..KeptHandles::default() };
        let evidence = Self::new(opened, &kept, &[], None, TimeWindow { start_ns: 0, end_ns: 0 });
        Self { kept: unreleased, count: unreleased, ..evidence }
    }

    /// Makes evidence from the number of all handles and the open times the verdict is about, ascending.
    pub fn new(
        opened: usize,
        kept: &KeptHandles,
        opens: &[i64],
        rate: Option<Rate>,
        window: TimeWindow,
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

    /// Returns the handles leaked per request, if requests are known and there are more than a few.
    pub fn per_request(&self) -> Option<f64> {
        let is_known = self.requests >= MIN_REQUESTS;
        is_known.then(|| self.count as f64 / self.requests as f64)
    }

    /// Formats the rate by time and, if requests are known, by request.
    fn rates(&self) -> String {
        let by_time = self.rate.map_or_else(String::new, |rate| format!(", {rate}"));
        let Some((rate, per_request)) = self.rate.zip(self.per_request()) else { return by_time };
        let step = (rate.high - rate.low) / rate.per_minute * per_request / 4.0;
        let requests = HumanCount(self.requests as u64);
        format!("{by_time}, {} per request of {requests}", rounded(per_request, step))
    }

    /// Returns the evidence for a verdict as a sentence without a full stop.
    pub fn sentence(&self, verdict: Verdict, words: GrowthWords<'_>, opened: u64) -> String {
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

    /// Formats the number and age of handles too old to be explained by chance, such as ", 4 of them at least 5.1 times
    /// as old as any that was closed".
    fn outlived(&self, closed: &str) -> String {
        let OutlivingHandles { count, times, .. } = self.outlived;
        let these = match (count, self.unreleased) {
            (0, _) => return String::new(),
            (1, 1) => String::new(),
            (count, unreleased) if count == unreleased => "all ".to_owned(),
            (count, _) => format!("{} of them ", HumanCount(count as u64)),
        };
        // Rounded down, because they are at least that old.
        let times = if times < 10.0 { (times * 10.0).floor() / 10.0 } else { times.floor() };
        let times =
            if times < 10.0 { format!("{times:.1}") } else { HumanCount(times as u64).to_string() };
        let least = if count > 1 { "at least " } else { "" };
        format!(", {these}{least}{times} times as old as any that was {closed}")
    }

    /// Formats the number and mean lifetime of closed handles.
    fn closes(&self, word: &str, opened: u64) -> String {
        let (closed, opened) = (HumanCount(self.closed as u64), HumanCount(opened));
        let mean = self.mean_lifetime_ns.map(|ns| format!(" after {} on average", Length(ns)));
        format!("{closed} of {opened} {word}{}", mean.unwrap_or_default())
    }

    /// Returns the time from the first to the last open the verdict is about.
    fn width_ns(&self) -> i64 {
        self.last_ns.zip(self.first_ns).map_or(0, |(last, first)| last.saturating_sub(first))
    }

    /// Whether the group stopped opening handles, leaked or not, after more than a start.
    fn has_stopped(&self, verdict: Verdict) -> bool {
        let is_start = |ns| self.window.is_start(ns);
        let Some((last_leak, last_open)) = self.last_ns.zip(self.last_open_ns) else {
            return false;
        };
        let quiet = self.window.end_ns.saturating_sub(last_open);
        verdict == Verdict::Once && !is_start(last_leak) && quiet > self.window.length_ns() / 4
    }

    /// Returns the time from the last open the verdict is about to the end of the window.
    fn quiet_ns(&self) -> i64 {
        self.last_ns.map_or(0, |last| self.window.end_ns.saturating_sub(last))
    }

    /// Formats how many leaked before the leak became steady, if more than a few: a warm-up, or another rate.
    fn before_it(&self, leaked: &str) -> Option<String> {
        let until_ns = self.earlier_until_ns.filter(|_| self.earlier >= MIN_EARLIER)?;
        let phase = if self.window.is_start(until_ns) { " (warm-up)" } else { "" };
        let until_ns = until_ns.saturating_sub(self.window.start_ns).max(0);
        Some(format!("{} {leaked} in the first {}{phase}", self.earlier, Length(until_ns)))
    }

    /// Formats since when a leak is steady, if it began late.
    fn since(&self) -> String {
        let since_ns = self.first_ns.map_or(0, |ns| ns.saturating_sub(self.window.start_ns));
        if since_ns >= self.window.length_ns() / 4 && since_ns > 0 {
            format!(", since {} {}", Length(since_ns), self.bounds.after_start())
        } else {
            String::new()
        }
    }

    /// Formats the number of processes and the mean leaks of each.
    fn by_process(&self) -> String {
        let mean = self.unreleased as f64 / self.processes as f64;
        let mean =
            rounded(mean, if self.unreleased.is_multiple_of(self.processes) { 1.0 } else { 0.1 });
        format!(" in {} processes ({mean} per process)", HumanCount(self.processes as u64))
    }

    /// Formats how long it took to open the handles the verdict is about, such as "opened within 10.0 ms".
    fn opened_within(&self, opened: &str) -> String {
        match self.width_ns() {
            ..=0 if self.count == 1 => opened.to_owned(),
            ..=0 => format!("{opened} at once"),
            width => format!("{opened} within {}", Length(width)),
        }
    }

    /// Formats when the first and the last of them were opened, such as ", 11.0 ms after process start and 6.92 ms
    /// before process exit".
    fn first_and_last(&self) -> String {
        // A handle may be inherited just before its process starts.
        let since = self.first_ns.map_or(0, |ns| ns.saturating_sub(self.window.start_ns));
        let (after_start, to) = (self.bounds.after_start(), self.before_end());
        match since {
            ..=0 => format!(" {}, {to}", self.bounds.at_start()),
            since => format!(", {} {after_start} and {to}", Length(since)),
        }
    }

    /// Formats when the last of them was opened, such as "6.92 ms before process exit".
    fn before_end(&self) -> String {
        match self.quiet_ns() {
            ..=0 => format!("at {}", self.bounds.end()),
            quiet => format!("{} before {}", Length(quiet), self.bounds.end()),
        }
    }

    /// Formats the number and times of leaked handles.
    fn leaks(&self, verdict: Verdict, words: GrowthWords<'_>) -> String {
        let GrowthWords { leaked, opened, .. } = words;
        let (in_verdict, unreleased) =
            (HumanCount(self.count as u64), HumanCount(self.unreleased as u64));
        let mut count = if self.unreleased == self.count {
            format!("{unreleased} {leaked}")
        } else {
            format!("{in_verdict} of {unreleased} {leaked}")
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
    /// Returns the smallest unit in which at least one handle leaks, with the rate and its interval in that unit.
    fn in_unit(self) -> (Unit, [f64; 3]) {
        let unit = UNITS.into_iter().find(|unit| self.per_minute * unit.minutes >= 1.0);
        let unit = unit.unwrap_or(UNITS[UNITS.len() - 1]);
        (unit, [self.per_minute, self.low, self.high].map(|rate| rate * unit.minutes))
    }

    /// Returns the rate without its interval, such as `30/min`.
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
