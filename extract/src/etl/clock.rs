//! Converts raw timestamps to time.

use handlescope_model::tables::SYSTEM_CLOCK;

/// Unit of a session's raw timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// Ticks of the performance counter.
    PerformanceCounter,
    /// 100 ns since 1601 (FILETIME).
    SystemTime,
    CpuCycles,
}

impl ClockKind {
    /// Returns the name in the trace table and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerformanceCounter => "qpc",
            Self::SystemTime => SYSTEM_CLOCK,
            Self::CpuCycles => "cpu_cycles",
        }
    }
}

/// Converts raw timestamps of one session.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub kind: ClockKind,
    /// Raw timestamp of the session start.
    pub base: i64,
    /// Ticks per second; never 0.
    pub frequency: i64,
    /// Ticks the clock advances at a time.
    pub step: i64,
}

const NS_PER_SECOND: i128 = 1_000_000_000;

impl Clock {
    /// Returns nanoseconds since session start, rounded down; negative before the start.
    pub fn ns(&self, raw: i64) -> i64 {
        let ticks = i128::from(raw) - i128::from(self.base);
        let frequency = i128::from(self.frequency);
        if let (Ok(ticks), true) = (i64::try_from(ticks), self.frequency <= 1 << 33) {
            // Common case without 128-bit division: r < 2^33, so r * 10^9 < 2^63.
            let seconds = ticks.div_euclid(self.frequency);
            let rest = ticks.rem_euclid(self.frequency);
            if let Some(seconds_ns) = seconds.checked_mul(NS_PER_SECOND as i64) {
                let rest_ns = rest * NS_PER_SECOND as i64 / self.frequency;
                return seconds_ns.saturating_add(rest_ns);
            }
        }
        let ns = (ticks * NS_PER_SECOND).div_euclid(frequency);
        ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Converts a time that may be unknown, like [`Self::ns`].
    pub fn ns_of(&self, raw: Option<i64>) -> Option<i64> {
        raw.map(|raw| self.ns(raw))
    }

    /// Converts a duration in nanoseconds to ticks, rounded down.
    pub fn ticks(&self, ns: i64) -> i64 {
        (i128::from(ns) * i128::from(self.frequency) / NS_PER_SECOND) as i64
    }

    /// Returns the largest tick difference between events this far apart. A clock that stays the same most of the time
    /// may be one step ahead.
    pub fn ticks_apart(&self, ns: i64) -> i64 {
        let step = if self.step > 1 { self.step } else { 0 };
        self.ticks(ns).saturating_add(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(frequency: i64) -> Clock {
        Clock { kind: ClockKind::PerformanceCounter, base: 1_000, frequency, step: 1 }
    }

    #[test]
    fn time_is_rounded_down_also_before_the_start() {
        let clock = clock(2_143_632);
        assert_eq!(clock.ns(1_001), 466);
        assert_eq!(clock.ns(999), -467);
        assert_eq!(clock.ns(1_000 + 2_143_632), 1_000_000_000);
    }

    #[test]
    fn the_fast_way_and_the_exact_way_agree() {
        for frequency in [1, 3, 10_000_000, 2_143_632, 3_592_000_000, 1 << 33] {
            let clock = clock(frequency);
            for raw in [i64::MIN / 4, -5, 0, 1_000, 1_001, 123_456_789_012, 1 << 60] {
                let exact = ((i128::from(raw) - 1_000) * NS_PER_SECOND)
                    .div_euclid(i128::from(frequency))
                    .clamp(i128::from(i64::MIN), i128::from(i64::MAX));
                assert_eq!(i128::from(clock.ns(raw)), exact, "{raw} at {frequency}");
            }
        }
    }

    #[test]
    fn a_coarse_clock_may_be_a_step_ahead() {
        let clock = Clock { kind: ClockKind::SystemTime, step: 156_250, ..clock(10_000_000) };
        assert_eq!((clock.ticks(2_000_000), clock.ticks_apart(2_000_000)), (20_000, 176_250));
        assert_eq!(Clock { step: 1, ..clock }.ticks_apart(2_000_000), 20_000);
    }

    #[test]
    fn extreme_time_stamps_saturate() {
        assert_eq!(clock(1).ns(i64::MAX), i64::MAX);
        assert_eq!(clock(1).ns(i64::MIN), i64::MIN);
    }
}
