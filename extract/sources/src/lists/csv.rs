//! Parses lists of handles as CSV, from `handle.exe -v`, System Informer and Process Hacker.
//!
//! `handle.exe` quotes nothing, so a name may contain commas; it is the last value. When searching for a name, its
//! titles are `Process,PID,User,Handle,Type,Share Flags,Name,Access`, but its rows have process, pid, type, user,
//! handle and name. System Informer quotes every value, and writes the visible columns in their order.

use super::grammar::{HandleLine, hex, is_type};

/// A row of a table: the handle, and its process if the table has it.
#[derive(Debug, PartialEq, Eq)]
pub struct CsvRow {
    pub process: Option<(String, u32)>,
    pub handle: Option<u64>,
    pub type_name: String,
    pub name: String,
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvLayout {
    separator: char,
    /// Whether this is output of `handle.exe`, which quotes nothing.
    is_plain: bool,
    columns: usize,
    process: Option<usize>,
    pid: Option<usize>,
    kind: usize,
    name: Option<usize>,
    handle: Option<usize>,
}

impl CsvLayout {
    /// Parses the line of titles; `None` for any other line.
    pub fn from_titles(line: &str) -> Option<Self> {
        /// Maximum length of that line, and the end of a title every table has.
        const MAX_LENGTH: usize = 1 << 10;
        const TITLE: &str = "ype";
        if line.len() > MAX_LENGTH || !line.contains(TITLE) {
            return None;
        }
        [',', ';', '\t'].into_iter().find_map(|separator| {
            let titles: Vec<String> = values(line, separator)
                .into_iter()
                .map(|title| title.trim().to_ascii_lowercase())
                .collect();
            let at =
                |names: &[&str]| titles.iter().position(|title| names.contains(&title.as_str()));
            let kind = at(&["type", "object type"])?;
            let handle = at(&["handle", "handle value"]);
            let name = at(&["name", "object name", "best object name"]);
            let process = at(&["process", "process name"]);
            let pid = at(&["pid", "process id"]);
            let is_list = handle.is_some() && (name.is_some() || process.is_some())
                || name.is_some()
                    && at(&["granted access", "granted access (symbolic)", "object address"])
                        .is_some();
            let is_plain =
                (process, pid) == (Some(0), Some(1)) && !line.contains('"') && separator == ',';
            is_list.then_some(Self {
                separator,
                is_plain,
                columns: titles.len(),
                process,
                pid,
                kind,
                name,
                handle,
            })
        })
    }

    /// Parses a line of values; `None` if it does not fit.
    pub fn row(&self, line: &str) -> Option<CsvRow> {
        if self.is_plain { self.plain_row(line) } else { self.quoted_row(line) }
    }

    fn quoted_row(&self, line: &str) -> Option<CsvRow> {
        let values = values(line, self.separator);
        let at = |column: Option<usize>| values.get(column?).map(|value| value.trim());
        let (type_name, name) = (at(Some(self.kind))?, at(self.name).unwrap_or_default());
        let handle = at(self.handle).filter(|handle| !handle.is_empty());
        let handle = match handle {
            Some(handle) => Some(hex(handle)?),
            None if self.handle.is_some() => return None,
            None => None,
        };
        let pid = at(self.pid).and_then(|pid| pid.parse().ok());
        let process = at(self.process).or(pid.map(|_| "")).map(|process| named(process, pid));
        is_type(type_name).then(|| CsvRow {
            process,
            handle,
            type_name: type_name.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Parses a row of `handle.exe`. The program's name may contain commas, too, so the pid is the first number before
    /// a handle.
    fn plain_row(&self, line: &str) -> Option<CsvRow> {
        // Offsets of type, handle and name from the pid.
        let (kind, handle, name) = match self.columns {
            5 => (1, 2, 3),
            7 => (3, 2, 5),
            8 => (1, 3, 4),
            _ => return None,
        };
        let values: Vec<&str> = line.split(',').collect();
        let pid_at = (1..values.len()).find(|at| {
            let is = |offset: usize, is: fn(&str) -> bool| {
                values.get(at + offset).is_some_and(|value| is(value.trim()))
            };
            is(0, |pid| pid.parse::<u32>().is_ok())
                && is(kind, |kind| is_type(kind) || kind.starts_with('<'))
                && is(handle, |handle| handle.starts_with("0x") && hex(handle).is_some())
        })?;
        let value = |offset: usize| values.get(pid_at + offset).copied().unwrap_or_default().trim();
        let program = values.get(..pid_at)?.join(",");
        let name = values.get(pid_at + name..).unwrap_or_default().join(",");
        let type_name = Some(value(kind)).filter(|name| is_type(name)).unwrap_or_default();
        Some(CsvRow {
            process: Some((program.trim().to_owned(), value(0).parse().ok()?)),
            handle: hex(value(handle)),
            type_name: type_name.to_owned(),
            name: name.trim().to_owned(),
        })
    }
}

impl CsvRow {
    /// Returns the handle as a row of a list; its value is 0 if unknown.
    pub fn row(&self) -> HandleLine<'_> {
        let handle = self.handle.unwrap_or_default();
        HandleLine { handle, type_name: &self.type_name, name: &self.name }
    }
}

/// Returns program and pid of `notepad.exe (1234)`, or of a program with the pid in its own column.
fn named(process: &str, pid: Option<u32>) -> (String, u32) {
    let inside = process
        .strip_suffix(')')
        .and_then(|process| process.rsplit_once(" ("))
        .and_then(|(name, pid)| Some((name, pid.parse().ok()?)));
    let (name, in_name) = inside.map_or((process, None), |(name, pid)| (name, Some(pid)));
    (name.trim().to_owned(), pid.or(in_name).unwrap_or_default())
}

/// Splits a line into values, some of which may be quoted.
fn values(line: &str, separator: char) -> Vec<String> {
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                value.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if value.trim().is_empty() => {
                value.clear();
                is_quoted = true;
            }
            character if character == separator && !is_quoted => {
                values.push(std::mem::take(&mut value));
            }
            character => value.push(character),
        }
    }
    values.push(value);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(titles: &str, line: &str) -> Option<CsvRow> {
        CsvLayout::from_titles(titles).expect("titles").row(line)
    }

