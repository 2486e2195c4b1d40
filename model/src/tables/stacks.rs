//! Call stacks.

use super::declare::table;
use crate::index::FrameIdx;

table! {
    /// Columns of the stacks table: every distinct stack once, compared by content.
    ///
    /// A flat list of frames, not a prefix tree: the zstd of the Parquet member finds shared
    /// prefixes as well, SQL can unnest a list, and reading one stack touches one place.
    Stacks => Stacks,
    /// One call stack.
    Stack {
        /// Frames, innermost first: the kernel part, then the user part.
        frames: Vec<FrameIdx>,
    }
}
