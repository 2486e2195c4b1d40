//! Promises about the whole list.

use std::collections::HashSet;

use super::*;
use crate::command::Command;

#[test]
fn names_are_unique_in_any_case() {
    let names = COMMANDS.iter().flat_map(|command| command.names);
    let mut seen = HashSet::new();
    for name in names {
        assert!(seen.insert(name.to_lowercase()), "{name}");
    }
    let mut seen = HashSet::new();
    for kind in KINDS {
        assert!(seen.insert(kind.name.to_lowercase()), "{}", kind.name);
        let mut options = HashSet::new();
        for name in kind.options().iter().flat_map(|option| option.doc().names) {
            assert!(options.insert(name.to_lowercase()), "{} {name}", kind.name);
        }
    }
}

#[test]
fn everything_is_documented() {
    for command in COMMANDS {
        for text in [command.summary, command.details, command.group] {
            assert!(!text.is_empty(), "{}", command.name());
        }
        assert!(!command.examples.is_empty(), "{}", command.name());
    }
    for kind in KINDS {
        assert!(!kind.summary.is_empty() && !kind.details.is_empty(), "{}", kind.name);
        assert!(!kind.examples.is_empty(), "{}", kind.name);
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
    for line in COMMANDS.iter().flat_map(|command| command.examples) {
        assert!(Command::parse(line).is_ok_and(|command| command.is_some()), "{line}");
    }
    for kind in KINDS {
        for example in kind.examples {
            let command = Command::parse(example.line);
            assert!(command.is_ok_and(|command| command.is_some()), "{}", example.line);
        }
        for option in kind.options() {
            let line = format!(".dump {} {}", kind.name, option.doc().example);
            Command::parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(
                option.doc().names.iter().any(|name| line.contains(&format!(" {name}"))),
                "{line} does not show the option"
            );
        }
    }
}

#[test]
fn options_of_commands_are_unique_and_documented() {
    for command in COMMANDS {
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
fn every_option_is_found_by_each_of_its_names_in_any_case() {
    for kind in KINDS {
        for name in kind.options().iter().flat_map(|option| option.doc().names) {
            let found = kind.option(&name.to_uppercase()).expect(name);
            assert!(found.doc().names.contains(name));
        }
    }
}

#[test]
fn every_example_names_its_own_kind() {
    for kind in KINDS {
        for example in kind.examples {
            assert!(example.line.starts_with(&format!(".dump {}", kind.name)), "{}", example.line);
        }
    }
}
