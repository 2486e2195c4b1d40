//! Candidates for the last word of a command line.

use std::path::Path;
use std::sync::Arc;

use clap::{Arg, Command};
use handlescope_model::{Trace, Untrusted, is_harmful};

use crate::cli::Cli;
use crate::one_shot::{self, SWITCHES};
use handlescope_commands::completion::{CompletionValues, complete, starts_with};
use handlescope_session::grammar::join;
use handlescope_session::paths::is_extract;
use handlescope_session::trace::TraceValues;

/// Something the last word could be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordCandidate {
    /// The whole word, without quotes.
    pub value: String,
    /// A one-line description.
    pub description: String,
}

impl WordCandidate {
    fn new(value: &str, description: String) -> WordCandidate {
        WordCandidate { value: value.to_owned(), description }
    }
}

/// Commands that allow options between files.
const BETWEEN_FILES: [&str; 7] = [".dump", ".why", ".diff", ".report", ".sql", ".plot", ".flame"];

/// Returns completions of the last word; `words` are the words after the program's name. Returns nothing for files,
/// because shells complete those best.
///
/// After subcommands such as `dump`, completes the console's options, and values from the extracts after `-fd`.
pub fn candidates(words: &[String]) -> Vec<WordCandidate> {
    // Bash splits --color=al into three words.
    let words: Vec<String> = words.iter().filter(|word| *word != "=").cloned().collect();
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    if let Some((option, value)) = last.split_once('=').filter(|_| last.starts_with("--")) {
        let mut candidates = candidates(&[before, &[option.to_owned(), value.to_owned()]].concat());
        for candidate in &mut candidates {
            candidate.value.insert_str(0, &format!("{option}="));
        }
        return candidates;
    }
    let mut candidates = match one_shot::console_line(before) {
        Some(before) => for_console(&before, last),
        None => for_program(before, last),
    };
    if before.is_empty() {
        let switches =
            SWITCHES.iter().filter(|(name, ..)| last.len() > 1 && starts_with(name, last));
        candidates
            .extend(switches.map(|(name, _, about)| WordCandidate::new(name, (*about).to_owned())));
    }
    // A shell reads one candidate per line, and prints and inserts it unchanged.
    candidates.retain(|candidate| !candidate.value.contains(is_harmful));
    for WordCandidate { description, .. } in &mut candidates {
        *description = Untrusted(&*description).to_string();
    }
    candidates
}

/// Returns the completions that the console offers for its commands, and the program's options.
fn for_console(before: &[String], last: &str) -> Vec<WordCandidate> {
    let (mut line, _) = join(before);
    line.push(' ');
    if last.contains([' ', '\t']) {
        line.push('"');
    }
    line.push_str(last);
    let suggestions = complete(&line, &known(before)).into_iter();
    // Candidates without a description are paths, which shells complete best.
    let mut candidates: Vec<WordCandidate> = suggestions
        .filter_map(|offer| {
            Some(WordCandidate::new(offer.value.trim_matches('"'), offer.description?))
        })
        .filter(|candidate| starts_with(&candidate.value, last))
        .collect();
    if !last.starts_with('-') && before.first().is_some_and(|name| BETWEEN_FILES.contains(&&**name))
    {
        // If a file is possible, options are offered only after a dash was typed.
        candidates.retain(|candidate| !candidate.value.starts_with('-'));
        if before.first().is_some_and(|name| name == ".sql") {
            // A shell does not complete words of SQL.
            candidates.clear();
        }
    }
    if last.starts_with("--") {
        let known: Vec<String> = candidates.iter().map(|known| known.value.clone()).collect();
        let options = for_program(&[], last).into_iter();
        candidates.extend(options.filter(|candidate| !known.contains(&candidate.value)));
    }
    candidates
}

/// Returns values for completion from the extracts after `-fd`; a trace would have to be extracted first.
fn known(words: &[String]) -> CompletionValues {
    let pairs = words.iter().zip(words.iter().skip(1));
    let files =
        pairs.filter(|(option, _)| one_shot::names_files(option)).map(|(_, file)| Path::new(file));
    let values = files
        .filter(|file| is_extract(file))
        .filter_map(|file| Trace::open(file).ok())
        .map(|trace| Arc::new(TraceValues::new(Arc::new(trace))))
        .collect();
    CompletionValues { values, ..CompletionValues::default() }
}

