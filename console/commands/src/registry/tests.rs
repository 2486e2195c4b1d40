//! Tests of the whole list.

use std::{collections::HashSet, io};

use super::*;
use crate::SharedArgs;
use crate::console::Console;
use handlescope_session::cancel::Cancel;
use handlescope_session::grammar::Example;
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{Messages, Screen};

/// Returns the arguments of a line, as the real parser reads it.
pub fn args<A: Clone + 'static>(line: &str) -> A {
    let parsed = REGISTRY.parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let parsed = parsed.unwrap_or_else(|| panic!("{line}: no command"));
    parsed.call.args().downcast_ref::<A>().unwrap_or_else(|| panic!("{line}: {parsed:?}")).clone()
}

/// Returns the arguments of words that a shell has split.
pub fn args_of_words<A: Clone + 'static>(words: &[String]) -> A {
    let parsed = REGISTRY.parse_words(words).expect("a line").expect("a command");
    parsed
        .call
        .args()
        .downcast_ref::<A>()
        .unwrap_or_else(|| panic!("{words:?}: {parsed:?}"))
        .clone()
}

/// Returns the shared arguments of a `.dump`.
pub fn shared(line: &str) -> SharedArgs {
    let parsed = REGISTRY.parse(line).expect(line).expect(line);
    parsed.call.shared().expect("a kind of .dump").clone()
}

/// Returns the meaning of a line, without the line itself.
pub fn meaning(line: &str) -> String {
    let parsed = REGISTRY.parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    format!("{parsed:?}").replace(&format!("{:?}", line.trim()), "")
}

/// Returns a page of the help.
pub fn page(words: &[&str]) -> String {
    let mut out = Vec::new();
    let mut console = Console::new(Settings::colorless(), Cancel::default());
    let line = format!(".help {}", words.join(" "));
    let run = console.run(&line, &mut out, &mut Messages::new(&mut io::sink(), Screen::PLAIN));
    run.unwrap_or_else(|error| panic!("{line}: {error}"));
    String::from_utf8(out).expect("text")
}

/// Returns why a line is rejected.
pub fn error(line: &str) -> String {
    REGISTRY.parse(line).expect_err(line).to_string()
}

/// Commands for traces, and for a dataset.
fn registries() -> [Registry; 2] {
    [registry(false), registry(true)]
}

#[test]
fn names_are_unique_in_any_case() {
    registries().into_iter().for_each(check_names);
}

fn check_names(registry: Registry) {
    let names = registry.commands().flat_map(|command| command.signature().names);
    let mut seen = HashSet::new();
    for name in names {
        assert!(seen.insert(name.to_lowercase()), "{name}");
    }
    let mut seen = HashSet::new();
    for kind in registry.kinds() {
        assert!(seen.insert(kind.name().to_lowercase()), "{}", kind.name());
        let mut options = HashSet::new();
        for name in kind.options().iter().flat_map(|option| option.doc().names) {
            assert!(options.insert(name.to_lowercase()), "{} {name}", kind.name());
        }
    }
}

#[test]
fn every_heading_of_the_help_comes_once() {
    let commands = REGISTRY.commands().map(|c| c.name().trim_start_matches('.'));
    let kinds = REGISTRY.kinds().map(|kind| kind.name());
    for topic in commands.chain(kinds).chain([""]) {
        let page = page(&[topic]);
        let mut seen = HashSet::new();
        // A heading follows an empty line, and the text below it is indented.
        let pairs = page.lines().zip(page.lines().skip(1)).zip(page.lines().skip(2));
        for ((_, heading), _) in pairs.filter(|((before, heading), next)| {
            before.is_empty() && next.starts_with("  ") && !heading.starts_with(' ')
        }) {
            assert!(seen.insert(heading), "{topic}: {heading}");
        }
        assert!(!seen.is_empty(), "{topic}: {page}");
    }
}

#[test]
fn everything_is_documented() {
    registries().into_iter().for_each(check_documents);
}

