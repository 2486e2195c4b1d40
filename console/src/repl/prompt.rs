//! What stands in front of the line.

use std::borrow::Cow;

use handlescope_model::Untrusted;
use reedline::{Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus};

use crate::{paths::shown, trace::Session};

/// Characters of a file name that are shown at most.
const LONGEST: usize = 30;

/// A prompt that names what is loaded: `leaky.etl> `, and of several `leaky.etl +2> `.
pub(super) struct FilePrompt {
    title: String,
}

impl FilePrompt {
    pub(super) fn new(session: &Session) -> FilePrompt {
        let names = session
            .files
            .iter()
            .map(|file| Untrusted(shown(&file.path).file_name().unwrap_or_default()).to_string());
        FilePrompt { title: title(&names.collect::<Vec<_>>()) }
    }
}

fn title(names: &[String]) -> String {
    match names {
        [] => "handlescope".to_owned(),
        [only] => shortened(only),
        [first, others @ ..] => format!("{} +{}", shortened(first), others.len()),
    }
}

/// A long name without its middle.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= LONGEST {
        return name.to_owned();
    }
    let half = (LONGEST - 1) / 2;
    let (start, end) = (name.chars().take(half), name.chars().skip(length - half));
    start.chain(['…']).chain(end).collect()
}

impl Prompt for FilePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.title)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "no ",
        };
        Cow::Owned(format!(" ({failing}match for '{}') ", Untrusted(search.term)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_names_what_is_loaded() {
        let of = |names: &[&str]| title(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), "handlescope");
        assert_eq!(of(&["leaky.etl"]), "leaky.etl");
        assert_eq!(of(&["leaky.etl", "a", "b"]), "leaky.etl +2");
        let long = of(&["a-very-long-name-of-a-trace-2026-07-20.etl"]);
        assert_eq!(long, "a-very-long-na…2026-07-20.etl");
    }
}
