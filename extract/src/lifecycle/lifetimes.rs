//! Inputs for following lifetimes, and gaps in the events.

use handlescope_model::Cancel;
use handlescope_model::rules::LossTimes;
use hashbrown::HashSet;

use super::attribution::ProcessIndex;
use super::owners::EventOwners;
use crate::collect::Collector;
use crate::etl::{Clock, EventLoss, LossSpan};

/// Gaps in the events of a trace; times are raw.
pub struct MissingEvents<'a> {
    losses: &'a [EventLoss],
    pub(super) times: LossTimes,
}

impl<'a> MissingEvents<'a> {
    pub fn new(losses: &'a [EventLoss]) -> Self {
        Self { losses, times: LossTimes::new(losses.iter().map(bounds)) }
    }

    /// Whether no events are missing.
    pub(super) fn is_none(&self) -> bool {
        self.losses.is_empty()
    }

    /// Whether events of some processors may be missing from one time to another.
    pub(super) fn is_between(&self, from: i64, to: i64, processors: &HashSet<u16>) -> bool {
        let losses = self.losses.iter().filter(|loss| {
            !loss.is_doubtful && loss.processor.is_none_or(|number| processors.contains(&number))
        });
        LossTimes::new(losses.map(bounds)).is_between(from, to)
    }
}

fn bounds(loss: &EventLoss) -> Option<(i64, i64)> {
    loss.span.map(LossSpan::bounds)
}

/// Inputs for following lifetimes.
#[derive(Clone, Copy)]
pub struct Lifetimes<'a> {
    pub collected: &'a Collector,
    pub index: &'a ProcessIndex,
    pub owners: &'a EventOwners,
    pub missing: &'a MissingEvents<'a>,
    pub clock: &'a Clock,
    pub cancel: &'a Cancel,
}

impl Lifetimes<'_> {
    /// The rows of the timeline in time order; `order` gives it, or some rows in time order, when it is not the order of
    /// all rows.
    pub fn rows(&self, order: Option<&[u32]>) -> impl DoubleEndedIterator<Item = usize> {
        let count = order.map_or(self.collected.shared.timeline.len(), <[u32]>::len);
        (0..count).map(move |position| order.map_or(position, |order| order[position] as usize))
    }
}
