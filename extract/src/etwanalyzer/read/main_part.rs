//! The main part: machine, session and processes.

use handlescope_model::SCHEMA_VERSION;
use handlescope_model::tables::{EventCounts, Processes, TraceInfo, Warnings};
use serde::de::MapAccess;

use super::super::own::{OWN, OwnStartHandle};
use super::json::{Each, EachRow, Fill, Flag, Int, Record, Text};
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
    pub(super) cpu_mhz: Option<u32>,
    pub(super) memory_mb: Option<u32>,
    pub(super) start: Option<Time>,
    pub(super) end: Option<Time>,
    pub(super) boot: Option<Time>,
    pub(super) header: Header,
    pub(super) processes: Vec<ProcessRecord>,
    /// Whether there was a list of processes, if only an empty one.
    pub(super) has_processes: bool,
    /// What this program wrote besides.
    pub(super) own: OwnMain,
}

/// The tables as this program wrote them.
#[derive(Debug, Default)]
pub(super) struct OwnMain {
    pub(super) trace: Option<TraceInfo>,
    pub(super) processes: Processes,
    pub(super) event_counts: EventCounts,
    pub(super) warnings: Warnings,
    pub(super) start_handles: Vec<OwnStartHandle>,
}

impl Main {
    /// Whether a version of this program has written the extract whose tables are known here.
    pub(super) fn is_own(&self) -> bool {
        let version = self.own.trace.as_ref().map(|trace| trace.schema_version);
        version.is_some_and(|version| version <= SCHEMA_VERSION)
            && self.own.processes.len() <= self.processes.len()
    }

    /// Whether a newer version has written it: its tables are not read, the rest is.
    pub(super) fn is_newer(&self) -> bool {
        self.own.trace.as_ref().is_some_and(|trace| trace.schema_version > SCHEMA_VERSION)
    }
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
    pub(super) timer_resolution: Option<u32>,
    pub(super) maximum_file_size: Option<u32>,
    sub_version: Option<u32>,
    sub_minor_version: Option<u32>,
}

impl Header {
    /// The version of the log file format.
    pub(super) fn format(&self) -> Option<String> {
        Some(format!("{}.{}", self.sub_version?, self.sub_minor_version?))
    }
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
        "CPUSpeedMHz",
        "MemorySizeMB",
        "SessionStart",
        "SessionEnd",
        "BootTime",
        "TraceHeader",
        "Processes",
        OWN,
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
            "MemorySizeMB" => self.memory_mb = map.next_value::<Int>()?.u32(),
            "CPUSpeedMHz" => self.cpu_mhz = map.next_value::<Int>()?.u32(),
            "SessionStart" => self.start = time(map)?,
            "SessionEnd" => self.end = time(map)?,
            "BootTime" => self.boot = time(map)?,
            "TraceHeader" => {
                map.next_value_seed(Fill(&mut self.header))?;
            }
            OWN => {
                map.next_value_seed(Fill(&mut self.own))?;
            }
            _ => {
                self.has_processes = true;
                map.next_value_seed(Each::new(|process| self.processes.push(process)))?;
            }
        }
        Ok(())
    }
}

impl<'de> Record<'de> for OwnMain {
    const MEMBERS: &'static [&'static str] =
        &["Trace", "Processes", "EventCounts", "Warnings", "StartHandles"];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "Trace" => {
                self.trace = map.next_value()?;
                Ok(())
            }
            "Processes" => map.next_value_seed(EachRow::new(|row| self.processes.push(row))),
            "EventCounts" => map.next_value_seed(EachRow::new(|row| self.event_counts.push(row))),
            "Warnings" => map.next_value_seed(EachRow::new(|row| self.warnings.push(row))),
            _ => map.next_value_seed(EachRow::new(|row| self.start_handles.push(row))),
        }
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
        "TimerResolution",
        "MaximumFileSizeMB",
        "SubVersion",
        "SubMinorVersion",
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
            "TimerResolution" => self.timer_resolution = map.next_value::<Int>()?.u32(),
            "MaximumFileSizeMB" => self.maximum_file_size = map.next_value::<Int>()?.u32(),
            "SubVersion" => self.sub_version = map.next_value::<Int>()?.u32(),
            "SubMinorVersion" => self.sub_minor_version = map.next_value::<Int>()?.u32(),
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
}
