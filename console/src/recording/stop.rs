//! Conditions that end a recording: `pn PROCESSES handles > N`.

use std::fmt;

use handlescope_extract::etl::Event;
use handlescope_extract::live::{Inventory, LiveCounts};
use handlescope_model::Untrusted;
use handlescope_record::StopCondition;
use thiserror::Error;

use handlescope_session::filter::{FilterError, ProcessFilter};
use handlescope_session::grammar::split;
use handlescope_session::values::{CountedNoun, ValueError, number};

/// Why a text is not a condition.
#[derive(Debug, Error)]
pub enum StopError {
    #[error("use pn PROCESSES handles > N, as in 'pn leaky.exe handles > 5000'")]
    Form,
    #[error("handles: {0}")]
    Number(#[from] ValueError),
    #[error("pn: {0}")]
    Processes(#[from] FilterError),
}

/// Parses a condition. Names with spaces are in double quotes, as everywhere; processes are given as for `-pn`.
pub fn stop_condition(text: &str) -> Result<StopCondition, StopError> {
    let (measured, count) = text.rsplit_once('>').ok_or(StopError::Form)?;
    let tokens = split(measured);
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let [pn, processes, handles] = words.as_slice() else { return Err(StopError::Form) };
    let is_pn = pn.trim_start_matches('-').eq_ignore_ascii_case("pn");
    if !is_pn || !handles.eq_ignore_ascii_case("handles") {
        return Err(StopError::Form);
    }
    ProcessFilter::new(processes)?;
    Ok(StopCondition { processes: (*processes).to_owned(), handles_above: number(count.trim())? })
}

/// Checks conditions event by event.
pub struct StopWatch {
    conditions: Vec<(ProcessFilter, StopCondition)>,
    counts: LiveCounts,
}

/// A condition that is met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopTrigger {
    pub condition: StopCondition,
    /// The process that meets it; the name is empty if no event gave it.
    pub process: (String, u32),
    /// Number of open handles of the process.
    pub handles: u64,
}

impl fmt::Display for StopTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((name, pid), above) = (&self.process, self.condition.handles_above);
        write!(
            f,
            "{}({pid}) has {} open, more than {above}",
            Untrusted(name),
            CountedNoun(self.handles, "handle")
        )
    }
}

impl StopWatch {
    /// Watches for these conditions.
    ///
    /// # Errors
    /// If one of their filters is absurdly large.
    pub fn new(conditions: &[StopCondition]) -> Result<StopWatch, FilterError> {
        let conditions =
            conditions.iter().map(|c| Ok((ProcessFilter::new(&c.processes)?, c.clone())));
        let conditions = conditions.collect::<Result<_, _>>()?;
        Ok(StopWatch { conditions, counts: LiveCounts::default() })
    }

    /// Whether there is nothing to watch for.
    pub fn is_idle(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Learns the processes that were already running.
    pub fn know(&mut self, inventory: &Inventory) {
        inventory.older_processes().for_each(|(pid, name)| self.counts.name(pid, name));
    }

    /// Takes an event; returns the condition that it meets.
    pub fn event(&mut self, event: &Event<'_>) -> Option<StopTrigger> {
        let StopWatch { conditions, counts } = self;
        if conditions.is_empty() {
            return None;
        }
        let mut reached = None;
        counts.event(event, |pid, open| {
            let condition = conditions.iter().find(|(filter, condition)| {
                open.count() > condition.handles_above && filter.matches(&open.name, pid)
            });
            if let Some((_, condition)) = condition {
                let (condition, handles) = (condition.clone(), open.count());
                reached =
                    Some(StopTrigger { condition, process: (open.name.clone(), pid), handles });
            }
        });
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_processes_and_a_number_of_handles() {
        for (text, processes, handles_above) in [
            ("pn leaky.exe handles > 5000", "leaky.exe", 5000),
            ("-pn leaky;!4 Handles>1", "leaky;!4", 1),
            ("PN \"my service\" handles >  70", "my service", 70),
        ] {
            let expected = StopCondition { processes: processes.to_owned(), handles_above };
            assert_eq!(stop_condition(text).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_condition_is_refused_with_the_syntax() {
        let form = "use pn PROCESSES handles > N, as in 'pn leaky.exe handles > 5000'";
        for (text, message) in [
            ("", form),
            ("handles > 5", form),
            ("pn leaky handles 5", form),
            ("pn leaky threads > 5", form),
            ("pn a b handles > 5", form),
            (
                "pn leaky handles >= 5",
                "handles: '= 5' is not a whole number; write digits only, as in 20",
            ),
            ("pn leaky handles > 0", "handles: must be at least 1"),
            (
                "pn leaky handles > -5",
                "handles: '-5' is not a whole number; write digits only, as in 20",
            ),
            (
                "pn leaky handles >",
                "handles: '' is not a whole number; write digits only, as in 20",
            ),
            (
                "pn leaky handles > 99999999999999999999",
                "handles: '99999999999999999999' is too large",
            ),
        ] {
            let error = stop_condition(text).expect_err(text).to_string();
            let (start, _) = error.split_once(" (").unwrap_or((&error, ""));
            assert_eq!(start, message, "{text}");
        }
    }
}
