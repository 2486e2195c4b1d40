//! Texts of the command line in words of tools: what a message tells a user to type, an agent has to call.
//!
//! Phrases that mean something else to an agent are listed. In all other texts, a command becomes the tool that answers as
//! it does, and an option the argument that stands for it. A clause about what no tool has is left out.

use std::collections::HashSet;
use std::sync::OnceLock;

use handlescope_commands::registry::registry;
use serde_json::Value;

use super::tools::{TOOLS, Tool, ToolWork};

/// Texts of the command line, and what an agent is told instead.
const PHRASES: [(&str, &str); 22] = [
    ("; extract with -stacks all for those of every event", ""),
    (
        "close of a handle opened before the trace",
        "close of a handle opened before the trace: no leak is affected",
    ),
    (
        "closes of handles opened before the trace",
        "closes of handles opened before the trace: no leak is affected",
    ),
    (".dump Symbols lists why", "the tool symbols lists why"),
    ("; see .help .sympath", ": load with `symbols`"),
    ("see .help .sympath", "load with `symbols`"),
    (".sympath or --symbol-path sets where to look", "`symbols` of load says where to look"),
    (", and its file ends in .sql; .help sql has examples", ""),
    (".help sql lists the tables and has examples", "the tool schema lists the tables"),
    (".help lists what there is", "resources/list has the pages about words of tools"),
    ("please report it with the command line", "please report it with the arguments"),
    (", or raise the limit with -MaxMemory", ""),
    ("load one with .load FILE", "call load first"),
    ("raise the limit with -MaxSize of .load or .extract", "the server's user can extract it"),
    (".list shows what is loaded", "the tool stats lists the loaded traces"),
    (".dump ObjectRef -ShowTotal counts them", "the tool groups counts them"),
    (
        ".dump Why lists the ids, and an id made with symbols needs the same symbols",
        "why lists the ids, and an id made with symbols needs the same symbols: load with `symbols`",
    ),
    ("; -recursive searches subfolders, too", "; `recursive` searches subfolders, too"),
    (", which -TimeFmt s shows", ""),
    (
        ".diff -build BEFORE AFTER; .dump ObjectRef -GroupBy build lists them",
        "name two in `builds`; the tool groups lists them `by` build",
    ),
    ("name nothing else, and use .load", "name nothing else in `paths`, and leave out `append`"),
    (
        "handlescope dataset list shows the ids",
        "the tool sql lists the ids: SELECT trace FROM traces",
    ),
];

/// Beginnings of notes about what was done, which limits no answer.
const NOTES: [&str; 2] = ["loaded ", "note: -fd "];

/// Ends of clauses, and what separates them from the clause in front.
const CLAUSE_END: &str = "; ";
const CLAUSE_STARTS: [&str; 2] = [CLAUSE_END, ", "];

/// The command of debuggers that has the name of one of the console, and how it goes on.
const OF_DEBUGGERS: (&str, &str) = (".dump", " /m");

/// Most words of one line that are looked at.
const MAX_FOREIGN: usize = 32;

/// Bytes of the shortest word that is taken for a command or an option.
const MIN_WORD: usize = 3;

/// A message of a command as a warning of an answer; `None` for one that limits none.
pub fn as_warning(tool: &Tool, line: &str) -> Option<String> {
    let text = match line.strip_prefix("warning: ") {
        // The document counts them.
        Some(text) if text.ends_with(" got worse") => return None,
        Some(text) => text,
        // What an extraction read: it always counts lost events.
        None if line.contains(" lost event") => return None,
        None if NOTES.iter().any(|note| line.starts_with(note)) => return None,
        None => line.strip_prefix("note: ").unwrap_or(line),
    };
    Some(in_words_of_tools(Some(tool), text))
}

