//! Tests that every option of every kind is parsed, explained and offered.

use std::collections::HashMap;

use reedline::{Completer, CompletionResult};

use super::REGISTRY;
use super::tests::{error, meaning, page};
use crate::AnyCommand;
use crate::completion::{CommandCompleter, SharedCompletionValues};
use handlescope_session::grammar::value::Offers;
use handlescope_session::grammar::{OptionSpec, split};

/// Calls `check` with each option and its kind.
fn for_each_option(check: impl Fn(&dyn AnyCommand, &'static dyn OptionSpec)) {
    for kind in REGISTRY.kinds() {
        for option in kind.options() {
            check(kind, option);
        }
    }
}

/// Returns the part of an option's example that is about the option: one of its names, and values.
fn name_and_values(option: &dyn OptionSpec) -> (String, String) {
    let tokens = split(option.doc().example);
    let index = tokens.iter().position(|token| option.is_named(&token.text)).expect("its example");
    let values: Vec<&str> = tokens
        .iter()
        .skip(index + 1)
        .take_while(|token| !token.is_switch())
        .map(|token| token.text.as_str())
        .collect();
    (tokens[index].text.clone(), values.join(" "))
}

#[test]
fn every_name_of_an_option_means_the_same_and_sets_something() {
    for_each_option(|kind, option| {
        let plain = meaning(&format!(".dump {}", kind.name()));
        let (shown, values) = name_and_values(option);
        let expected = meaning(&format!(".dump {} {shown} {values}", kind.name()));
        assert_ne!(expected, plain, "{} {shown} sets nothing", kind.name());
        for name in option.doc().names {
            for name in [(*name).to_owned(), name.to_uppercase(), name.to_lowercase()] {
                let line = format!(".dump {} {name} {values}", kind.name());
                assert_eq!(meaning(&line), expected, "{line}");
            }
        }
    });
}

#[test]
fn no_two_options_set_the_same() {
    for kind in REGISTRY.kinds() {
        let options = kind.options();
        let active = options.iter().filter(|option| option.has_effect());
        let lines = active.map(|option| {
            let (name, values) = name_and_values(*option);
            format!(".dump {} {name} {values}", kind.name())
        });
        let mut lines_by_meaning = HashMap::new();
        for line in lines {
            let earlier = lines_by_meaning.insert(meaning(&line), line.clone());
            assert_eq!(earlier, None, "{line}");
        }
    }
}

#[test]
fn an_option_is_explained_by_each_of_its_names() {
    for_each_option(|kind, option| {
        for name in option.doc().names {
            let page = page(&[kind.name(), name]);
            let doc = option.doc();
            for text in [doc.help, doc.details, doc.example] {
                assert!(page.contains(text), "{} {name}: no '{text}' in\n{page}", kind.name());
            }
            for listed in doc.names {
                assert!(page.contains(listed), "{} {name}: no {listed}", kind.name());
            }
        }
    });
}

#[test]
fn an_option_is_offered_when_all_but_its_last_letter_is_typed() {
    let mut completer = CommandCompleter::new(SharedCompletionValues::default());
    for kind in REGISTRY.kinds() {
        for option in kind.options() {
            for name in option.doc().names {
                let head = format!(".dump {} {}", kind.name(), name.split_at(name.len() - 1).0);
                let offers = match completer.complete(&head, head.len()) {
                    CompletionResult::Fresh { suggestions, .. } => suggestions,
                    _ => panic!("{head}: nothing to offer yet"),
                };
                let offer = offers.iter().find(|offer| option.is_named(&offer.value));
                let offer = offer.unwrap_or_else(|| panic!("{head}: not among {offers:?}"));
                assert_eq!(offer.description.as_deref(), Some(option.doc().help), "{head}");
            }
        }
    }
}

/// Returns the name with two inner letters swapped.
fn misspelt(name: &str) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let index = (1..letters.len() - 1)
        .rev()
        .find(|&index| !letters[index].eq_ignore_ascii_case(&letters[index + 1]))
        .expect("two different letters");
    letters.swap(index, index + 1);
    letters.into_iter().collect()
}

#[test]
fn a_misspelt_option_is_reported_with_the_right_one_and_its_help_line() {
    for_each_option(|kind, option| {
        let longest = option.doc().names.iter().max_by_key(|name| name.len()).expect("a name");
        let typed = misspelt(longest);
        let message = error(&format!(".dump {} {typed}", kind.name()));
        let expected =
            format!("unknown option {typed}, did you mean {longest}?\n  {}", option.help_line());
        assert_eq!(message == expected, option.has_effect(), "{}: {message}", kind.name());
    });
}

#[test]
fn an_option_without_its_value_is_reported_with_its_help_line() {
    for_each_option(|kind, option| {
        for name in option.doc().names {
            let line = format!(".dump {} {name} -fd x", kind.name());
            if option.value().arity.0 == 0 {
                meaning(&line);
            } else {
                let expected = format!("{name} needs a value\n  {}", option.help_line());
                assert_eq!(error(&line), expected);
            }
        }
    });
}

