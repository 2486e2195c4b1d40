//! Events → raw columns: the one pass over the file.

mod collector;
mod counter;
mod index;
mod kept;
mod names;
#[cfg(test)]
mod tests;

pub use collector::Collector;
pub use counter::{Counted, EventCounter, KernelSelector, Tally};
pub use index::{Declared, FAMILIES, Family, FamilyIndex};
pub use kept::{KeptEvent, KeptEvents};
pub use names::event_name;
