//! Offers to download symbols that an answer lacks.

use std::borrow::Cow;
use std::io;

use handlescope_session::settings::{SettingKey, SymbolDownload};
use handlescope_session::trace::{Session, SymbolOffer};
use handlescope_session::values::CountedNoun;
use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Reedline, Signal};

use super::LineSource;
use handlescope_session::cancel::{self, InputWait};
use handlescope_session::terminal::Messages;

/// The user's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfferReply {
    Yes,
    No,
    Always,
}

impl OfferReply {
    /// Parses a reply; anything that is not an agreement means no.
    fn parse(text: &str) -> OfferReply {
        match text.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => OfferReply::Yes,
            "a" | "always" => OfferReply::Always,
            _ => OfferReply::No,
        }
    }
}

/// The result of an accepted offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferResult {
    /// Microsoft's server was added to the symbol path of this session.
    Once,
    /// This command adds it for every session.
    Always(String),
}

/// Offers to download symbols that the last answers lack, if there are any; returns `None` if nothing changes.
///
/// # Errors
/// If the terminal cannot be used.
pub fn offer(
    session: &mut Session,
    is_editor: bool,
    messages: &mut Messages<'_>,
) -> io::Result<Option<OfferResult>> {
    let Some(offer) = session.take_symbol_offer() else { return Ok(None) };
    let question = OfferPrompt::about(&offer);
    let mut input = if is_editor {
        LineSource::Editor(Box::new(Reedline::create().with_ansi_colors(false)))
    } else {
        LineSource::Lines
    };
    let reply = match cancel::waiting(InputWait::Prompt, || input.read(&question))? {
        Signal::Success(text) => OfferReply::parse(&text),
        _ => OfferReply::No,
    };
    Ok(accept(reply, &offer, session, messages))
}

fn accept(
    reply: OfferReply,
    offer: &SymbolOffer,
    session: &mut Session,
    messages: &mut Messages<'_>,
) -> Option<OfferResult> {
    match reply {
        OfferReply::Yes => {
            session.set_symbol_path(&offer.path);
            Some(OfferResult::Once)
        }
        OfferReply::Always => {
            let (key, always) = (SettingKey::SymbolDownload, SymbolDownload::Always);
            Some(OfferResult::Always(format!(".config {key} {always}")))
        }
        OfferReply::No => {
            messages.note(
                ".sympath -symServer ms downloads them later; `.config symbol-download never` stops this question",
            );
            None
        }
    }
}

/// The question as a prompt.
struct OfferPrompt(String);

impl OfferPrompt {
    fn about(offer: &SymbolOffer) -> OfferPrompt {
        let modules = CountedNoun(offer.modules as u64, "module");
        OfferPrompt(format!("Download symbols of {modules} from Microsoft? [y/N/always] "))
    }
}

impl Prompt for OfferPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_history_search_indicator(&self, _: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

#[cfg(test)]
mod tests {
    use handlescope_session::terminal::Screen;
    use handlescope_symbols::SymbolPath;

    use super::*;

    #[test]
    fn only_an_agreement_agrees() {
        for (text, expected) in [
            ("y", OfferReply::Yes),
            (" YES ", OfferReply::Yes),
            ("always", OfferReply::Always),
            ("A", OfferReply::Always),
            ("", OfferReply::No),
            ("n", OfferReply::No),
            (".why", OfferReply::No),
        ] {
            assert_eq!(OfferReply::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn an_agreement_names_the_server_and_a_refusal_says_how_to_agree_later() {
        for (reply, has_servers, words) in [
            (OfferReply::Yes, true, ""),
            (OfferReply::Always, false, ""),
            (OfferReply::No, false, ".sympath -symServer ms"),
        ] {
            let mut session = Session::default();
            let offer = SymbolOffer { modules: 4, path: SymbolPath::parse("srv**https://x") };
            let mut out = Vec::new();
            let mut messages = Messages::new(&mut out, Screen::PLAIN);
            let accepted = accept(reply, &offer, &mut session, &mut messages);
            assert_eq!(accepted.is_some(), reply != OfferReply::No);
            assert_eq!(session.settings.symbol_path().has_servers(), has_servers, "{reply:?}");
            let text = String::from_utf8(out).expect("text");
            assert!(text.contains(words) && text.is_empty() == words.is_empty(), "{text}");
        }
    }

    #[test]
    fn the_question_counts_modules() {
        let question =
            |modules| OfferPrompt::about(&SymbolOffer { modules, path: SymbolPath::default() }).0;
        assert_eq!(question(4), "Download symbols of 4 modules from Microsoft? [y/N/always] ");
        assert_eq!(question(1), "Download symbols of 1 module from Microsoft? [y/N/always] ");
    }
}