fn check_documents(registry: Registry) {
    for command in registry.commands() {
        let signature = command.signature();
        for text in [signature.summary, signature.details, signature.group] {
            assert!(!text.is_empty(), "{}", command.name());
        }
        assert!(!command.signature().examples.is_empty(), "{}", command.name());
    }
    for kind in registry.kinds() {
        assert!(
            !kind.signature().summary.is_empty() && !kind.signature().details.is_empty(),
            "{}",
            kind.name()
        );
        assert!(kind.signature().examples.len() >= 3, "{}", kind.name());
        for option in kind.options() {
            let doc = option.doc();
            assert!(!doc.help.is_empty() && !doc.help.ends_with('.'), "{}", option.name());
            assert!(doc.help.len() <= 80, "{} has more than a line of help", option.name());
            assert!(doc.details.ends_with('.'), "{}", option.name());
            assert!(doc.names.iter().all(|name| name.starts_with('-')), "{}", option.name());
        }
    }
}

#[test]
fn every_example_is_accepted() {
    registries().into_iter().for_each(check_examples);
}

fn check_examples(registry: Registry) {
    let commands = registry.commands().chain(registry.kinds());
    for Example { line, .. } in commands.flat_map(|command| command.signature().examples) {
        assert!(registry.parse(line).is_ok_and(|command| command.is_some()), "{line}");
    }
    for kind in registry.kinds() {
        for option in kind.options() {
            let line = format!(".dump {} {}", kind.name(), option.doc().example);
            registry.parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(
                option.doc().names.iter().any(|name| line.contains(&format!(" {name}"))),
                "{line} does not show the option"
            );
        }
    }
}

#[test]
fn options_of_commands_are_unique_and_documented() {
    registries().into_iter().for_each(check_options);
}

fn check_options(registry: Registry) {
    for command in registry.commands() {
        let mut names = HashSet::new();
        for option in command.options() {
            let doc = option.doc();
            for name in doc.names {
                assert!(name.starts_with('-'), "{} {name}", command.name());
                assert!(names.insert(name.to_lowercase()), "{} {name}", command.name());
            }
            assert!(
                !doc.help.is_empty() && doc.help.len() <= 80,
                "{} {}",
                command.name(),
                doc.help
            );
            assert!(doc.details.ends_with('.'), "{} {}", command.name(), option.name());
        }
    }
}

#[test]
fn the_help_of_every_kind_says_whose_process_is_chosen() {
    let roles = [
        ("ObjectRef", "objects created by these processes"),
        ("Process", "processes with this name or pid"),
        ("Module", "modules that these processes loaded"),
        ("Version", "modules that these processes loaded"),
        ("Resource", "allocations that these processes own"),
        ("Stack", "stacks of events that happened in these processes"),
        ("Events", "events that these processes logged"),
        ("Why", "handles and allocations that these processes own"),
        ("Diff", "handles and allocations that these processes own"),
    ];
    for kind in REGISTRY.kinds() {
        let role = roles.iter().find(|(name, _)| *name == kind.name()).map(|(_, role)| *role);
        assert_eq!(kind.option("-pn").map(|option| option.doc().help), role, "{}", kind.name());
        let page = page(&[kind.name()]);
        assert!(role.is_none_or(|role| page.contains(role)), "{page}");
    }
}

#[test]
fn every_option_is_found_by_each_of_its_names_in_any_case() {
    for kind in REGISTRY.kinds() {
        for name in kind.options().iter().flat_map(|option| option.doc().names) {
            let option = kind.option(&name.to_uppercase()).expect(name);
            assert!(option.doc().names.contains(name));
        }
    }
}

#[test]
fn every_example_names_its_own_kind() {
    for kind in REGISTRY.kinds() {
        for example in kind.signature().examples {
            assert!(
                example.line.starts_with(&format!(".dump {}", kind.name())),
                "{}",
                example.line
            );
        }
    }
}
