//! Thoroughness of the long searches for mistakes.

use std::env;

/// Steps through cases: every one where the variable `HANDLESCOPE_THOROUGH` is set, as in CI, else one of
/// `share`, so that the tests of a clone take minutes and not half an hour.
#[must_use]
pub fn one_of(share: usize) -> usize {
    if env::var_os("HANDLESCOPE_THOROUGH").is_some() { 1 } else { share }
}
