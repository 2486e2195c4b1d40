//! The truth about what `leaky-program` did, as it writes it and tests read it.

pub mod truth;
