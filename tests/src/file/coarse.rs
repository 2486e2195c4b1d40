//! The system clock, which stands still between two ticks of its timer.

use super::options::Clock;
use super::{EtlFile, FileOptions};

/// Hook ids of stack events that start with the time of the event they belong to.
const STACKS: [u16; 3] = [0x1820, 0x1825, 0x1826];

impl EtlFile {
    /// Rounds the times of events to those of a clock that advances every `step` 100 ns units. The options must be
    /// of [`Clock::SystemTime`]. Events keep the order of their exact times on each processor.
    ///
    /// # Panics
    /// When the clock is another one, or an event has a header without a place for the time.
    #[must_use]
    pub fn on_coarse_clock(mut self, step: i64) -> Self {
        assert_eq!(self.options.clock, Clock::SystemTime, "other clocks do not stand still");
        self.events.sort_by_key(|(time, _, _)| *time);
        let base = self.options.base_raw();
        let shown = |time: i64| base + (time - base).div_euclid(step) * step;
        for (time, _, event) in &mut self.events {
            *time = shown(*time);
            let at = time_offset(event);
            event[at..at + 8].copy_from_slice(&time.to_le_bytes());
            let hook = u16::from_le_bytes([event[6], event[7]]);
            if is_kernel(event) && STACKS.contains(&hook) {
                let at = at + 8 + if event[2] <= 2 { 8 } else { 0 };
                let bytes = event[at..at + 8].try_into().expect("eight bytes");
                event[at..at + 8].copy_from_slice(&shown(i64::from_le_bytes(bytes)).to_le_bytes());
            }
        }
        self.options = FileOptions { timer_resolution: step as u32, ..self.options };
        self
    }
}

fn is_kernel(event: &[u8]) -> bool {
    matches!(event[2], 1..=4 | 0x10 | 0x11)
}

/// Offset of the time in the header of an event.
fn time_offset(event: &[u8]) -> usize {
    match event[2] {
        0x10 | 0x11 => 8,
        1..=4 | 10..=13 | 18..=21 => 16,
        other => panic!("a header of type {other} has its time elsewhere"),
    }
}