/// Returns the program's subcommands and options, from their definition.
fn for_program(before: &[String], last: &str) -> Vec<WordCandidate> {
    let program = Cli::program();
    let command = before.iter().find_map(|word| program.find_subcommand(word));
    let scope = command.unwrap_or(&program);
    if let Some(option) = before.last().and_then(|word| option_named(scope, &program, word)) {
        return values_of(option, last);
    }
    let mut candidates = Vec::new();
    if last.starts_with('-') {
        let options = scope.get_arguments().filter(|option| !option.is_hide_set());
        candidates.extend(options.filter_map(|arg| {
            let value = format!("--{}", arg.get_long()?);
            Some(WordCandidate { value, description: first_line(arg.get_help()) })
        }));
    } else if command.is_none() {
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        candidates.extend(
            visible.map(|action| {
                WordCandidate::new(action.get_name(), first_line(action.get_about()))
            }),
        );
    } else if let Some(positional) = scope.get_positionals().next() {
        candidates = values_of(positional, last);
    }
    candidates.retain(|candidate| starts_with(&candidate.value, last));
    candidates
}

/// Returns the option with this name, if it takes a value.
fn option_named<'a>(scope: &'a Command, program: &'a Command, name: &str) -> Option<&'a Arg> {
    scope.get_arguments().chain(program.get_arguments()).find(|arg| {
        let is_long = arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        let is_short = arg.get_short().is_some_and(|short| *name == format!("-{short}"));
        arg.get_action().takes_values() && (is_long || is_short)
    })
}

fn values_of(option: &Arg, last: &str) -> Vec<WordCandidate> {
    let values = option.get_possible_values();
    let candidates = values
        .iter()
        .map(|value| WordCandidate::new(value.get_name(), first_line(value.get_help())));
    candidates.filter(|candidate| starts_with(&candidate.value, last)).collect()
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        candidates(&words).into_iter().map(|candidate| candidate.value).collect()
    }

    #[test]
    fn subcommands_and_options_come_from_the_definition_of_the_command_line() {
        assert_eq!(of(&["ext"]), ["extract"]);
        assert!(of(&[""]).contains(&"completions".to_owned()));
        assert!(!of(&[""]).contains(&"complete".to_owned()), "hidden");
        assert_eq!(of(&["--symb"]), ["--symbol-path", "--symbol-timeout", "--symbol-max-size"]);
        assert_eq!(of(&["extract", "--out"]), ["--outdir"]);
        assert_eq!(of(&["extract", "--col"]), ["--color"]);
        assert_eq!(of(&["--color", "n"]), ["never"]);
        assert_eq!(of(&["--color", "=", "n"]), ["never"], "as Bash cuts it");
        assert_eq!(of(&["--color=n"]), ["--color=never"]);
        assert_eq!(of(&["completions", "b"]), ["bash"]);
        assert_eq!(of(&["--symbol-path", ""]), Vec::<String>::new());
    }

    #[test]
    fn behind_dump_the_console_completes() {
        for dump in ["dump", "-dump"] {
            assert_eq!(of(&[dump, "obj"]), ["ObjectRef"]);
            assert_eq!(of(&[dump, "ObjectRef", "-Lea"]), ["-Leak", "-LeakAtExit"]);
            assert_eq!(of(&[dump, "ObjectRef", "-ShowTotal", "p"]), ["Process"]);
            assert_eq!(of(&[dump, "ObjectRef", "-fd", "a"]), Vec::<String>::new());
        }
    }

    #[test]
    fn files_are_left_to_the_shell_until_a_dash_is_typed() {
        for command in ["why", "diff", "report", "sql", "plot", "flame"] {
            assert_eq!(of(&[command, ""]), [""; 0], "{command}");
            assert!(!of(&[command, "-"]).is_empty(), "{command}");
        }
        assert_eq!(of(&["dump", "ObjectRef", ""]), [""; 0]);
        assert_eq!(of(&["stats", "-Prop"]), ["-Properties"]);
        assert_eq!(of(&["help", "ob"]), ["ObjectRef"]);
        assert!(of(&["dump", ""]).contains(&"ObjectRef".to_owned()));
    }

    #[test]
    fn options_of_other_commands_are_offered_too() {
        assert_eq!(of(&["-ext"]), ["-extract"]);
        assert_eq!(of(&["-extract", "ObjectRef", "-fd", "a.etl", "-NoO"]), ["-NoOverwrite"]);
        assert_eq!(of(&["convert-time", "-ti"]), ["-time"]);
        assert_eq!(of(&["-console", "-rec"]), ["-recursive"]);
        assert_eq!(of(&["--color", "never", "-DUMP", "-fd", "a b", "obj"]), ["ObjectRef"]);
    }

    #[test]
    fn values_come_from_the_extract_behind_fd() {
        let mut fixture = handlescope_query::fixture::Fixture::new();
        fixture.event_object(Vec::new());
        let saved = fixture.save();
        let path = saved.trace.path().display().to_string();
        assert_eq!(of(&["dump", "ObjectRef", "-fd", &path, "-pn", "chi"]), ["child.exe"]);
        assert_eq!(of(&["dump", "ObjectRef", "-fd", "no.json7z", "-pn", "chi"]), [""; 0]);
    }
}
