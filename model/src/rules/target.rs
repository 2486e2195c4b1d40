//! Names of the processes and threads that handles of a dump refer to.

use std::fmt;

/// A process or thread that a handle of a dump refers to. A dump has no addresses of objects, so the object is named by this.
///
/// Displays as `process 42`, `thread 7 of process 42`, and with `, ended with 5` behind it after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedTarget {
    /// Process id.
    pub pid: u32,
    /// Thread id; `None` for the process itself.
    pub tid: Option<u32>,
    /// Exit code; `None` while it runs.
    pub exit_code: Option<i32>,
}

/// What stands between the ids and the exit code.
const ENDED: &str = ", ended with ";

impl NamedTarget {
    /// Reads the name of an object; `None` if it is no such name.
    pub fn parse(name: &str) -> Option<Self> {
        let (ids, exit_code) = match name.split_once(ENDED) {
            Some((ids, code)) => (ids, Some(code.parse().ok()?)),
            None => (name, None),
        };
        let (tid, process) = match ids.strip_prefix("thread ") {
            Some(rest) => {
                let (tid, process) = rest.split_once(" of ")?;
                (Some(tid.parse().ok()?), process)
            }
            None => (None, ids),
        };
        let pid = process.strip_prefix("process ")?.parse().ok()?;
        Some(Self { pid, tid, exit_code })
    }
}

impl fmt::Display for NamedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tid) = self.tid {
            write!(f, "thread {tid} of ")?;
        }
        write!(f, "process {}", self.pid)?;
        self.exit_code.map_or(Ok(()), |code| write!(f, "{ENDED}{code}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        for (tid, exit_code) in
            [(None, None), (Some(7), None), (None, Some(0)), (Some(7), Some(i32::MIN))]
        {
            let target = NamedTarget { pid: 42, tid, exit_code };
            assert_eq!(NamedTarget::parse(&target.to_string()), Some(target));
        }
        let ended = NamedTarget { pid: 42, tid: Some(7), exit_code: Some(5) };
        assert_eq!(ended.to_string(), "thread 7 of process 42, ended with 5");
    }

    #[test]
    fn other_names_are_no_targets() {
        for name in [
            "",
            "process",
            "process x",
            "thread 7",
            "owned by thread 7 of process 42",
            r"\BaseNamedObjects\process 42",
            "process 99999999999",
            "process 42, ended with ",
        ] {
            assert_eq!(NamedTarget::parse(name), None, "{name}");
        }
    }
}
