//! Processes with their start and end, if known.

use handlescope_model::tables::TraceInfo;

use crate::time::{Duration, TraceClock};
use handlescope_model::Untrusted;
use handlescope_query::ProcessInfo;
use handlescope_session::settings::Display;
use handlescope_session::values::{ProcessFormat, TimeDigits};

/// The style of the processes of a trace.
pub struct ProcessStyle {
    suffix: SuffixStyle,
    plain_names: bool,
}

enum SuffixStyle {
    None,
    Marks,
    Times(TraceClock, TimeDigits),
}

impl ProcessStyle {
    pub fn new(info: &TraceInfo, display: &Display) -> Self {
        let digits = display.time_digits;
        let suffix = match display.process_format {
            ProcessFormat::None => SuffixStyle::None,
            ProcessFormat::Marks => SuffixStyle::Marks,
            ProcessFormat::Times(format) => {
                SuffixStyle::Times(TraceClock::new(info, format, digits), digits)
            }
        };
        Self { suffix, plain_names: display.plain_process_names }
    }

    pub fn name<'a>(&self, process: &'a ProcessInfo) -> &'a str {
        process.shown_name(self.plain_names)
    }

    /// Returns `name.exe` with its start and end.
    pub fn marked_name(&self, process: &ProcessInfo) -> String {
        format!("{}{}", Untrusted(self.name(process)), self.suffix(process))
    }

    /// Returns `name.exe(pid)`.
    pub fn label(&self, process: &ProcessInfo) -> String {
        Untrusted(&process.shown_label(self.plain_names)).to_string()
    }

    /// Returns `name.exe(pid)` with its start and end.
    pub fn marked(&self, process: &ProcessInfo) -> String {
        format!("{}{}", self.label(process), self.suffix(process))
    }

    /// Returns start and end of a process, to follow its name; empty if it ran all the time.
    pub fn suffix(&self, process: &ProcessInfo) -> String {
        let (clock, digits) = match &self.suffix {
            SuffixStyle::None => return String::new(),
            SuffixStyle::Marks => return process.marks().to_owned(),
            SuffixStyle::Times(clock, digits) => (clock, *digits),
        };
        let ProcessInfo { start_ns, end_ns, .. } = *process;
        let duration = start_ns.zip(end_ns).map(|(start, end)| end.saturating_sub(start));
        let start = start_ns.map(|start| format!(" +{}", clock.at(start)));
        let end = end_ns.map(|end| format!(" - {}", clock.at(end)));
        let duration = duration.map(|ns| format!(" {}", Duration { ns, digits }));
        [start, end, duration].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_session::settings::DisplayArgs;
    use handlescope_session::terminal::Screen;
    use handlescope_session::values::TimeFormat;

    fn shown(format: Option<ProcessFormat>, start_ns: Option<i64>, end_ns: Option<i64>) -> String {
        let args = DisplayArgs { process_format: format, ..Default::default() };
        let display = DisplayArgs::default().display(&args, Screen::PLAIN);
        let name = "EventLeak.exe".to_owned();
        let process = ProcessInfo { pid: 7, name, start_ns, end_ns, ..Default::default() };
        ProcessStyle::new(&TraceInfo::default(), &display).marked(&process)
    }

    #[test]
    fn start_and_end_are_marks_times_or_nothing() {
        let (start, end) = (Some(3_120_001_000), Some(3_152_345_000));
        let seconds = Some(ProcessFormat::Times(TimeFormat::Seconds));
        assert_eq!(shown(None, start, end), "EventLeak.exe(7) +-");
        assert_eq!(shown(None, None, end), "EventLeak.exe(7) -");
        assert_eq!(
            shown(seconds, start, end),
            "EventLeak.exe(7) +3.120001 - 3.152345 0.00:00:00.032344"
        );
        assert_eq!(shown(seconds, start, None), "EventLeak.exe(7) +3.120001");
        assert_eq!(shown(seconds, None, end), "EventLeak.exe(7) - 3.152345");
        assert_eq!(shown(seconds, None, None), "EventLeak.exe(7)");
        assert_eq!(shown(Some(ProcessFormat::None), start, end), "EventLeak.exe(7)");
    }
}
