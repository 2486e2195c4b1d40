//! The filter language of every `.dump` option, as users of ETWAnalyzer know it.
//!
//! A filter is a list of parts separated by `;` (empty parts are ignored). A part that starts with
//! `!` excludes. `*` stands for any number of characters, `?` for exactly one; everything else is
//! literal, in any case. A text passes when no exclusion matches and, if there are other parts, at
//! least one of them does. Exclusions win, so `*;!*` passes nothing; an empty filter passes all.
//!
//! There are two ways to apply a filter:
//! * [`Filter`] tests names, types, pointers and stacks. A part covers a whole *line*; a text of
//!   several lines (a stack) is matched by a part when one of its lines is.
//! * [`ProcessFilter`] tests processes written `name.exe(pid)`. A number is a pid, and the `.exe`
//!   and the `(pid)` may be left out.

mod days;
mod pattern;
mod plain;

pub use days::{Days, DaysError};
pub use pattern::{FilterError, Wildcard};
pub use pattern::{literal, word};
pub use plain::{Filter, LineMatch, ProcessFilter, SystemModules};
