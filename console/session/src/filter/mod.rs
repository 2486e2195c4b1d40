//! The filter language of every `.dump` option, as users of ETWAnalyzer know it.
//!
//! A filter is a list of parts separated by `;` (empty parts are ignored). A part that starts with
//! `!` excludes. `*` stands for any number of characters, `?` for exactly one; everything else is
//! literal, in any case. A text passes when no exclusion matches and, if there are other parts, at
//! least one of them does. Exclusions win, so `*;!*` passes nothing; an empty filter passes all.
//!
//! There are two ways to apply a filter:
//! * [`Filter`] tests names, types, pointers and stacks. A part must match a whole *line*; in a text of several lines
//!   (a stack), one matching line is enough.
//! * [`ProcessFilter`] tests processes written `name.exe(pid)`. A number is a pid, and `.exe` and `(pid)` may be left
//!   out.

mod days;
mod pattern;

use std::sync::LazyLock;

pub use self::days::{Days, DaysError};
use self::pattern::{Alternatives, PatternParts, expression};
pub use self::pattern::{FilterError, Wildcard, literal, word};

/// A filter that tests text line by line: object names, type names, pointers, handle values, stacks.
///
/// ```
/// use handlescope_session::filter::Filter;
///
/// let filter = Filter::new("*!NtClose*;!*csrss*")?;
/// assert!(filter.matches("ntoskrnl.exe!ObCloseHandle\nntdll.dll!NtClose"));
/// assert!(!filter.matches("ntdll.dll!NtClose\ncsrss.exe!main"));
/// # Ok::<(), handlescope_session::filter::FilterError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    has_included: bool,
    included: Alternatives,
    excluded: Alternatives,
}

/// Verdict on one line of a text. Join the verdicts of all lines with [`LineMatch::or`] and pass the result to
/// [`Filter::accepts`]. A query that sees the same frame in many stacks computes it once per frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineMatch {
    /// A part without `!` matches the line.
    pub included: bool,
    /// A part with `!` matches the line.
    pub excluded: bool,
}

impl LineMatch {
    /// Joins the verdicts on two sets of lines.
    #[must_use]
    pub fn or(self, other: LineMatch) -> LineMatch {
        LineMatch {
            included: self.included || other.included,
            excluded: self.excluded || other.excluded,
        }
    }
}

impl Filter {
    /// Compiles a filter. Fails only if it is absurdly large.
    pub fn new(text: &str) -> Result<Filter, FilterError> {
        Filter::from_parts(text, |part| expression(part, ""))
    }

    /// Compiles a filter; `expression` turns each part into a regular expression.
    pub fn from_parts(text: &str, expression: fn(&str) -> String) -> Result<Filter, FilterError> {
        let parts = PatternParts::new(text);
        Ok(Filter {
            text: text.to_owned(),
            has_included: !parts.included.is_empty(),
            included: Alternatives::new(&parts.included, expression, text)?,
            excluded: Alternatives::new(&parts.excluded, expression, text)?,
        })
    }

    /// The filter as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether every text passes, so that the caller need not produce any.
    pub fn passes_everything(&self) -> bool {
        matches!(self.excluded, Alternatives::Nothing)
            && (!self.has_included || matches!(self.included, Alternatives::Everything))
    }

    /// Whether a text passes. It may have several lines; an absent text counts as empty.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_lines(text.lines())
    }

    /// Whether a text passes that is given as lines without line ends, for example the frames of a stack. No lines
    /// count as the empty text.
    pub fn matches_lines<'a>(&self, lines: impl Iterator<Item = &'a str>) -> bool {
        if self.passes_everything() {
            return true;
        }
        let verdict = lines.map(|line| self.line(line)).reduce(LineMatch::or);
        self.accepts(verdict.unwrap_or_else(|| self.line("")))
    }

    /// Returns the verdict on one line.
    pub fn line(&self, line: &str) -> LineMatch {
        LineMatch { included: self.included.matches(line), excluded: self.excluded.matches(line) }
    }

    /// Whether a text with this joined verdict passes. For a text without lines, pass the verdict on the empty line.
    pub fn accepts(&self, verdict: LineMatch) -> bool {
        !verdict.excluded && (verdict.included || !self.has_included)
    }
}

