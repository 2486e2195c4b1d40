//! Promises about every option of every kind: it is parsed, explained, offered and coloured.

use std::collections::HashMap;
use std::io;

use reedline::{Completer, CompletionResult, Highlighter};

use super::highlighter::CommandHighlighter;
use handlescope_commands::AnyCommand;
use handlescope_commands::completion::{CommandCompleter, SharedKnown};
use handlescope_commands::console::Console;
use handlescope_commands::registry::REGISTRY;
use handlescope_session::cancel::Cancel;
use handlescope_session::grammar::{OptionSpec, ValueKind, split};
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{Messages, Screen};

/// Meaning of a line, without the line itself.
fn meaning(line: &str) -> String {
    let parsed = REGISTRY.parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    format!("{parsed:?}").replace(&format!("{:?}", line.trim()), "")
}

/// A page of the help.
fn page(words: &[&str]) -> String {
    let mut out = Vec::new();
    let mut console = Console::new(Settings::colorless(), Cancel::default());
    let line = format!(".help {}", words.join(" "));
    let run = console.run(&line, &mut out, &mut Messages::new(&mut io::sink(), Screen::PLAIN));
    run.unwrap_or_else(|error| panic!("{line}: {error}"));
    String::from_utf8(out).expect("text")
}

fn error(line: &str) -> String {
    REGISTRY.parse(line).expect_err(line).to_string()
}

/// Calls `check` with each option and its kind.
fn for_each_option(check: impl Fn(&dyn AnyCommand, &'static dyn OptionSpec)) {
    for kind in REGISTRY.kinds() {
        for option in kind.options() {
            check(*kind, option);
        }
    }
}

/// The part of the option's example that is about itself: one of its names, and values.
fn name_and_values(option: &dyn OptionSpec) -> (String, String) {
    let tokens = split(option.doc().example);
    let index = tokens.iter().position(|token| option.is_named(&token.text)).expect("its example");
    let values = tokens.iter().skip(index + 1).take_while(|token| !token.is_switch());
    let values: Vec<&str> = values.map(|token| token.text.as_str()).collect();
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
        let active = options.iter().filter(|o| !matches!(o.value(), ValueKind::Ignored(_)));
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
    let mut completer = CommandCompleter::new(SharedKnown::default());
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

/// The words of a line that are marked as wrong.
fn wrong(line: &str) -> Vec<String> {
    let styled = CommandHighlighter::new(SharedKnown::default()).highlight(line, line.len());
    let marked = styled.buffer.into_iter().filter(|(style, _)| style.is_underline);
    marked.map(|(_, text)| text).collect()
}

#[test]
fn an_option_and_its_values_are_not_marked_as_wrong_but_its_misspelling_is() {
    for_each_option(|kind, option| {
        let (_, values) = name_and_values(option);
        for name in option.doc().names {
            let line = format!(".dump {} {name} {values} ", kind.name());
            assert!(wrong(&line).is_empty(), "{line}: {:?}", wrong(&line));
            let misspelt = format!("{name}qq");
            let line = format!(".dump {} {misspelt} ", kind.name());
            assert_eq!(wrong(&line), [misspelt], "{line}");
        }
    });
}

/// The name with two of its inner letters in the wrong order.
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
            if option.value().arity().0 == 0 {
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
        let bad: &[&str] = match option.value() {
            // Any name is a file, and these have no value or take any.
            ValueKind::None
            | ValueKind::Ignored(_)
            | ValueKind::File
            | ValueKind::MaybeFile
            | ValueKind::Folder
            | ValueKind::Query
            | ValueKind::Column
            | ValueKind::Columns
            | ValueKind::Text(..)
            | ValueKind::Pair(_)
            | ValueKind::Point(_) => &[],
            ValueKind::Filter(_) | ValueKind::Processes => &[&filter],
            ValueKind::Seconds => &["soon", "1,5", "2 1", "1KB"],
            ValueKind::Length => &["soon", "1,5", "1KB"],
            ValueKind::Count(_) => &["many", "1.5", "2 1", "1s"],
            ValueKind::Top => &["all", "-1", "1.5", "5 x"],
            ValueKind::Address => &["here", "0x", "0x1ffffffffffffffff"],
            ValueKind::Choice(_) | ValueKind::MaybeChoice(_) => &["nonsense"],
            ValueKind::List(_) => &["nonsense", "type,nonsense", "type,"],
            ValueKind::Number { .. } => &["many", "1.5", "0"],
            ValueKind::Size => &["many", "1.5", "1s"],
            ValueKind::Digits => &["7", "-1", "six"],
            ValueKind::Servers => &["syngo", "ftp://x"],
            ValueKind::Days => &["2026-13-01..", "2026-11-21..2026-11-20"],
            ValueKind::Suspect => &["3f2", "leaky", "0x3f2a", "0123456789a"],
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

/// A command's own options with an argument that lets the line be read.
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
        if matches!(option.value(), ValueKind::Ignored(_)) {
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
fn an_option_of_a_command_is_explained_offered_and_coloured() {
    let mut completer = CommandCompleter::new(SharedKnown::default());
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

                let (_, values) = name_and_values(option);
                let line = format!("{} {name} {values} ", command.name());
                assert!(wrong(&line).is_empty(), "{line}: {:?}", wrong(&line));
                let line = format!("{} {name}qq ", command.name());
                assert_eq!(wrong(&line), [format!("{name}qq")], "{line}");
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
        // One that does nothing is never suggested.
        assert_eq!(is_suggested, option.has_effect(), "{message}");
    });
}