/// A text with tools and arguments in the place of commands and options. If several tools have an argument for an option,
/// the called tool comes first.
pub fn in_words_of_tools(tool: Option<&Tool>, text: &str) -> String {
    let mut text = text.to_owned();
    for (phrase, instead) in PHRASES {
        text = text.replace(phrase, instead);
    }
    for known in TOOLS {
        if let ToolWork::Dump { kind, .. } = known.work {
            text = text.replace(&format!(".dump {kind} "), &format!("{} ", known.name));
        }
    }
    text.lines().map(|line| without_foreign(with_names(tool, line))).collect::<Vec<_>>().join("\n")
}

/// Puts tools and arguments in the place of commands and options in all texts of a value.
pub fn translate(tool: &Tool, value: &mut Value) {
    match value {
        Value::String(text) => *text = in_words_of_tools(Some(tool), text),
        Value::Array(items) => items.iter_mut().for_each(|item| translate(tool, item)),
        Value::Object(members) => members.values_mut().for_each(|value| translate(tool, value)),
        _ => {}
    }
}

/// A line with the names of tools and arguments that stand for words of it.
fn with_names(tool: Option<&Tool>, line: &str) -> String {
    let name_of = |word: &str| -> Option<String> {
        if let Some(command) = word.strip_prefix('.') {
            return TOOLS.iter().find(|tool| tool.name == command).map(|tool| tool.name.to_owned());
        }
        let known =
            tool.into_iter().chain(TOOLS).flat_map(Tool::options).find(|(known, _)| *known == word);
        known.map(|(_, name)| format!("`{name}`"))
    };
    let mut named = String::new();
    let mut rest = 0;
    for (start, word) in foreign_words(line).take(MAX_FOREIGN) {
        if let Some(name) = name_of(word) {
            named.push_str(line.get(rest..start).unwrap_or_default());
            named.push_str(&name);
            rest = start + word.len();
        }
    }
    named + line.get(rest..).unwrap_or_default()
}

/// A line without the clauses that name a command or an option of the command line. Of a line that is about one, the word
/// stays. Names in traces may have any number of such words, so the rest of the line is cut after some.
fn without_foreign(mut line: String) -> String {
    for _ in 0..MAX_FOREIGN {
        let Some((start, word)) = foreign_words(&line).next() else { return line };
        let (before, after) = line.split_at(start);
        let clause = CLAUSE_STARTS.iter().filter_map(|mark| before.rfind(mark)).max();
        let end = after.find(CLAUSE_END).map_or(line.len(), |end| start + end);
        match clause {
            Some(clause) => line.replace_range(clause..end, ""),
            None => {
                let marks = word.len() - word.trim_start_matches(['.', '-']).len();
                line.replace_range(start..start + marks, "");
            }
        }
    }
    let kept = foreign_words(&line).next().map(|(start, _)| start);
    if let Some(kept) = kept {
        line.truncate(kept);
        line.push('…');
    }
    line
}

/// Commands and options of the command line in a text, each with where it starts. Code between backticks is left alone: it
/// is for another program, as in `wpr -start Handle`.
fn foreign_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_paired = text.matches('`').count().is_multiple_of(2);
    let mut next = 0;
    text.split('`').enumerate().flat_map(move |(number, part)| {
        let at = next;
        next += part.len() + 1;
        let is_outside = number % 2 == 0 || !is_paired;
        let words = words_of(part);
        let foreign =
            words.filter(move |(start, word)| is_outside && is_foreign(part, *start, word));
        foreign.map(move |(start, word)| (at + start, word))
    })
}

/// The words of a text without the punctuation around them, each with where it starts.
fn words_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "+-_.".contains(letter);
    text.split_inclusive(char::is_whitespace)
        .scan(0, |next, piece| {
            let at = *next;
            *next += piece.len();
            Some((at, piece))
        })
        .map(move |(at, piece)| {
            let word = piece.trim_start_matches(['(', '\'', '"']);
            let start = at + piece.len() - word.len();
            let length = word.find(|letter: char| !is_of_word(letter)).unwrap_or(word.len());
            (start, word.get(..length).unwrap_or_default().trim_end_matches(['.', '-', '+']))
        })
}

