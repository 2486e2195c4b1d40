//! Tests of help pages.

use super::*;
use crate::registry::REGISTRY;
use crate::topics::TOPICS;
use handlescope_session::terminal::Screen;

fn page(words: &[&str], screen: Screen) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut out = Vec::new();
    let topic =
        topic(&words, REGISTRY, Aliases::NONE).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    write(topic, Aliases::NONE, HelpPage::new(&mut out, screen, REGISTRY, Syntax::Prompt))
        .expect("a page");
    String::from_utf8(out).expect("text")
}

const NARROW: Screen = Screen { width: Some(80), color: false };

/// Returns the names of all commands and kinds.
fn names() -> impl Iterator<Item = &'static str> {
    let commands = REGISTRY.commands().map(|command| command.name());
    commands.chain(REGISTRY.kinds().map(|kind| kind.name()))
}

#[test]
fn the_list_names_every_command_and_kind() {
    let page = page(&[], Screen::PLAIN);
    for name in names() {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn a_kind_is_found_with_and_without_the_command() {
    let short = page(&["objectref"], NARROW);
    assert_eq!(short, page(&[".dump", "ObjectRef"], NARROW));
    for option in REGISTRY.kind("ObjectRef").expect("a kind").options() {
        assert!(short.contains(option.name()), "{}", option.name());
    }
}

#[test]
fn no_page_is_wider_than_the_terminal_and_none_is_colored_unasked() {
    let topics = names();
    for topic in topics {
        let page = page(&[topic], NARROW);
        assert!(!page.contains('\u{1b}'), "{topic}");
        for line in page.lines() {
            // Long examples are not broken, so that they can be copied.
            let is_example = [".dump ", ".sql ", "srv*"].iter().any(|start| line.contains(start));
            assert!(is_example || line.chars().count() <= 96, "{topic}: {line}");
        }
    }
}

#[test]
fn a_pipe_gets_a_line_for_each_option() {
    let page = page(&["ObjectRef"], Screen::PLAIN);
    let line = page.lines().find(|line| line.contains("-ShowTotal ")).expect("a line");
    let help = REGISTRY.kind("ObjectRef").and_then(|kind| kind.option("-ShowTotal"));
    assert!(line.ends_with(help.expect("an option").doc().help), "{line}");
}

#[test]
fn an_option_is_explained_alone_or_behind_its_kind() {
    let text = page(&["-showtotal"], Screen::PLAIN);
    assert!(text.contains("handles by process"));
    assert_eq!(text, page(&[".dump", "ObjectRef", "-ShowTotal"], Screen::PLAIN));
}

#[test]
fn every_option_of_a_command_is_explained_alone_and_behind_its_command() {
    for command in REGISTRY.commands() {
        for option in command.options() {
            assert!(page(&[option.name()], Screen::PLAIN).starts_with(option.name()));
            let text = page(&[command.name(), option.name()], Screen::PLAIN);
            assert!(text.starts_with(&option.usage()), "{} {}", command.name(), option.name());
            assert_eq!(
                text,
                page(&[command.name().trim_start_matches('.'), option.name()], Screen::PLAIN)
            );
        }
    }
}

#[test]
fn an_unknown_topic_names_the_nearest() {
    let error = topic(&["objectreff".into()], REGISTRY, Aliases::NONE).map(drop).expect_err("none");
    assert_eq!(error.to_string(), "no help on 'objectreff', did you mean ObjectRef?");
}

#[test]
fn an_option_is_found_without_its_dash_and_a_misspelt_one_with_its_line() {
    assert_eq!(page(&["leak"], Screen::PLAIN), page(&["-Leak"], Screen::PLAIN));
    let error = topic(&["-Leek".into()], REGISTRY, Aliases::NONE).map(drop).expect_err("none");
    let error = error.to_string();
    assert!(error.starts_with("no help on '-Leek', did you mean -Leak?\n  -Leak  "), "{error}");
}

#[test]
fn a_word_of_an_answer_is_explained() {
    assert_eq!(
        page(&["STEADY"], USUAL),
        "steady  kept handles, opened at one rate to the end of trace or process: a leak\n\n\
         .help growth has the other words for how a group of handles grows.\n"
    );
    for topic in TOPICS.iter().filter(|topic| ["growth", "causes"].contains(&topic.name)) {
        for (word, meaning) in topic.rows() {
            assert!(page(&[word], Screen::PLAIN).contains(meaning), "{word}");
        }
    }
}

/// Wide enough for a sentence, but narrow enough to read.
const USUAL: Screen = Screen { width: Some(100), color: false };

#[test]
fn the_page_of_object_ref_is_short() {
    let page = page(&["ObjectRef"], USUAL);
    assert!(page.lines().count() <= 96, "{} lines:\n{page}", page.lines().count());
}

#[test]
fn examples_of_a_kind_are_whole_on_a_narrow_screen() {
    let example = ".dump ObjectRef -Leak -LeakAtExit -GroupBy process,type,createstack -ss";
    for width in [80, 100, 120] {
        let page = page(&["ObjectRef"], Screen { width: Some(width), color: false });
        let line = format!("\n  {example}");
        assert!(page.contains(&line), "{width}: {page}");
    }
}

#[test]
fn options_without_effect_have_no_line_of_their_own() {
    let page = page(&["ObjectRef"], Screen::PLAIN);
    let line = page.lines().find(|line| line.contains("-LastNDays")).expect("a line");
    assert!(line.contains("-TestsPerRun") && line.contains("-debug"), "{line}");
}

#[test]
fn topics_fit_on_a_small_screen() {
    for topic in TOPICS {
        let page = page(&[&topic.name.to_uppercase()], USUAL);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), topic.rows().len() + 1, "{page}");
        assert!(lines.len() <= 18 && lines.iter().all(|l| l.chars().count() <= 100), "{page}");
    }
}
