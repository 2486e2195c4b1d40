//! Events → raw columns, in a single pass over the file.

mod collector;
mod counter;
mod gathered;
mod index;
#[cfg(test)]
mod tests;

pub use collector::{Collector, KeptEvent, KeptEvents};
pub use counter::{Counted, EventCounter, KernelSelector, Tally};
pub use gathered::{GatheredRows, RowGatherer};
pub use index::KERNEL;
pub use index::{Declared, FAMILIES, Family, FamilyIndex, check_mappings, event_name};
