//! Inputs for following lifetimes.

use handlescope_model::Cancel;

use super::attribution::ProcessIndex;
use super::missing::MissingEvents;
use super::owners::EventOwners;
use crate::collect::Collector;
use crate::etl::Clock;

/// Inputs for following lifetimes.
#[derive(Clone, Copy)]
pub struct Lifetimes<'a> {
    pub collected: &'a Collector,
    pub index: &'a ProcessIndex,
    pub owners: &'a EventOwners,
    pub missing: &'a MissingEvents,
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
