//! The help pages as resources: `handlescope://help/TOPIC`, and `handlescope://help` for the list of commands.

use rmcp::model::Resource;
use thiserror::Error;

use crate::cancel::Cancel;
use crate::commands::help::Help;
use crate::commands::{Command, CommandError};
use crate::console::Console;
use crate::grammar::{ParseError, join};
use crate::registry::REGISTRY;
use crate::settings::Settings;
use crate::terminal::{Messages, Screen};

const PAGES: &str = "handlescope://help";

/// The page about the members of documents, which is not a page of `.help`.
const JSON: &str = "handlescope://help/json";

/// The reason why a page cannot be read.
#[derive(Debug, Error)]
pub(super) enum ResourceError {
    #[error("resources are {PAGES} and {PAGES}/TOPIC")]
    NotAPage,
    #[error(transparent)]
    Topic(#[from] ParseError),
    #[error(transparent)]
    Page(#[from] CommandError),
}

/// Lists every page but those on single options.
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

/// The page about the members of documents, the only place with their meanings; their types in it
/// are those of the columns that declare them.
const MEMBERS: &str = include_str!("../../../docs/dump-json.md");

/// Returns what the page says about a member of the rows of a command, which the document has as
/// `rows`.
pub(super) fn meaning(command: &str, rows: &str, member: &str) -> Option<&'static str> {
    let is_command = |line: &str| line.starts_with("## ") && is_named(line, command);
    let section = MEMBERS.lines().skip_while(|line| !is_command(line)).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let is_rows = |line: &str| line.starts_with("### ") && is_named(line, rows);
    let table = section.skip_while(|line| !is_rows(line)).skip(1);
    let mut table = table.take_while(|line| !line.starts_with('#'));
    table.find_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let ((names, _), (_, meaning)) = cells.split_once(" | ").zip(cells.rsplit_once(" | "))?;
        is_named(names, member).then_some(meaning)
    })
}

/// Whether a text has a name between backticks.
fn is_named(text: &str, name: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(|code| code == name)
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

    #[test]
    fn names_that_share_a_row_share_its_meaning() {
        let meaning_of = |member| meaning(".dump Why", "suspects", member);
        assert_eq!(meaning_of("score"), Some("what the suspects are ranked by"));
        assert_eq!(meaning_of("file"), meaning_of("rank"));
        assert_eq!(meaning_of("diagnoses.text"), Some("a sentence"));
        assert_eq!(meaning_of("text"), None);
        assert_eq!(meaning(".dump Process", "suspects", "score"), None);
    }
}
