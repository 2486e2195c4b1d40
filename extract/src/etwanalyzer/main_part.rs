//! The main part: machine, session and processes.

use serde::de::MapAccess;

use super::json::{Each, Fill, Flag, Int, Record, Text};
use super::time::Time;

/// What is read of the main part.
#[derive(Debug, Default)]
pub(super) struct Main {
    pub(super) source: Option<String>,
    pub(super) options: Option<String>,
    pub(super) computer: Option<String>,
    pub(super) product: Option<String>,
    pub(super) build: Option<String>,
    pub(super) version: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) start: Option<Time>,
    pub(super) end: Option<Time>,
    pub(super) boot: Option<Time>,
    pub(super) header: Header,
    pub(super) processes: Vec<ProcessRecord>,
    /// Whether there was a list of processes, if only an empty one.
    pub(super) has_processes: bool,
}

/// What is read of the trace header.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) buffer_size: Option<u32>,
    pub(super) log_file_mode: Option<String>,
    pub(super) buffers_written: Option<u64>,
    pub(super) events_lost: Option<u64>,
    pub(super) buffers_lost: Option<u64>,
    pub(super) build: Option<u32>,
}

/// What is read of a process.
#[derive(Debug, Default)]
pub(super) struct ProcessRecord {
    pub(super) pid: u32,
    pub(super) name: Option<String>,
    pub(super) command_line: Option<String>,
    pub(super) start: Option<Time>,
    pub(super) end: Option<Time>,
    pub(super) identity: Option<String>,
    pub(super) session_id: Option<u32>,
    pub(super) exit_code: Option<i32>,
    pub(super) parent_pid: u32,
    is_new: Option<bool>,
    has_ended: Option<bool>,
}

impl ProcessRecord {
    /// When it started, if that was seen.
    pub(super) fn seen_start(&self) -> Option<Time> {
        self.start.filter(|_| self.is_new != Some(false))
    }

    /// When it ended, if that was seen.
    pub(super) fn seen_end(&self) -> Option<Time> {
        self.end.filter(|_| self.has_ended != Some(false))
    }
}

/// A time; one that cannot be read is unknown.
fn time<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Time>, A::Error> {
    Ok(map.next_value::<Text>()?.0.as_deref().and_then(Time::parse))
}

impl<'de> Record<'de> for Main {
    const MEMBERS: &'static [&'static str] = &[
        "SourceETLFileName",
        "UsedExtractOptions",
        "ComputerName",
        "OSName",
        "OSBuild",
        "OSVersion",
        "NumberOfProcessors",
        "SessionStart",
        "SessionEnd",
        "BootTime",
        "TraceHeader",
        "Processes",
    ];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "SourceETLFileName" => self.source = map.next_value::<Text>()?.0,
            "UsedExtractOptions" => self.options = map.next_value::<Text>()?.0,
            "ComputerName" => self.computer = map.next_value::<Text>()?.0,
            "OSName" => self.product = map.next_value::<Text>()?.0,
            "OSBuild" => self.build = map.next_value::<Text>()?.0,
            "OSVersion" => self.version = map.next_value::<Text>()?.0,
            "NumberOfProcessors" => self.cpus = map.next_value::<Int>()?.u32(),
            "SessionStart" => self.start = time(map)?,
            "SessionEnd" => self.end = time(map)?,
            "BootTime" => self.boot = time(map)?,
            "TraceHeader" => {
                map.next_value_seed(Fill(&mut self.header))?;
            }
            _ => {
                self.has_processes = true;
                map.next_value_seed(Each::new(|process| self.processes.push(process)))?;
            }
        }
        Ok(())
    }
}

impl<'de> Record<'de> for Header {
    const MEMBERS: &'static [&'static str] = &[
        "BufferSize",
        "LogFileMode",
        "BuffersWritten",
        "EventsLost",
        "BuffersLost",
        "ProviderVersion",
    ];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "BufferSize" => self.buffer_size = map.next_value::<Int>()?.u32(),
            "LogFileMode" => self.log_file_mode = map.next_value::<Text>()?.0,
            "BuffersWritten" => self.buffers_written = map.next_value::<Int>()?.u64(),
            "EventsLost" => self.events_lost = map.next_value::<Int>()?.u64(),
            "BuffersLost" => self.buffers_lost = map.next_value::<Int>()?.u64(),
            _ => self.build = map.next_value::<Int>()?.u32(),
        }
        Ok(())
    }
}

