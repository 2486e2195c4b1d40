//! Text in ETWAnalyzer's shape, so that its users read it at once and their scripts keep working.

mod event;
mod groups;
mod layout;
mod not_counted;
mod numbers;
mod object_ref;
mod process;
mod stack;
mod suspect;
mod totals;

pub(super) use self::groups::TreeColumns;
pub(crate) use self::groups::tree_columns;
pub(super) use self::not_counted::{lines_of_not_counted, lines_without_suspects};
pub(super) use self::object_ref::object_ref;
pub(super) use self::process::ProcessStyle;
pub(super) use self::stack::{StackStyle, within};
pub(super) use self::suspect::{amounts, capitalized, headline, more, verdict};
