//! Events → raw columns: the one pass over the file.

mod collector;
mod counter;
mod index;
mod kept;
mod mappable;
mod names;
#[cfg(test)]
mod tests;

pub use collector::Collector;
pub use counter::{Counted, EventCounter, KernelSelector, Tally};
pub use index::{Declared, FAMILIES, Family, FamilyIndex};
pub use kept::{KeptEvent, KeptEvents};
pub(crate) use mappable::KERNEL;
pub use mappable::check_mappings;
pub use names::event_name;
