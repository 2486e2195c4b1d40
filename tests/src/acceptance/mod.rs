//! Whether a recording of `leaky-program` is read as the program says it was: its truth against handlescope's answers.

mod checks;
mod expected;
mod observed;
mod replayed;

pub use checks::{Check, Outcome, compare};
pub use expected::{Allocation, Expected, Fate, Handle, Origin, View};
pub use observed::{Observed, observe};
pub use replayed::{Program, replay};
