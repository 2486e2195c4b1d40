//! Machine, build and process that rows are of.

use crate::dataset::column::RowColumn;

/// Digits of each number in a build that sorts as text.
const ORDER_DIGITS: usize = 10;

/// Build of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    pub name: String,
    /// The name with numbers of equal length, so that builds sort as text.
    pub order: String,
}

impl Build {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), order: sortable(name) }
    }

    /// Build of a file version, whose text may go on behind the numbers; `None` where it has none.
    pub fn of_file_version(version: &str) -> Option<Self> {
        let numbers = version.split_whitespace().next()?;
        let is_version = numbers.starts_with(|first: char| first.is_ascii_digit());
        is_version.then(|| Self::new(numbers))
    }
}

/// A text whose numbers have equal length.
fn sortable(name: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for letter in name.chars().map(Some).chain([None]) {
        match letter {
            Some(digit) if digit.is_ascii_digit() => digits.push(digit),
            letter => {
                if !digits.is_empty() {
                    let number = digits.trim_start_matches('0');
                    text.extend(std::iter::repeat_n(
                        '0',
                        ORDER_DIGITS.saturating_sub(number.len()),
                    ));
                    text.push_str(number);
                    digits.clear();
                }
                text.extend(letter);
            }
        }
    }
    text
}

/// Machine and build that a row is of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'t> {
    pub machine: Option<&'t str>,
    pub build: Option<&'t Build>,
}

/// Process that a row is of.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'t> {
    pub place: Place<'t>,
    /// Executable.
    pub process: &'t str,
    /// Row of the process in its trace.
    pub number: Option<i32>,
    pub pid: Option<i64>,
}

/// Rows that are of a machine and a build.
pub trait Placed {
    fn place(&self) -> &Place<'_>;
}

/// Rows that are of a process.
pub trait Owned {
    fn owner(&self) -> &Owner<'_>;
}

impl<R: Owned> Placed for R {
    fn place(&self) -> &Place<'_> {
        &self.owner().place
    }
}

pub fn place_columns<R: Placed>() -> Vec<RowColumn<R>> {
    vec![
        RowColumn::text("machine", "Computer that recorded the trace.", |row| row.place().machine),
        RowColumn::text(
            "build",
            "Build of the program: as it was given, or else the file version of the executable.",
            |row| row.place().build.map(|build| build.name.as_str()),
        ),
        RowColumn::text(
            "build_order",
            "The build with numbers of equal length, so that builds sort as text.",
            |row| row.place().build.map(|build| build.order.as_str()),
        ),
    ]
}

pub fn owner_columns<R: Owned>() -> Vec<RowColumn<R>> {
    let mut columns = place_columns();
    columns.extend([
        RowColumn::text("process", "Executable of the process, as in app.exe.", |row: &R| {
            Some(row.owner().process).filter(|name| !name.is_empty())
        }),
        RowColumn::int(
            "process_number",
            "Number of the process in its trace: ids are reused.",
            |row: &R| row.owner().number,
        ),
        RowColumn::big_int("pid", "Process id.", |row: &R| row.owner().pid),
    ]);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_sort_as_text() {
        let builds = ["1.9.0", "1.10.0", "1.10.0-beta2", "1.10.0-beta10", "2"];
        let orders = builds.map(|build| Build::new(build).order);
        assert!(orders.is_sorted(), "{orders:?}");
        assert_eq!(orders[0], "0000000001.0000000009.0000000000");
        let windows = Build::of_file_version("10.0.17763.1 (WinBuild.160101.0800)");
        assert_eq!(windows.map(|build| build.name).as_deref(), Some("10.0.17763.1"));
        assert_eq!(Build::of_file_version("unknown"), None);
    }
}
