//! What is said of the process or thread that handles refer to.

use handlescope_model::Untrusted;
use handlescope_query::{Target, TargetEnd};

use super::ProcessStyle;
use crate::time::TraceClock;

/// How targets are written.
pub struct TargetStyle<'a> {
    pub processes: &'a ProcessStyle,
    pub clock: &'a TraceClock,
}

impl TargetStyle<'_> {
    /// `child.exe(900), started 0.010000 by app.exe(700), ended 0.040000 with 5`, of a thread also
    /// ` in app.exe!run` after what started it; `unknown` of an unknown one.
    pub fn line(&self, target: Option<&Target>) -> String {
        let Some(target) = target else { return "unknown".to_owned() };
        let mut parts = vec![self.label(target)];
        let by = target.started_by.as_ref().map(|by| format!(" by {}", self.processes.label(by)));
        let function = target.start_function.as_ref();
        let function = function.map(|function| format!(" in {}", Untrusted(function)));
        parts.push([Some(self.start(target)), by, function].into_iter().flatten().collect());
        let code = target.exit_code.map(|code| format!(" with {code}"));
        parts.push(format!("{}{}", self.end(target), code.unwrap_or_default()));
        parts.join(", ")
    }

    /// `child.exe(900)`, or `thread 7 of child.exe(900)`.
    pub fn label(&self, target: &Target) -> String {
        let process = self.processes.label(&target.process);
        match target.tid {
            Some(tid) => format!("thread {tid} of {process}"),
            None => process,
        }
    }

    fn start(&self, target: &Target) -> String {
        match target.start_ns {
            Some(start) => format!("started {}", self.clock.at(start)),
            None if target.is_complete => "started before the trace".to_owned(),
            None => "start unknown".to_owned(),
        }
    }

    fn end(&self, target: &Target) -> String {
        match target.end {
            TargetEnd::At(end) => format!("ended {}", self.clock.at(end)),
            TargetEnd::Ended => "ended".to_owned(),
            TargetEnd::Running => "still running".to_owned(),
            TargetEnd::Unknown => "end unknown".to_owned(),
        }
    }
}
