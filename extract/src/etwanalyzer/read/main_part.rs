//! What the main part says of the session and the processes.

use handlescope_model::SCHEMA_VERSION;

use super::super::records::{Header, Main, ProcessRecord};
use super::time::Time;

impl Main {
    pub(super) fn processes(&self) -> &[ProcessRecord] {
        self.processes.as_deref().unwrap_or_default()
    }

    /// Whether a version of this program has written the extract whose tables are known here.
    pub(super) fn is_own(&self) -> bool {
        let version = self.own.trace.as_ref().map(|trace| trace.schema_version);
        version.is_some_and(|version| version <= SCHEMA_VERSION)
            && self.own.processes.0.len() <= self.processes().len()
    }

    /// Whether a newer version has written it: its tables are not read, the rest is.
    pub(super) fn is_newer(&self) -> bool {
        self.own.trace.as_ref().is_some_and(|trace| trace.schema_version > SCHEMA_VERSION)
    }
}

impl Header {
    /// The version of the log file format.
    pub(super) fn format(&self) -> Option<String> {
        Some(format!("{}.{}", self.sub_version?, self.sub_minor_version?))
    }
}

impl ProcessRecord {
    pub(super) fn pid(&self) -> u32 {
        self.pid.unwrap_or_default() as u32
    }

    pub(super) fn parent_pid(&self) -> u32 {
        self.parent_pid.unwrap_or_default() as u32
    }

    /// When it started, if that was seen.
    pub(super) fn seen_start(&self) -> Option<Time> {
        Time::of(&self.start).filter(|_| self.is_new != Some(false))
    }

    /// When it ended, if that was seen.
    pub(super) fn seen_end(&self) -> Option<Time> {
        Time::of(&self.end).filter(|_| self.has_ended != Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::Fill;
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
        assert!(Time::of(&main.start).is_some() && main.processes.is_some());
    }

    #[test]
    fn an_old_process_has_less_and_a_new_one_more() {
        let main = main(
            r#"{"Processes":[
                {"ProcessID":4,"StartTime":"0001-01-01T00:00:00+00:00","StartStopTags":"x"},
                {"ProcessID":5,"ParentPid":-1,"ReturnCode":-1073741819,"IsNew":true,"HasEnded":true,
                 "EndTime":"2024-05-10T12:46:34+02:00","CmdLine":null,"Brand":{"New":[1]}}]}"#,
        );
        let [old, new] = main.processes() else { panic!("two processes") };
        assert_eq!((old.pid(), old.seen_start(), old.seen_end()), (4, None, None));
        assert_eq!((new.parent_pid(), new.exit_code), (u32::MAX, Some(-1_073_741_819)));
        assert!(new.seen_end().is_some() && new.command_line.is_none());
    }
}
