//! The help pages as resources: `handlescope://help/TOPIC`, and `handlescope://help` for the list of commands.

use rmcp::model::Resource;
use thiserror::Error;

use super::meanings;
use crate::{
    cancel::Cancel,
    commands::{Command, CommandError, Entered, help::Help},
    console::Console,
    grammar::{ParseError, join},
    registry::REGISTRY,
    settings::{Aliases, Settings},
    terminal::{Messages, Screen},
};

const PAGES: &str = "handlescope://help";

/// The page about the members of documents, which is not a page of `.help`.
const JSON: &str = "handlescope://help/json";

/// Why a page cannot be read.
#[derive(Debug, Error)]
pub(super) enum ResourceError {
    #[error("resources are {PAGES} and {PAGES}/TOPIC")]
    NotAPage,
    #[error(transparent)]
    Topic(#[from] ParseError),
    #[error(transparent)]
    Page(#[from] CommandError),
}

/// Every page but those on single options.
pub(super) fn list() -> Vec<Resource> {
    let commands =
        REGISTRY.commands.iter().map(|command| (command.name(), command.signature().summary));
    let kinds = REGISTRY.kinds.iter().map(|kind| (kind.name(), kind.signature().summary));
    let topics = REGISTRY.topics.iter().map(|topic| (topic.name, topic.summary));
    let pages = kinds.chain(topics).chain(commands);
    let page = |(name, about): (&str, &str)| resource(format!("{PAGES}/{name}"), name, about);
    let all = resource(PAGES.to_owned(), "help", "the commands and other topics");
    let json = resource(JSON.to_owned(), "json", "the members of the documents that tools return");
    [all, json].into_iter().chain(pages.map(page)).collect()
}

fn resource(uri: String, name: &str, about: &str) -> Resource {
    Resource::new(uri, name).with_description(about).with_mime_type("text/plain")
}

/// The text of a page. An option follows its command or kind: `handlescope://help/ObjectRef/-Leak`.
///
/// # Errors
/// Says what there is instead.
pub(super) fn read(uri: &str) -> Result<String, ResourceError> {
    if uri == JSON {
        return Ok(meanings::PAGE.to_owned());
    }
    let topic = uri.strip_prefix(PAGES).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let topic = topic.ok_or(ResourceError::NotAPage)?;
    let words: Vec<String> = topic.split('/').map(str::to_owned).collect();
    let (line, tokens) = join(&words);
    // Without what the command line reads besides, which is `> FILE`.
    let entered = Entered {
        line: &line,
        name: ".help",
        tokens: &tokens,
        registry: &REGISTRY,
        aliases: Aliases::NONE,
    };
    let args = Help::parse(&entered)?;
    // A page says nothing of the session, which may be at work.
    let mut console = Console::new(Settings::colorless(), Cancel::default());
    let (mut page, mut lines) = (Vec::new(), Vec::new());
    let mut messages = Messages::new(&mut lines, Screen::PLAIN);
    console.with_context(&mut page, &mut messages, |context| Help::run(args, context))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_is_listed_can_be_read() {
        let pages = list();
        assert!(pages.len() > REGISTRY.commands.len() + REGISTRY.kinds.len());
        for page in pages {
            let text = read(&page.uri).unwrap_or_else(|error| panic!("{}: {error}", page.uri));
            assert!(text.lines().count() > 1, "{}: {text}", page.uri);
        }
        assert!(
            read("handlescope://help/ObjectRef/-Leak").is_ok_and(|text| text.starts_with("-Leak"))
        );
    }

    #[test]
    fn what_is_no_page_is_refused_and_writes_nothing() {
        for uri in [
            "handlescope://help/nonsense",
            "handlescope://helpful",
            "file:///etc/passwd",
            "handlescope://help/.load/>/x",
        ] {
            let error = read(uri).expect_err(uri);
            assert!(!error.to_string().is_empty(), "{uri}");
        }
        assert!(!std::path::Path::new("x").exists());
    }
}