impl<'de> Record<'de> for ProcessRecord {
    const MEMBERS: &'static [&'static str] = &[
        "ProcessID",
        "ProcessName",
        "CmdLine",
        "StartTime",
        "EndTime",
        "Identity",
        "SessionId",
        "HasEnded",
        "IsNew",
        "ReturnCode",
        "ParentPid",
    ];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        // Signed 32 bits and unsigned ones are the same bits here.
        let bits = |value: Option<i64>| value.map(|value| value as u32);
        match name {
            "ProcessID" => self.pid = bits(map.next_value::<Int>()?.0).unwrap_or_default(),
            "ProcessName" => self.name = map.next_value::<Text>()?.0,
            "CmdLine" => self.command_line = map.next_value::<Text>()?.0,
            "StartTime" => self.start = time(map)?,
            "EndTime" => self.end = time(map)?,
            "Identity" => {
                self.identity = map.next_value::<Text>()?.0.filter(|text| !text.is_empty());
            }
            "SessionId" => self.session_id = map.next_value::<Int>()?.u32(),
            "HasEnded" => self.has_ended = map.next_value::<Flag>()?.0,
            "IsNew" => self.is_new = map.next_value::<Flag>()?.0,
            "ReturnCode" => {
                self.exit_code = bits(map.next_value::<Int>()?.0).map(|bits| bits as i32);
            }
            _ => self.parent_pid = bits(map.next_value::<Int>()?.0).unwrap_or_default(),
        }
        Ok(())
    }
}

/// The bits of a log file mode that is written as names.
pub(super) fn log_file_mode(text: &str) -> u32 {
    const NAMES: [(&str, u32); 20] = [
        ("FILE_MODE_SEQUENTIAL", 0x1),
        ("FILE_MODE_CIRCULAR", 0x2),
        ("FILE_MODE_APPEND", 0x4),
        ("FILE_MODE_NEWFILE", 0x8),
        ("FILE_MODE_PREALLOCATE", 0x20),
        ("NONSTOPPABLE_MODE", 0x40),
        ("SECURE_MODE", 0x80),
        ("REAL_TIME_MODE", 0x100),
        ("DELAY_OPEN_FILE_MODE", 0x200),
        ("BUFFERING_MODE", 0x400),
        ("PRIVATE_LOGGER_MODE", 0x800),
        ("ADD_HEADER_MODE", 0x1000),
        ("USE_GLOBAL_SEQUENCE", 0x4000),
        ("USE_LOCAL_SEQUENCE", 0x8000),
        ("RELOG_MODE", 0x1_0000),
        ("PRIVATE_IN_PROC", 0x2_0000),
        ("USE_PAGED_MEMORY", 0x100_0000),
        ("SYSTEM_LOGGER_MODE", 0x200_0000),
        ("INDEPENDENT_SESSION_MODE", 0x800_0000),
        ("NO_PER_PROCESSOR_BUFFERING", 0x1000_0000),
    ];
    let flag = |name: &str| match name.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or_default(),
        None => NAMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, bits)| *bits),
    };
    text.split(',').map(|name| flag(name.trim())).fold(0, |mode, bits| mode | bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeSeed;

    fn main(text: &str) -> Main {
        let mut main = Main::default();
        Fill(&mut main)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        main
    }

    #[test]
    fn the_smallest_file_is_enough() {
        let main = main(r#"{"SessionStart":"2024-05-10T12:46:34+02:00","Processes":[]}"#);
        assert!(main.start.is_some() && main.has_processes);
    }

    #[test]
    fn an_old_process_has_less_and_a_new_one_more() {
        let main = main(
            r#"{"Processes":[
                {"ProcessID":4,"StartTime":"0001-01-01T00:00:00+00:00","StartStopTags":"x"},
                {"ProcessID":5,"ParentPid":-1,"ReturnCode":-1073741819,"IsNew":true,"HasEnded":true,
                 "EndTime":"2024-05-10T12:46:34+02:00","CmdLine":null,"Brand":{"New":[1]}}]}"#,
        );
        let [old, new] = main.processes.as_slice() else { panic!("two processes") };
        assert_eq!((old.pid, old.seen_start(), old.seen_end()), (4, None, None));
        assert_eq!((new.parent_pid, new.exit_code), (u32::MAX, Some(-1_073_741_819)));
        assert!(new.seen_end().is_some() && new.command_line.is_none());
    }

    #[test]
    fn the_names_of_a_mode_are_its_bits() {
        assert_eq!(log_file_mode("FILE_MODE_SEQUENTIAL, RELOG_MODE,0x80000000"), 0x8001_0001);
        assert_eq!(log_file_mode(""), 0);
    }
}
