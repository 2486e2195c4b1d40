//! The options of `.sql`.

use super::{
    OptionGroup, OptionSpec,
    kinds::{ROWS, SCRIPTS},
    output::{row_options, table_options},
    views,
};
use crate::command::SqlArgs;

/// Options of `.sql`.
pub(crate) static SQL: &[OptionGroup<SqlArgs>] = &[
    OptionGroup { title: ROWS, options: &row_options("-SortBy name SELECT name, pid FROM leaks") },
    OptionGroup { title: SCRIPTS, options: &table_options() },
];

/// What looks like an option of `.sql`.
pub(crate) fn sql_options() -> Vec<&'static dyn OptionSpec> {
    views(SQL).into_iter().flat_map(|group| group.options).collect()
}
