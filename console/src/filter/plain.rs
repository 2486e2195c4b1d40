//! The filter for names, types, pointers and stacks.

use super::pattern::{Alternatives, FilterError, Parts, expression};

/// A filter that tests text line by line: object names, type names, pointers, handle values, stacks.
///
/// ```
/// use handlescope_console::filter::Filter;
///
/// let filter = Filter::new("*!NtClose*;!*csrss*")?;
/// assert!(filter.matches("ntoskrnl.exe!ObCloseHandle\nntdll.dll!NtClose"));
/// assert!(!filter.matches("ntdll.dll!NtClose\ncsrss.exe!main"));
/// # Ok::<(), handlescope_console::filter::FilterError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    has_included: bool,
    included: Alternatives,
    excluded: Alternatives,
}

/// What one line says about a text; the verdicts of all lines are joined with
/// [`LineMatch::or`] and judged by [`Filter::accepts`]. A query that sees the same frame in many
/// stacks computes this once per frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineMatch {
    /// A part without `!` covers the line.
    pub included: bool,
    /// A part with `!` covers the line.
    pub excluded: bool,
}

impl LineMatch {
    /// The verdict on the lines of both.
    #[must_use]
    pub fn or(self, other: LineMatch) -> LineMatch {
        LineMatch {
            included: self.included || other.included,
            excluded: self.excluded || other.excluded,
        }
    }
}

impl Filter {
    /// Compiles a filter. Fails only for one that is absurdly large.
    pub fn new(text: &str) -> Result<Filter, FilterError> {
        Filter::of_parts(text, |part| expression(part, ""))
    }

    /// Compiles a filter whose parts stand for such regular expressions.
    pub(super) fn of_parts(
        text: &str,
        expression: fn(&str) -> String,
    ) -> Result<Filter, FilterError> {
        let parts = Parts::of(text);
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

    /// Whether a text passes. It may have several lines; no text at all is the empty text.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_lines(text.lines())
    }

    /// Whether a text given as lines without line ends passes, for instance the frames of a stack.
    /// No line at all is the empty text.
    pub fn matches_lines<'a>(&self, lines: impl Iterator<Item = &'a str>) -> bool {
        if self.passes_everything() {
            return true;
        }
        let verdict = lines.map(|line| self.line(line)).reduce(LineMatch::or);
        self.accepts(verdict.unwrap_or_else(|| self.line("")))
    }

    /// The verdict on one line.
    pub fn line(&self, line: &str) -> LineMatch {
        LineMatch { included: self.included.matches(line), excluded: self.excluded.matches(line) }
    }

    /// Whether a text passes whose lines have this verdict. For a text without lines give the
    /// verdict on the empty line.
    pub fn accepts(&self, verdict: LineMatch) -> bool {
        !verdict.excluded && (verdict.included || !self.has_included)
    }
}

/// Filters are equal when they were typed alike.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.text == other.text
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
            ("!", "", false), // excludes the empty text: objects that have a name
            ("!", "named", true),
            ("a!b", "a!b", true), // `!` excludes only in front
        ] {
            assert_eq!(matches(filter, text), expected, "{filter} on {text}");
        }
    }

    #[test]
    fn a_text_of_lines_is_matched_by_one_line_and_excluded_by_one() {
        let stack = "ntoskrnl.exe!NtClose\r\nntdll.dll!NtClose\r\napp.exe!Cache::Get\r\n";
        for (filter, expected) in [
            ("ntdll.dll!NtClose", true), // a whole frame, whatever ends the line
            ("*!NtClose", true),
            ("*NtClose*Get*", false), // `*` stays in its line
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
}