/// Whether a word of a text is a command of the console or an option.
fn is_foreign(text: &str, start: usize, word: &str) -> bool {
    if word.starts_with("--") {
        let name = word.trim_start_matches('-');
        return name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    }
    let rest = text.get(start + word.len()..).unwrap_or_default();
    let is_of_debuggers = word == OF_DEBUGGERS.0 && rest.starts_with(OF_DEBUGGERS.1);
    let is_possible = word.len() >= MIN_WORD && word.starts_with(['.', '-']) && !is_of_debuggers;
    is_possible && names().contains(&word.to_ascii_lowercase())
}

/// Names of all commands and options, in lower case.
fn names() -> &'static HashSet<String> {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let registries = [false, true].map(registry);
        let options = registries.iter().flat_map(|all| all.options());
        let options = options.flat_map(|option| option.doc().names.to_vec());
        let commands = registries
            .iter()
            .flat_map(|all| all.commands())
            .flat_map(|command| command.signature().names.to_vec());
        options.chain(commands).map(str::to_ascii_lowercase).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tool: &str, text: &str) -> String {
        in_words_of_tools(Some(Tool::named(tool).expect("a tool")), text)
    }

    #[test]
    fn a_message_names_tools_and_arguments() {
        for (tool, text, expected) in [
            (
                "why",
                "no trace is loaded; load one with .load FILE",
                "no trace is loaded; call load first",
            ),
            (
                "objects",
                "nothing matches: none of 8 handles passes -Type Evnt, did you mean -Type Event?",
                "nothing matches: none of 8 handles passes `type` Evnt, did you mean `type` Event?",
            ),
            ("objects", "none passes -pn x", "none passes `creator` x"),
            ("why", "none passes -pn x", "none passes `process` x"),
            (
                "why",
                "no handle events; its allocations are in .dump Resource and .why; for handles record with \
                 `wpr -start Handle`, reproduce the leak",
                "no handle events; its allocations are in allocations and why; for handles record with \
                 `wpr -start Handle`, reproduce the leak",
            ),
            (
                "diff",
                "3 traces are loaded, but .diff compares two; choose them with -fd, or name a point in time",
                "3 traces are loaded, but diff compares two; choose them with `files`, or name a point in time",
            ),
            (
                "load",
                "fleet: this works on traces, and a dataset is loaded; .load ID loads the extract of one of its traces",
                "fleet: this works on traces, and a dataset is loaded; load ID loads the extract of one of its traces",
            ),
        ] {
            assert_eq!(told(tool, text), expected);
        }
    }

    #[test]
    fn a_clause_about_what_no_tool_has_is_left_out() {
        for (text, expected) in [
            ("'x' is no point; .snapshot lists the snapshots", "'x' is no point"),
            (
                "no symbols for a.exe; --symserver ms downloads symbols; b",
                "no symbols for a.exe; b",
            ),
            (
                "cannot be written: no space; choose a folder with --outdir",
                "cannot be written: no space",
            ),
            (".list is all", "list is all"),
            ("unloaded /a/b; .load /a/b loads it again", "unloaded /a/b; load /a/b loads it again"),
            ("a\n(see .help growth), b -Ignored", "a\n(see help growth)"),
        ] {
            assert_eq!(told("why", text), expected);
        }
    }

    #[test]
    fn a_name_of_many_such_words_ends_the_text_early_and_soon() {
        let start = std::time::Instant::now();
        for hostile in ["a, -Ignored; ", ".list ", "--x; ", "`-Ignored "] {
            let text = told("why", &hostile.repeat(20_000));
            assert_eq!(foreign_words(&text).next(), None, "{}", text.len());
        }
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }

    #[test]
    fn what_is_typed_elsewhere_and_names_of_files_stay() {
        for text in [
            "write it with .dump /mh FILE in WinDbg or cdb, procdump -ma, or MiniDumpWriteDump",
            "record with `handlescope record --clr`",
            "C:\\traces\\a.load: is no trace, -1 and x-Leak and a-b",
            "neither handle tracing (!htrace -enable) nor Application Verifier was on",
            "one ` mark",
        ] {
            assert_eq!(told("why", text), text);
        }
    }
}
