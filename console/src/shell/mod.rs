//! What the user's shell needs: completion of command lines, and the manual page. Both are drawn
//! from the command line's definition and from the registry.

mod candidates;
mod man;
mod scripts;

pub use candidates::{Candidate, candidates};
pub use man::man;
pub use scripts::script;
