//! Minimum speed of a download.
//!
//! A server that sends a byte now and then is no better than a silent one, but never runs into a timeout. So bytes are
//! counted, too, and the count continues when an interrupted download is continued.

use std::time::Duration;

use tokio::time::Instant;

/// The minimum speed of a download.
///
/// A slower download is aborted, the received part is kept for the next session, and the server is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinSpeed {
    /// Average bytes per second, as sent. 0 accepts any speed, but not silence.
    pub bytes_per_second: u64,
    /// The time over which the average is taken.
    pub over: Duration,
}

impl Default for MinSpeed {
    /// 16 KiB per second over a minute, a tenth of a slow line.
    fn default() -> Self {
        Self { bytes_per_second: 16 << 10, over: Duration::from_mins(1) }
    }
}

impl MinSpeed {
    /// Returns the number of bytes that arrive within the time at this speed.
    fn bytes(self) -> u128 {
        let bytes = u128::from(self.bytes_per_second).saturating_mul(self.over.as_nanos());
        bytes / Duration::from_secs(1).as_nanos()
    }
}

/// Reasons to give up a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GivenUp {
    #[error("it stopped in the middle of a file")]
    Silent,
    #[error("it is too slow, {bytes} bytes in {over:?}; what was received is kept")]
    TooSlow { bytes: u64, over: Duration },
}

/// The progress of one download.
///
/// The clock restarts whenever the bytes due within the time have arrived. So a download that is always fast enough is
/// never aborted, and one that becomes too slow is aborted in time.
pub struct SpeedCheck {
    min_speed: MinSpeed,
    /// Maximum time without any data.
    silence_timeout: Duration,
    portion_start: Instant,
    portion: u64,
    last_sign: Instant,
}

impl SpeedCheck {
    pub fn new(min_speed: MinSpeed, silence_timeout: Duration) -> Self {
        let now = Instant::now();
        Self { min_speed, silence_timeout, portion_start: now, portion: 0, last_sign: now }
    }

    /// Notes that the server has responded, but has not sent any content yet.
    pub fn answered(&mut self) {
        self.last_sign = Instant::now();
    }

    pub fn came(&mut self, bytes: usize) {
        self.last_sign = Instant::now();
        self.portion += bytes as u64;
        if u128::from(self.portion) >= self.min_speed.bytes() {
            (self.portion_start, self.portion) = (self.last_sign, 0);
        }
    }

    /// Returns the deadline for the next bytes.
    pub fn deadline(&self) -> Instant {
        self.portion_ends().map_or(self.silence_ends(), |end| end.min(self.silence_ends()))
    }

    /// Fails if waiting any longer is pointless.
    pub fn check(&self) -> Result<(), GivenUp> {
        let Self { min_speed: MinSpeed { over, .. }, portion: bytes, .. } = *self;
        let now = Instant::now();
        if now >= self.silence_ends() {
            Err(GivenUp::Silent)
        } else if self.portion_ends().is_some_and(|end| now >= end) {
            Err(GivenUp::TooSlow { bytes, over })
        } else {
            Ok(())
        }
    }

    fn silence_ends(&self) -> Instant {
        after(self.last_sign, self.silence_timeout)
    }

    /// Returns when the current portion is due; `None` if any speed will do.
    fn portion_ends(&self) -> Option<Instant> {
        (self.min_speed.bytes() > 0).then(|| after(self.portion_start, self.min_speed.over))
    }
}

/// Adds a duration to a time; if the result cannot be represented, returns a time a year later.
pub fn after(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_hours(24 * 365))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE_TIMEOUT: Duration = Duration::from_hours(1);

    /// Waits until the measurement is over.
    fn outlast(min_speed: MinSpeed) {
        std::thread::sleep(min_speed.over + Duration::from_millis(1));
    }

    #[test]
    fn a_transfer_slower_than_allowed_is_ended_with_the_figures() {
        let min_speed = MinSpeed { bytes_per_second: 1000, over: Duration::from_millis(20) };
        let mut speed = SpeedCheck::new(min_speed, SILENCE_TIMEOUT);
        speed.came(19);
        outlast(min_speed);
        let reason = speed.check().expect_err("too slow").to_string();
        assert_eq!(reason, "it is too slow, 19 bytes in 20ms; what was received is kept");
        speed.came(1);
        assert!(speed.portion == 0 && speed.portion_start == speed.last_sign, "time starts anew");
    }

    #[test]
    fn silence_is_not_slowness() {
        let mut speed = SpeedCheck::new(MinSpeed::default(), Duration::from_millis(5));
        speed.came(1 << 20);
        std::thread::sleep(Duration::from_millis(6));
        assert!(speed.deadline() < Instant::now());
        assert_eq!(speed.check(), Err(GivenUp::Silent));
    }

    #[test]
    fn a_minimum_speed_of_zero_is_allowed() {
        let min_speed = MinSpeed { bytes_per_second: 0, over: Duration::from_millis(1) };
        let mut speed = SpeedCheck::new(min_speed, SILENCE_TIMEOUT);
        outlast(min_speed);
        speed.answered();
        assert_eq!(speed.check(), Ok(()));
        let endless =
            SpeedCheck::new(MinSpeed { over: Duration::MAX, ..MinSpeed::default() }, Duration::MAX);
        assert!(endless.deadline() > Instant::now() && endless.check().is_ok());
    }
}