/// Filters are equal if they were typed the same.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.text == other.text
    }
}

/// What may follow a name: the extension (any character before `exe`, as in ETWAnalyzer) and a pid.
const SUFFIX: &str = r"(?:.exe)?(?:\([0-9]+\))?";

/// A filter that tests processes written `name.exe(pid)`.
///
/// A part that is a number is a pid. Any other part must match the whole name, where `.exe` and `(pid)` may be missing.
///
/// ```
/// use handlescope_session::filter::ProcessFilter;
///
/// let filter = ProcessFilter::new("svchost;!1234")?;
/// assert!(filter.matches("svchost.exe", 77));
/// assert!(!filter.matches("svchost.exe", 1234));
/// # Ok::<(), handlescope_session::filter::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessFilter(Filter);

impl ProcessFilter {
    /// The filter as typed.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Compiles a filter. Fails only if it is absurdly large.
    pub fn new(text: &str) -> Result<ProcessFilter, FilterError> {
        Filter::from_parts(text, process_expression).map(ProcessFilter)
    }

    /// Whether every process passes.
    pub fn passes_everything(&self) -> bool {
        self.0.passes_everything()
    }

    /// Whether a process passes; `name` is as in the trace, with `.exe`.
    pub fn matches(&self, name: &str, pid: u32) -> bool {
        self.matches_any([name], pid)
    }

    /// Whether a process that goes by several names passes. An included part may match any of them; an exclusion must
    /// match none.
    pub fn matches_any<'a>(&self, names: impl IntoIterator<Item = &'a str>, pid: u32) -> bool {
        let verdicts = names.into_iter().map(|name| self.0.line(&format!("{name}({pid})")));
        self.0.accepts(verdicts.fold(LineMatch::default(), LineMatch::or))
    }
}

/// Turns a part of a process filter into a regular expression.
fn process_expression(part: &str) -> String {
    // Spaces and a sign count as part of the number, so ` 77` is a pid that no process has, and not a name.
    match part.trim().parse::<i32>() {
        Ok(_) => format!(r"\({}\)\z", regex::escape(part)),
        Err(_) => expression(part, SUFFIX),
    }
}

/// The kernel and the libraries between it and a program.
const USUAL: &str = "ntoskrnl.exe;ntkrnl*.exe;ntdll.dll;KernelBase.dll;kernel32.dll;wow64*.dll";

/// Modules whose frames say little about the program under test: `.sys`.
#[derive(Debug, Clone)]
pub struct SystemModules(Option<Filter>);

impl Default for SystemModules {
    /// The kernel, ntdll, KernelBase, kernel32 and wow64.
    fn default() -> Self {
        Self::usual().clone()
    }
}

