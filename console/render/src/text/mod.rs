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

pub use self::groups::TreeColumns;
pub use self::groups::tree_columns;
pub use self::not_counted::{lines_of_not_counted, lines_without_suspects};
pub use self::object_ref::object_ref;
pub use self::process::ProcessStyle;
pub use self::stack::{StackStyle, within};
pub use self::suspect::{amounts, capitalized, headline, more, verdict};
