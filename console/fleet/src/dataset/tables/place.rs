//! Columns that rows of several tables share: machine and build, process, and what it acquired.

use handlescope_model::ProcessIdx;

use crate::dataset::column::columns;
use handlescope_query::StackIdentity;

/// Number of digits that each number in a sortable build is padded to.
const ORDER_DIGITS: usize = 10;

/// The build of a program.
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

    /// Returns the build in a file version; text after the numbers is ignored. `None` if there are no numbers.
    pub fn from_file_version(version: &str) -> Option<Self> {
        let numbers = version.split_whitespace().next()?;
        let is_version = numbers.starts_with(|first: char| first.is_ascii_digit());
        is_version.then(|| Self::new(numbers))
    }
}

/// Pads the numbers in a text to equal length.
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
#[derive(Debug, Clone, Copy)]
pub struct Place<'t> {
    pub machine: Option<&'t str>,
    pub build: Option<&'t Build>,
}

columns! {
    Place<'t>: place {
        /// Computer that recorded the trace.
        machine: Option<&'t str> = place.machine;
        /// Build of the program: as given, or else the file version of the executable.
        build: Option<&'t str> = place.build.map(|build| build.name.as_str());
        /// The build with numbers of equal length, so that builds sort as text.
        build_order: Option<&'t str> = place.build.map(|build| build.order.as_str());
    }
}

/// Process that a row is of.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'t> {
    pub place: Place<'t>,
    pub name: &'t str,
    pub row: Option<ProcessIdx>,
    pub pid: Option<u32>,
}

columns! {
    Owner<'t>: owner {
        place: Place<'t> = owner.place;
        /// Executable of the process, as in app.exe.
        process: Option<&'t str> = Some(owner.name).filter(|name| !name.is_empty());
        /// Number of the process in its trace: ids are reused.
        process_number: Option<i32> = owner.row.and_then(|row| i32::try_from(row.row()).ok());
        /// Process id.
        pid: Option<i64> = owner.pid.map(i64::from);
    }
}

/// What is acquired.
#[derive(Debug, Clone, Copy)]
pub struct What<'t> {
    pub kind: &'t str,
    pub type_name: &'t str,
    pub allocator: Option<&'t str>,
    pub stack: Option<&'t StackIdentity>,
}

columns! {
    What<'t>: what {
        /// handle, view, heap, commit, reserve, resource, gdi or user.
        kind: &'t str = what.kind;
        /// Type of the object, as in Event; else the kind.
        r#type: &'t str = what.type_name;
        /// Allocator, if every trace names it.
        allocator: Option<&'t str> = what.allocator;
        /// Identity of the stack that acquired it: 128-bit hash of the program's functions.
        stack: Option<&'t str> = what.stack.map(|stack| stack.id.as_str());
        /// The program's first function on it, as in app.exe!Cache::Get.
        function: Option<&'t str> = what.stack.map(|stack| stack.function.as_str());
    }
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
        let windows = Build::from_file_version("10.0.17763.1 (WinBuild.160101.0800)");
        assert_eq!(windows.map(|build| build.name).as_deref(), Some("10.0.17763.1"));
        assert_eq!(Build::from_file_version("unknown"), None);
    }
}