impl SystemModules {
    /// The kernel, ntdll, KernelBase, kernel32 and wow64.
    pub fn usual() -> &'static Self {
        static MODULES: LazyLock<SystemModules> =
            LazyLock::new(|| SystemModules(Filter::new(USUAL).ok()));
        &MODULES
    }

    /// Whether these are [`Self::usual`].
    pub fn is_usual(&self) -> bool {
        self.text() == USUAL
    }

    /// Creates a set of the modules whose file names pass a filter.
    ///
    /// # Errors
    /// If the filter is absurdly large.
    pub fn new(filter: &str) -> Result<Self, FilterError> {
        Filter::new(filter).map(|filter| Self(Some(filter)))
    }

    /// Whether a module is one of them. WinDbg names modules without an extension, and calls the kernel `nt`.
    pub fn has(&self, module: &str) -> bool {
        let has = |name: &str| self.0.as_ref().is_some_and(|filter| filter.matches(name));
        match module {
            _ if has(module) => true,
            "nt" => has("ntoskrnl.exe"),
            _ if module.contains('.') => false,
            _ => has(&format!("{module}.dll")) || has(&format!("{module}.exe")),
        }
    }

    /// The filter as typed.
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("", Filter::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, text: &str) -> bool {
        Filter::new(filter).expect("a valid filter").matches(text)
    }

    #[test]
    fn a_part_covers_the_whole_line_in_any_case() {
        for (filter, text, expected) in [
            ("Event", "event", true),
            ("Event", "Events", false),
            ("Event", "KeyedEvent", false),
            ("Ev*", "EVENT", true),
            ("*ent", "Event", true),
            ("*ve*", "Event", true),
            ("E?ent", "Event", true),
            ("E?vent", "Event", false), // exactly one, not zero or one
            ("0xC?", "0xC0", true),
            ("0xC?", "0xC00", false),
            ("E*t*x", "Event", false),
            ("*", "", true),
            ("?", "", false),
            ("a.*.exe;!*av*", "a..exe", true),
            ("a.*.exe;!*av*", "a.x av y.exe", false),
            (r"\BaseNamedObjects\a+b[1]", r"\BaseNamedObjects\A+B[1]", true), // no classes
            (r"\BaseNamedObjects\a.b", r"\BaseNamedObjects\axb", false),
            ("straße ÄÖ", "STRAßE äö", true),
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn lists_and_exclusions_combine_and_exclusions_win() {
        for (filter, text, expected) in [
            ("", "anything", true),
            (";;", "", true),
            ("Event;Section", "section", true),
            ("Event;Section", "Key", false),
            ("!Event", "Key", true),
            ("!Event", "", true),
            ("!Event", "event", false),
            ("*;!*", "x", false),
            ("*a*;!*b*", "ab", false),
            ("!*a*;!*b*", "c", true),
            ("!", "", false), // excludes the empty text, so objects need a name
            ("!", "named", true),
            ("a!b", "a!b", true), // `!` excludes only at the start
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn a_text_of_lines_is_matched_by_one_line_and_excluded_by_one() {
        let stack = "ntoskrnl.exe!NtClose\r\nntdll.dll!NtClose\r\napp.exe!Cache::Get\r\n";
        for (filter, expected) in [
            ("ntdll.dll!NtClose", true), // a whole frame, whatever the line end
            ("*!NtClose", true),
            ("*NtClose*Get*", false), // `*` does not cross lines
            ("*Cache::Get", true),
            ("!*app.exe*", false),
            ("*NtClose*;!*other*", true),
            ("*NtClose*;!*Cache*", false),
            ("", true),
        ] {
            assert_eq!(matches(filter, stack), expected, "{filter}");
        }
    }

    #[test]
    fn verdicts_on_lines_can_be_joined_by_the_caller() -> Result<(), FilterError> {
        let filter = Filter::new("*a*;!*b*")?;
        let joined = filter.line("xax").or(filter.line("xbx"));
        assert_eq!(joined, LineMatch { included: true, excluded: true });
        assert!(!filter.accepts(joined));
        assert!(filter.accepts(filter.line("a")));
        Ok(())
    }

    #[test]
    fn no_lines_are_the_empty_text() -> Result<(), FilterError> {
        assert!(Filter::new("!*x*")?.matches_lines([].into_iter()));
        assert!(!Filter::new("*x*")?.matches_lines([].into_iter()));
        assert!(!Filter::new("!")?.matches_lines([].into_iter()));
        Ok(())
    }

    #[test]
    fn a_filter_knows_when_it_passes_everything() -> Result<(), FilterError> {
        for (text, expected) in [("", true), ("*", true), ("a;*", true), ("*;!a", false)] {
            assert_eq!(Filter::new(text)?.passes_everything(), expected, "{text}");
        }
        Ok(())
    }

    fn matches_process(filter: &str, text: &str) -> bool {
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
            assert_eq!(matches_process(filter, text), expected, "{filter} on {text}");
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
            assert_eq!(matches_process(filter, text), expected, "{filter} on {text}");
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
            assert_eq!(matches_process(filter, text), expected, "{filter} on {text}");
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

    #[test]
    fn the_usual_ones_stand_between_the_kernel_and_a_program() {
        let system = SystemModules::default();
        for module in [
            "ntoskrnl.exe",
            "NTDLL.DLL",
            "KernelBase.dll",
            "kernel32.dll",
            "wow64cpu.dll",
            "nt",
            "ntdll",
        ] {
            assert!(system.has(module), "{module}");
        }
        for module in ["leaky.exe", "user32.dll", "ntdll2.dll", "leaky", ""] {
            assert!(!system.has(module), "{module}");
        }
    }
}
