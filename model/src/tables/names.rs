//! Object names.

use super::declare::table;

table! {
    /// Columns of the names table: every distinct object name once.
    Names => Names,
    /// One object name.
    Name {
        /// The name, as in \Sessions\1\BaseNamedObjects\X; never empty.
        name: String,
    }
}
