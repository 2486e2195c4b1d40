//! Gaps in the events of a trace.

use handlescope_model::rules::LossTimes;

use crate::etl::{EventLoss, LossSpan};

/// Gaps in the events of a trace; times are raw.
pub struct MissingEvents {
    pub times: LossTimes,
    /// Without those that are probably of another processor.
    certain: LossTimes,
    /// Without those that may be anywhere.
    located: LossTimes,
}

impl MissingEvents {
    pub fn new(losses: &[EventLoss]) -> Self {
        let certain = losses.iter().filter(|loss| !loss.is_doubtful);
        Self {
            times: LossTimes::new(losses.iter().map(bounds)),
            certain: LossTimes::new(certain.map(bounds)),
            located: LossTimes::new(losses.iter().map(bounds).filter(Option::is_some)),
        }
    }

    /// Whether no events are missing.
    pub fn is_none(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether events may be missing between two times, these included, as far as it is known when they were.
    pub fn is_located_between(&self, from: i64, to: i64) -> bool {
        self.located.is_between(from, to)
    }

    /// Whether events of some processor are missing between two times, these included.
    pub fn is_certain_between(&self, from: i64, to: i64) -> bool {
        self.certain.is_between(from, to)
    }
}

fn bounds(loss: &EventLoss) -> Option<(i64, i64)> {
    loss.span.map(LossSpan::bounds)
}
