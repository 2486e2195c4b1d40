//! Reasons why an answer about a dataset may be wrong or incomplete.

use super::traces::Fleet;
use handlescope_session::values::Counted;

/// A reason that concerns some traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetCaveat {
    /// Word for programs, which stays the same.
    pub kind: &'static str,
    pub text: String,
    /// Number of the traces.
    pub traces: usize,
}

impl Fleet {
    /// Caveats of the traces.
    pub fn caveats(&self) -> Vec<FleetCaveat> {
        let all = self.traces.len();
        let caveat = |kind, text: [&str; 2], traces: usize| {
            let shown = Counted(traces as u64, "trace");
            let of = if all == traces { String::new() } else { format!(" of {all}") };
            let text = format!("{shown}{of} {}", if traces == 1 { text[0] } else { text[1] });
            (traces > 0).then_some(FleetCaveat { kind, text, traces })
        };
        let count = |test: fn(&super::traces::FleetTrace) -> bool| {
            self.traces.iter().filter(|trace| test(trace)).count()
        };
        let losses = caveat(
            "events_lost",
            ["lost events, so leaks there may be missing or closed handles may seem leaked"; 2],
            count(|trace| trace.has_losses),
        );
        let symbols = caveat(
            "symbols_missing",
            [
                "has stacks without symbols, which are compared by module and offset; handlescope \
                 dataset symbolize finds names later",
                "have stacks without symbols, which are compared by module and offset; handlescope \
                 dataset symbolize finds names later",
            ],
            count(|trace| trace.lacks_symbols),
        );
        let clock = caveat(
            "no_clock",
            ["has no clock, so no rates", "have no clock, so no rates"],
            count(|trace| trace.seconds.is_none()),
        );
        [losses, symbols, clock].into_iter().flatten().collect()
    }
}
