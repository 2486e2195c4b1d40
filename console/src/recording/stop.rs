//! When a recording ends: `pn PROCESSES handles > N`.

use handlescope_record::StopCondition;
use thiserror::Error;

use crate::{
    filter::{FilterError, ProcessFilter},
    grammar::split,
    values::{ValueError, number},
};

/// Why a text is no condition.
#[derive(Debug, Error)]
pub(super) enum StopError {
    #[error("write pn PROCESSES handles > N, as in 'pn leaky.exe handles > 5000'")]
    Form,
    #[error("handles: {0}")]
    Number(#[from] ValueError),
    #[error("pn: {0}")]
    Processes(#[from] FilterError),
}

/// Reads a condition. Names with spaces are in double quotes, as everywhere; the processes are those of `-pn`.
pub(super) fn stop_condition(text: &str) -> Result<StopCondition, StopError> {
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
    fn what_is_no_condition_says_how_one_is_written() {
        let form = "write pn PROCESSES handles > N, as in 'pn leaky.exe handles > 5000'";
        for (text, message) in [
            ("", form),
            ("handles > 5", form),
            ("pn leaky handles 5", form),
            ("pn leaky threads > 5", form),
            ("pn a b handles > 5", form),
            ("pn leaky handles >= 5", "handles: '= 5' is not a number"),
            ("pn leaky handles > 0", "handles: 0 is too small, the least is 1"),
            ("pn leaky handles > -5", "handles: '-5' is not a whole number"),
            ("pn leaky handles >", "handles: '' is not a number"),
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
