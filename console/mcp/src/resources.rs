//! The help pages as resources: `handlescope://help/TOPIC`, and `handlescope://help` for the list of commands.

use rmcp::model::Resource;
use thiserror::Error;

use super::words::in_words_of_tools;
use handlescope_commands::console::Console;
use handlescope_commands::help::Help;
use handlescope_commands::registry::REGISTRY;
use handlescope_commands::{Command, CommandError};
use handlescope_session::cancel::Cancel;
use handlescope_session::grammar::{ParseError, join};
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{Messages, Screen};

const PAGES: &str = "handlescope://help";

/// The page about the members of documents, which is not a page of `.help`.
const JSON: &str = "handlescope://help/json";

/// The reason why a page cannot be read.
#[derive(Debug, Error)]
pub enum ResourceError {
    #[error("resources are {PAGES} and {PAGES}/TOPIC")]
    NotAPage,
    #[error(transparent)]
    Topic(#[from] ParseError),
    #[error(transparent)]
    Page(#[from] CommandError),
}

/// Topics whose words tools use; the others are about the command line.
const TOPICS: [&str; 4] = ["filters", "growth", "causes", "allocations"];

/// Lists the pages that an agent can use. Every page of `.help` can be read.
pub fn list() -> Vec<Resource> {
    REGISTRY
        .topics
        .iter()
        .filter(|topic| TOPICS.contains(&topic.name))
        .map(|topic| resource(format!("{PAGES}/{}", topic.name), topic.name, topic.summary))
        .collect()
}

fn resource(uri: String, name: &str, about: &str) -> Resource {
    let about = in_words_of_tools(None, about);
    Resource::new(uri, name).with_description(about).with_mime_type("text/plain")
}

/// The text of a page. An option follows its command or kind: `handlescope://help/ObjectRef/-Leak`.
///
/// # Errors
/// Says what there is instead.
pub fn read(uri: &str) -> Result<String, ResourceError> {
    if uri == JSON {
        return Ok(MEMBERS.to_owned());
    }
    let topic = uri.strip_prefix(PAGES).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let topic = topic.ok_or(ResourceError::NotAPage)?;
    let words: Vec<String> = topic.split('/').map(str::to_owned).collect();
    let (line, tokens) = join(&words);
    // Without what the command line reads besides, which is `> FILE`.
    let args = Help::parse(&REGISTRY.entered(".help", &line, &tokens))?;
    // A page says nothing of the session, which may be at work.
    let mut console = Console::new(Settings::colorless(), Cancel::default());
    let (mut page, mut lines) = (Vec::new(), Vec::new());
    let mut messages = Messages::new(&mut lines, Screen::PLAIN);
    console.with_context(&mut page, &mut messages, |context| Help::run(args, context))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The page about the members of documents.
const MEMBERS: &str = concat!(
    include_str!("../../../docs/dump-json.md"),
    "\n",
    include_str!("../../../docs/reference/json.md")
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_is_listed_can_be_read() {
        let pages = list();
        assert_eq!(pages.len(), TOPICS.len());
        for page in pages {
            let text = read(&page.uri).unwrap_or_else(|error| panic!("{}: {error}", page.uri));
            assert!(text.lines().count() > 1, "{}: {text}", page.uri);
        }
        assert!(
            read("handlescope://help/ObjectRef/-Leak").is_ok_and(|text| text.starts_with("-Leak"))
        );
    }

    #[test]
    fn an_unknown_page_is_refused_and_nothing_is_written() {
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
