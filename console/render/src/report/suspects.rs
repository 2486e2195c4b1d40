//! The table of suspects, with the same lines as `.why` and the cause.

use serde::Serialize;

use crate::text::{StackStyle, TITLES, cause, cells, used_columns};
use handlescope_query::Suspect;

/// Number of columns.
const COLUMNS: usize = TITLES.len() + 1;

/// Headings, and the member of a suspect with the number that the script sorts by; `None` sorts by text.
const HEADINGS: [(&str, Option<&str>); COLUMNS] = [
    ("Rank", Some("rank")),
    (TITLES[1], Some("amount")),
    (TITLES[2], Some("rate")),
    (TITLES[3], None),
    (TITLES[4], None),
    (TITLES[5], None),
    (TITLES[6], None),
    ("Cause", None),
];

/// Index of the function column.
pub const FUNCTION: usize = 6;

/// The texts of a suspect, one for each column.
pub type SuspectLine = [String; COLUMNS];

/// A column for the script to draw.
#[derive(Serialize)]
pub struct SuspectColumn {
    /// Its index in a line.
    pub at: usize,
    pub title: &'static str,
    /// The member that the script sorts by.
    by: Option<&'static str>,
    /// Whether it links to the details.
    is_link: bool,
}

/// Returns the line of a suspect.
pub fn line(suspect: &Suspect, stacks: &StackStyle<'_>) -> SuspectLine {
    let explains = suspect.diagnoses.iter().find(|diagnosis| diagnosis.explains());
    let cause = explains.map(|diagnosis| cause(stacks, diagnosis, suspect.program()));
    let [rank, leaked, growth, bars, type_name, process, function] = cells(suspect, false);
    [rank, leaked, growth, bars, type_name, process, function, cause.unwrap_or_default()]
}

/// Returns the columns that have text in at least one line.
pub fn columns(lines: &[SuspectLine]) -> Vec<SuspectColumn> {
    let used = used_columns(lines);
    let headings = HEADINGS.into_iter().enumerate().zip(used).filter(|(_, is_used)| *is_used);
    let column = |((at, (title, by)), _)| SuspectColumn {
        at,
        title,
        by,
        is_link: at == 0 || at == FUNCTION,
    };
    headings.map(column).collect()
}
