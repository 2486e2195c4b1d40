//! Reasons why an answer about a dataset may be wrong or incomplete.

use super::traces::{Fleet, FleetTrace};
use handlescope_session::values::CountedNoun;

/// A reason that concerns some of the traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetCaveat {
    /// Word for programs; it never changes.
    pub kind: &'static str,
    pub text: String,
    /// Number of the traces.
    pub traces: usize,
}

impl Fleet {
    /// Returns the caveats about the traces.
    pub fn caveats(&self) -> Vec<FleetCaveat> {
        let all = self.traces.len();
        let caveat = |kind, [one, many]: [&str; 2], text, test: fn(&FleetTrace) -> bool| {
            let traces = self.traces.iter().filter(|trace| test(trace)).count();
            let shown = CountedNoun(traces as u64, "trace");
            let of = if all == traces { String::new() } else { format!(" of {all}") };
            let verb = if traces == 1 { one } else { many };
            let text = format!("{shown}{of} {verb} {text}");
            (traces > 0).then_some(FleetCaveat { kind, text, traces })
        };
        let losses = caveat(
            "events_lost",
            ["lost"; 2],
            "events, so leaks there may be missing or closed handles may seem leaked",
            |trace| trace.has_losses,
        );
        let symbols = caveat(
            "symbols_missing",
            ["has", "have"],
            "stacks without symbols, which are compared by module and offset; handlescope dataset \
             symbolize finds names later",
            |trace| trace.lacks_symbols,
        );
        let clock = caveat("no_clock", ["has", "have"], "no clock, so no rates", |trace| {
            trace.seconds.is_none()
        });
        [losses, symbols, clock].into_iter().flatten().collect()
    }
}