    fn row(process: &str, pid: u32, handle: u64, type_name: &str, name: &str) -> Option<CsvRow> {
        Some(CsvRow {
            process: Some((process.to_owned(), pid)),
            handle: Some(handle),
            type_name: type_name.to_owned(),
            name: name.to_owned(),
        })
    }

    #[test]
    fn the_three_tables_of_handle_exe_are_read() {
        let expected = row("a.exe", 42, 0x54, "File", r"D:\a, b\c.txt");
        let all = "Process,PID,User,Handle,Type,Share Flags,Name";
        assert_eq!(read(all, r"a.exe,42,ME\user,0x00000054,File,RW-,D:\a, b\c.txt "), expected);
        let found = "Process,PID,Type,Handle,Name";
        assert_eq!(read(found, r"a.exe,42,File,0x00000054,D:\a, b\c.txt "), expected);
        let of_users = "Process,PID,User,Handle,Type,Share Flags,Name,Access";
        assert_eq!(read(of_users, r"a.exe,42,File,ME\user,0x00000054,D:\a, b\c.txt"), expected);
        assert_eq!(read(all, r"a,7.exe,42,ME\u,0x4,Event,,"), row("a,7.exe", 42, 4, "Event", ""));
        assert_eq!(read(all, "Error obtaining handle information: Access denied"), None);
        assert_eq!(read(all, "a.exe,42,me,0x4,<Unknown type>,,"), row("a.exe", 42, 4, "", ""));
    }

    #[test]
    fn a_table_of_system_informer_has_any_of_its_columns() {
        let titles = "\"Process\",\"Type\",\"Name\",\"Handle\"";
        let line = "\"a.exe (42)\",\"File\",\"C:\\a \"\"b\"\", c\",\"0x54\"";
        assert_eq!(read(titles, line), row("a.exe", 42, 0x54, "File", "C:\\a \"b\", c"));
        let own = "\"Type\",\"Name\",\"Granted access (symbolic)\",\"Handle\"";
        let row = read(own, "\"Event\",\"\",\"Full control\",\"0x8\"").unwrap();
        assert_eq!((row.process, row.handle, row.type_name.as_str()), (None, Some(8), "Event"));
        let short = "\"Type\",\"Name\",\"Granted access (symbolic)\"";
        let row = read(short, "\"Key\",\"HKLM\",\"Read\"").unwrap();
        assert_eq!((row.handle, row.name.as_str()), (None, "HKLM"));
        assert_eq!(read("Type;Name;Handle", "File;C:\\a;0x4").unwrap().handle, Some(4));
        assert_eq!(read(titles, "\"a.exe (42)\",\"File\",\"C:\\a\",\"x\""), None);
    }

    #[test]
    fn other_tables_have_other_titles() {
        for line in ["Type,Name", "a,b,c", "", "Process,PID,Priority", "Name,Size,Type", "handle"] {
            assert_eq!(CsvLayout::from_titles(line), None, "{line}");
        }
    }
}
