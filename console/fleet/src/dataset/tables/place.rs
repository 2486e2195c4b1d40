//! Columns that rows of several tables share: machine and build, process, and what it acquired.

use crate::dataset::column::columns;

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

columns! {
    /// Machine and build that a row is of.
    #[derive(Copy)]
    pub struct Place<'t> {
        /// Computer that recorded the trace.
        pub machine: Option<&'t str>,
        /// Build of the program: as given, or else the file version of the executable.
        pub build: Option<&'t str>,
        /// The build with numbers of equal length, so that builds sort as text.
        pub build_order: Option<&'t str>,
    }
}

columns! {
    /// Process that a row is of.
    #[derive(Copy)]
    pub struct Owner<'t> {
        pub place: Place<'t>,
        /// Executable of the process, as in app.exe.
        pub process: Option<&'t str>,
        /// Number of the process in its trace: ids are reused.
        pub process_number: Option<i32>,
        /// Process id.
        pub pid: Option<i64>,
    }
}

columns! {
    /// What is acquired.
    #[derive(Copy)]
    pub struct What<'t> {
        /// handle, view, heap, commit, reserve, resource, gdi or user.
        pub kind: &'t str,
        /// Type of the object, as in Event; else the kind.
        pub r#type: &'t str,
        /// Allocator, if every trace names it.
        pub allocator: Option<&'t str>,
        /// Identity of the stack that acquired it: 128-bit hash of the program's functions.
        pub stack: Option<&'t str>,
        /// The program's first function on it, as in app.exe!Cache::Get.
        pub function: Option<&'t str>,
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
