//! The dim text after the cursor: the rest of an earlier line, or else what an option wants.

use std::borrow::Cow;

use handlescope_model::guard::lock;
use reedline::{DefaultHinter, Hinter, History};

use crate::{
    commands::dump::DumpWords,
    completion::SharedKnown,
    grammar::{Arguments, parse, split},
    registry::REGISTRY,
    script::is_waiting,
    terminal::{Role, neutral},
};

/// Hints from the history, and where that knows nothing, from the registry.
pub struct CommandHinter {
    history: DefaultHinter,
    known: SharedKnown,
}

impl CommandHinter {
    /// Hints, for aliases those of what they stand for.
    pub fn new(known: SharedKnown) -> CommandHinter {
        CommandHinter { history: DefaultHinter::default().with_style(Role::Hint.style()), known }
    }
}

impl Hinter for CommandHinter {
    fn handle(
        &mut self,
        line: &str,
        pos: usize,
        history: &dyn History,
        use_ansi_coloring: bool,
        cwd: &str,
    ) -> String {
        let hint = neutral(&self.history.handle(line, pos, history, use_ansi_coloring, cwd));
        if !hint.is_empty() || pos < line.len() {
            return hint;
        }
        let line =
            lock(&self.known).aliases.expand(line).unwrap_or(Cow::Borrowed(line)).into_owned();
        placeholder(&line)
            .map_or_else(String::new, |text| Role::Hint.style().paint(text).to_string())
    }

    // Only what was typed once can be taken over; a placeholder cannot.
    fn complete_hint(&self) -> String {
        self.history.complete_hint()
    }

    fn next_hint_token(&self) -> String {
        self.history.next_hint_token()
    }
}

/// What the command or option at the end of a line takes; nothing unless a space follows it. In a new line
/// of a query, what ends that.
fn placeholder(line: &str) -> Option<String> {
    if line.strip_suffix('\n').is_some_and(is_waiting) {
        return Some("; or an empty line ends the query".to_owned());
    }
    if !line.ends_with(' ') {
        return None;
    }
    let tokens = split(line);
    let (first, arguments) = tokens.split_first()?;
    let command = REGISTRY.command(&first.text)?;
    if arguments.is_empty() {
        return Some(command.signature().usage.to_owned()).filter(|usage| !usage.is_empty());
    }
    if !matches!(command.signature().arguments, Arguments::Kind) {
        return None;
    }
    let words = DumpWords::of(arguments, &REGISTRY);
    parse::waiting(&words.options(&REGISTRY), &words.others)
        .map(|option| option.value().placeholder().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_without_its_value_says_what_it_wants() {
        for (line, expected) in [
            (".dump ObjectRef -MinMaxTime ", Some("SECONDS [MAX]")),
            (".dump ObjectRef -pn ", Some("PROCESSES")),
            (".dump -pn ", Some("PROCESSES")),
            (".dump ObjectRef -pn", None),
            (".dump ObjectRef -MinMaxTime 1 ", None),
            (".dump ObjectRef -Leak ", None),
            (".dump ObjectRef -nonsense ", None),
            (".sympath ", Some("[OPTION…] [PATH]")),
            (".load a.etl ", None),
            (".dump ", Some("KIND [OPTION…]")),
            (".sql SELECT 1\n", Some("; or an empty line ends the query")),
            (".sql SELECT 1;\n", None),
            (".quit ", None),
            ("", None),
        ] {
            assert_eq!(placeholder(line).as_deref(), expected, "{line}");
        }
    }
}
