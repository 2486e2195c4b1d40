//! How thorough the long searches for bugs are.

use std::env;

/// Returns the step size through test cases. With the variable `HANDLESCOPE_THOROUGH` set, as in CI, it is 1; otherwise
/// it is `share`, so that the tests of a clone take minutes instead of half an hour.
#[must_use]
pub fn one_of(share: usize) -> usize {
    if env::var_os("HANDLESCOPE_THOROUGH").is_some() { 1 } else { share }
}
