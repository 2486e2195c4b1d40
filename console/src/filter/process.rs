use super::{
    pattern::{self, FilterError},
    plain::{Filter, LineMatch},
};

/// What may follow a name: the extension (any character before `exe`, as in ETWAnalyzer) and a pid.
const SUFFIX: &str = r"(?:.exe)?(?:\([0-9]+\))?";

/// A filter that tests processes written `name.exe(pid)`.
///
/// A part that is a number is a pid. Any other part must cover the whole name; `.exe` and `(pid)`
/// may be missing from it.
///
/// ```
/// use handlescope_console::filter::ProcessFilter;
///
/// let filter = ProcessFilter::new("svchost;!1234")?;
/// assert!(filter.matches("svchost.exe", 77));
/// assert!(!filter.matches("svchost.exe", 1234));
/// # Ok::<(), handlescope_console::filter::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessFilter(Filter);

impl ProcessFilter {
    /// The filter as typed.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Compiles a filter. Fails only for one that is absurdly large.
    pub fn new(text: &str) -> Result<ProcessFilter, FilterError> {
        Filter::of_parts(text, expression).map(ProcessFilter)
    }

    /// Whether a process passes; `name` as in the trace, with its `.exe`.
    pub fn matches(&self, name: &str, pid: u32) -> bool {
        self.matches_any([name], pid)
    }

    /// Whether a process passes that goes by several names: a part that is wanted may match any of
    /// them, an exclusion none.
    pub fn matches_any<'a>(&self, names: impl IntoIterator<Item = &'a str>, pid: u32) -> bool {
        let verdicts = names.into_iter().map(|name| self.0.line(&format!("{name}({pid})")));
        self.0.accepts(verdicts.fold(LineMatch::default(), LineMatch::or))
    }
}

/// A part as a regular expression.
fn expression(part: &str) -> String {
    // Spaces and a sign count as part of the number, so ` 77` is a pid that no process has rather
    // than a name.
    match part.trim().parse::<i32>() {
        Ok(_) => format!(r"\({}\)\z", regex::escape(part)),
        Err(_) => pattern::expression(part, SUFFIX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, text: &str) -> bool {
        let filter = ProcessFilter::new(filter).expect("a valid filter").0;
        filter.accepts(filter.line(text))
    }

    #[test]
    fn a_name_goes_without_extension_and_pid() {
        for (filter, text, expected) in [
            ("abc", "abc", true),
            ("abc", "abc.exe", true),
            ("abc", "ABC.exe(77)", true),
            ("abc", "abcd.exe(77)", false),
            ("abc", "xabc.exe(77)", false),
            ("abc", "abc ", false),
            ("abc.exe", "abc.exe", true),
            ("abc.exe", "abc.exe(77)", true),
            ("abc.exe", "abc(77)", false),
            ("abc.exe(77)", "abc.exe(77)", true),
            ("abc.exe(77)", "abc.exe(78)", false),
            ("abc(77)", "abc(77)", true),
            ("abc(77)", "abc.exe(77)", false),
            ("*S*", "System(4)", true),
            ("sv*", "svchost.exe(812)", true),
            ("*.exe", "System(4)", false),
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn a_number_is_a_pid() {
        for (filter, text, expected) in [
            ("77", "abc.exe(77)", true),
            ("77", "x(77)", true),
            ("77", "abc.exe(777)", false),
            ("77", "77.exe(5)", false),
            (" 77", "abc.exe(77)", false),
            ("+77", "abc.exe(77)", false),
            ("*20700*", "worker.exe(20700)", true),
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn exclusions_win() {
        for (filter, text, expected) in [
            ("abc;!1234", "abc.exe(12345)", true),
            ("abc;!1234", "abc.exe(1234)", false),
            ("abc;!1234", "", false),
            ("!1234", "abc.exe(1)", true),
            ("!1234", "", true),
            ("!1234", "abc.exe(1234)", false),
            ("*;!svchost*;!4", "System(4)", false),
            ("ZSATunnel;!*.exe", "ZSATunnel.exe(10232)", false),
            ("", "anything", true),
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn of_several_names_one_must_match_and_none_be_excluded() -> Result<(), FilterError> {
        let names = ["svchost RDP Service", "svchost.exe"];
        for (filter, expected) in [
            ("svchost", true),
            ("svchost RDP*", true),
            ("svchost RDP Service(7)", true),
            ("svchost WMI*", false),
            ("!svchost", false),
            ("!svchost RDP*", false),
            ("svchost;!svchost RDP*", false),
            ("svchost RDP*;!*.exe", false),
            ("!cmd", true),
            ("7", true),
            ("!7", false),
            ("", true),
        ] {
            assert_eq!(ProcessFilter::new(filter)?.matches_any(names, 7), expected, "{filter}");
        }
        Ok(())
    }

    #[test]
    fn a_process_is_tested_as_name_and_pid() -> Result<(), FilterError> {
        let filter = ProcessFilter::new("devenv.exe(509560);csrss")?;
        assert!(filter.matches("devenv.exe", 509_560));
        assert!(!filter.matches("devenv.exe", 509_561));
        assert!(filter.matches("csrss.exe", 1));
        Ok(())
    }
}