#[test]
fn a_bad_value_is_reported_with_the_help_line_of_its_option() {
    // More than a pattern may hold.
    let filter = "?".repeat(300_000);
    for_each_option(|kind, option| {
        let value = option.value();
        let bad: &[&str] = match (value.offers, value.placeholder) {
            (Offers::Texts(_) | Offers::Processes, _) => &[&filter],
            (Offers::Words, _) => &["nonsense"],
            (Offers::List, _) => &["nonsense", "type,nonsense", "type,"],
            (Offers::Servers, _) => &["syngo", "ftp://x"],
            (Offers::Suspects, "RANK|ID|PROCESSES") => &[&filter],
            (_, "leak|steady|PROCESSES:N") => &["lek", "app:x", "app:", "app:-1"],
            (Offers::Suspects, _) => &["3f2", "leaky", "0x3f2a", "0123456789a"],
            (_, "SECONDS [MAX]") => &["soon", "1,5", "2 1", "1KB"],
            (_, "SECONDS") => &["soon", "1,5", "1KB"],
            (_, "MIN [MAX]" | "BYTES [MAX]") => &["many", "1.5", "2 1", "1s"],
            (_, "N [SKIP]") => &["all", "-1", "1.5", "5 1x"],
            (_, "ADDRESS") => &["here", "0x", "0x1ffffffffffffffff"],
            (_, "N") => &["many", "1.5", "0"],
            // A word that does not begin as a number is none of its values.
            (_, "[N]") => &["1x", "1.5", "0"],
            (_, "BYTES") => &["many", "1.5", "1s"],
            (_, "DIGITS") => &["7", "-1", "six"],
            (_, "DAYS") => &["2026-13-01..", "2026-11-21..2026-11-20"],
            // Any name is a file, and the other options take no value or any value.
            _ => &[],
        };
        for value in bad {
            let name = option.name();
            let message = error(&format!(".dump {} {name} {value}", kind.name()));
            let (first, second) = (format!("{name}: "), format!("\n  {}", option.help_line()));
            let is_reported = message.starts_with(&first) && message.ends_with(&second);
            let value = value.get(..20).unwrap_or(value);
            assert!(is_reported, "{} {name} {value}: {message}", kind.name());
        }
    });
}

/// Calls `check` with each option of a command, and an argument that makes the line valid.
fn for_each_option_of_a_command(check: impl Fn(&dyn AnyCommand, &str, &'static dyn OptionSpec)) {
    for command in REGISTRY.commands() {
        for option in command.options() {
            let argument = match (command.name(), option.name()) {
                (".converttime", "-time") => "",
                (".converttime", _) => " -time 2",
                (".symbolize" | ".schema" | ".why" | ".diff" | ".alias", _) => "",
                (".sql", _) => " SELECT 1",
                _ => " x",
            };
            check(command, argument, option);
        }
    }
}

#[test]
fn an_option_of_a_command_is_read_by_each_of_its_names_and_sets_something() {
    for_each_option_of_a_command(|command, argument, option| {
        let (_, values) = name_and_values(option);
        let read = |name: &str| {
            let line = format!("{} {name} {values}{argument}", command.name());
            REGISTRY
                .parse(&line)
                .map(|_| meaning(&line))
                .map_err(|error| format!("{line}: {error}"))
        };
        let plain = format!("{}{argument}", command.name());
        let plain = REGISTRY.parse(&plain).map(|_| meaning(&plain));
        let first = read(option.name());
        if !option.has_effect() {
            return;
        }
        assert_ne!(first.as_ref().ok(), plain.as_ref().ok(), "{} sets nothing", option.name());
        for name in option.doc().names {
            assert_eq!(read(name), first);
            assert_eq!(read(&name.to_uppercase()), first);
        }
    });
}

#[test]
fn an_option_of_a_command_is_explained_and_offered() {
    let mut completer = CommandCompleter::new(SharedCompletionValues::default());
    for command in REGISTRY.commands() {
        for option in command.options() {
            for name in option.doc().names {
                let words = [command.name(), name];
                let page = page(&words);
                assert!(page.contains(option.doc().details), "{words:?}: {page}");

                let head = format!("{} {}", command.name(), name.split_at(name.len() - 1).0);
                let CompletionResult::Fresh { suggestions, .. } =
                    completer.complete(&head, head.len())
                else {
                    panic!("{head}: nothing to offer yet")
                };
                let is_offered = suggestions.iter().any(|offer| option.is_named(&offer.value));
                assert!(is_offered, "{head}: {suggestions:?}");
            }
        }
    }
}

#[test]
fn a_misspelt_option_of_a_command_is_reported_with_the_right_one() {
    for_each_option_of_a_command(|command, argument, option| {
        let longest = option.doc().names.iter().max_by_key(|name| name.len()).expect("a name");
        if longest.len() < 4 {
            return;
        }
        let typed = misspelt(longest);
        let message = error(&format!("{} {typed}{argument}", command.name()));
        let is_suggested = message.starts_with(&format!("unknown option {typed}, did you mean -"))
            && message.contains(&option.help_line());
        // An option that does nothing is never suggested.
        assert_eq!(is_suggested, option.has_effect(), "{message}");
    });
}
