//! Completion, from the registry.

use std::sync::PoisonError;

use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::{
    Known, SharedKnown,
    filter_values::{self, FilterValue},
    paths::{self, Wanted, starts_with},
    sql_completer,
};
use crate::{
    command::{DumpWords, Quotes, SqlWords, Token, parse, split},
    registry::{self, Arguments, COMMANDS, KINDS, OptionSpec, TOPICS, ValueKind},
};

/// Completes commands, kinds, options, their values, and files.
pub struct CommandCompleter {
    known: SharedKnown,
}

impl CommandCompleter {
    /// A completer that looks into `known` for what is loaded.
    pub fn new(known: SharedKnown) -> CommandCompleter {
        CommandCompleter { known }
    }
}

impl Completer for CommandCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        CompletionResult::fresh(complete_at(line, pos, &known))
    }
}

/// The word that is being typed, and what comes before it.
struct Position<'a> {
    line: &'a str,
    before: &'a [Token],
    word: &'a str,
    span: Span,
    is_quoted: bool,
}

/// What could stand at the end of `head`, the line up to the cursor.
pub fn complete(head: &str, known: &Known) -> Vec<Suggestion> {
    complete_at(head, head.len(), known)
}

fn complete_at(line: &str, cursor: usize, known: &Known) -> Vec<Suggestion> {
    let head = line.get(..cursor).unwrap_or(line);
    let tokens = split(head);
    let open = tokens
        .split_last()
        .filter(|(last, _)| last.span.end == head.len() && last.quotes != Quotes::Closed);
    let position = match open {
        Some((last, before)) => Position {
            line,
            before,
            word: &last.text,
            span: Span::new(last.span.start, head.len()),
            is_quoted: last.quotes == Quotes::Open,
        },
        None => Position {
            line,
            before: &tokens,
            word: "",
            span: Span::new(head.len(), head.len()),
            is_quoted: false,
        },
    };
    position.suggestions(known)
}

impl Position<'_> {
    fn suggestions(&self, known: &Known) -> Vec<Suggestion> {
        let Some((first, arguments)) = self.before.split_first() else { return self.commands() };
        let Some(command) = registry::command(&first.text) else { return Vec::new() };
        if self.word.starts_with('-') && command.arguments != Arguments::Kind {
            let options = command.options();
            if !options.is_empty() {
                return self.options(&options, &used(&options, arguments));
            }
        }
        if let Some(option) = parse::waiting(&command.options(), arguments) {
            return self.values(option, known);
        }
        match command.arguments {
            Arguments::None => Vec::new(),
            Arguments::Options => {
                let options = command.options();
                self.options(&options, &used(&options, arguments))
            }
            Arguments::Files => self.files(Wanted::Traces),
            Arguments::Folder | Arguments::SymbolPath => self.files(Wanted::Folders),
            Arguments::Tables => self.words(command.arguments.words()),
            Arguments::Sql => self.query(first, arguments),
            Arguments::LoadedFiles => self.loaded(known),
            Arguments::Topic => self.topics(arguments),
            Arguments::Kind => self.dump(arguments, known),
            Arguments::Digits => Vec::new(),
            Arguments::TimeFormat | Arguments::ProcessFormat | Arguments::Switch => {
                self.words(if arguments.is_empty() { command.arguments.words() } else { vec![] })
            }
        }
    }

    /// Inside of a query, which is not made of words between blanks.
    fn query(&self, command: &Token, arguments: &[Token]) -> Vec<Suggestion> {
        // In front of the query there are only options, which have had their turn.
        let start = match SqlWords::of(arguments).and_then(|words| words.query.first()) {
            Some(first) => first.span.start,
            None => self.span.start.max(command.span.end),
        };
        let Some(query) = self.line.get(start..) else { return Vec::new() };
        let (span, candidates) = sql_completer::candidates(query, self.span.end - start);
        let suggestion = |candidate: sql_completer::SqlCandidate| Suggestion {
            value: candidate.text,
            description: Some(candidate.description),
            span: Span::new(start + span.start, start + span.end),
            ..Suggestion::default()
        };
        candidates.into_iter().map(suggestion).collect()
    }

    fn commands(&self) -> Vec<Suggestion> {
        let named = |names: &'static [&'static str]| {
            names.iter().find(|name| starts_with(name, self.word)).copied()
        };
        // A bare word is a command whose dot was forgotten.
        let dotted = format!(".{}", self.word);
        COMMANDS
            .iter()
            .filter_map(|command| {
                let forgotten = || Some(command.name()).filter(|name| starts_with(name, &dotted));
                let name = named(command.names).or_else(forgotten)?;
                Some(self.suggest(name, command.summary))
            })
            .collect()
    }

    fn files(&self, wanted: Wanted) -> Vec<Suggestion> {
        let candidates = paths::candidates(self.word, wanted).into_iter();
        candidates.map(|candidate| self.path(&candidate.path, candidate.is_folder)).collect()
    }

    fn loaded(&self, known: &Known) -> Vec<Suggestion> {
        let loaded = known.loaded.iter().filter(|path| starts_with(path, self.word));
        loaded.map(|path| self.path(path, false)).collect()
    }

    fn topics(&self, arguments: &[Token]) -> Vec<Suggestion> {
        if let Some(kind) = arguments.last().and_then(|word| registry::kind(&word.text)) {
            return self.options(&kind.options(), &[]);
        }
        let kinds = KINDS.iter().map(|kind| (kind.name, kind.summary));
        let commands = COMMANDS.iter().map(|command| (command.name(), command.summary));
        let others = TOPICS.iter().map(|topic| (topic.name, topic.summary));
        let is_alone = arguments.is_empty();
        kinds
            .chain(others.chain(commands).filter(|_| is_alone))
            .filter(|(name, _)| starts_with(name, self.word))
            .map(|(name, summary)| self.suggest(name, summary))
            .collect()
    }

    fn dump(&self, arguments: &[Token], known: &Known) -> Vec<Suggestion> {
        let words = DumpWords::of(arguments);
        // Before the kind is known, options of any kind tell whether a value is due.
        let options = words.options();
        let mut suggestions = Vec::new();
        let last = parse::known_items(&options, &words.others).pop();
        if let Some(parse::Item::Option { spec, values, .. }) = last {
            let (least, most) = spec.value().arity();
            if values.len() < most {
                suggestions = self.values(spec, known);
            }
            if values.len() < least {
                return suggestions;
            }
        }
        match words.kind {
            Some(_) => suggestions.extend(self.options(&options, &used(&options, &words.others))),
            None if self.word.starts_with('-') => suggestions.extend(self.options_once(&options)),
            None => suggestions.extend(self.kinds()),
        }
        suggestions
    }

    fn kinds(&self) -> Vec<Suggestion> {
        let kinds = KINDS.iter().filter(|kind| starts_with(kind.name, self.word));
        kinds.map(|kind| self.suggest(kind.name, kind.summary)).collect()
    }

    /// Options before the kind is known, each once.
    fn options_once(&self, options: &[&'static dyn OptionSpec]) -> Vec<Suggestion> {
        let mut once: Vec<&'static dyn OptionSpec> = Vec::new();
        for option in options {
            if !once.iter().any(|known| known.name() == option.name()) {
                once.push(*option);
            }
        }
        self.options(&once, &[])
    }

    /// Options by the longest of their names that starts with the word; if there is none, options
    /// with the word inside, so that `-stack` finds all about stacks.
    fn options(&self, options: &[&'static dyn OptionSpec], used: &[&str]) -> Vec<Suggestion> {
        let unused = || options.iter().filter(|option| !used.contains(&option.name()));
        let has_effect = |option: &dyn OptionSpec| !matches!(option.value(), ValueKind::Ignored(_));
        let named = |wanted: bool, fits: &dyn Fn(&str) -> bool| -> Vec<Suggestion> {
            unused()
                .filter(|option| has_effect(**option) == wanted)
                .filter_map(|option| {
                    let fitting = option.doc().names.iter().filter(|name| fits(name));
                    let name = fitting.max_by_key(|name| name.len())?;
                    Some(self.suggest(name, option.doc().help))
                })
                .collect()
        };
        // What has no effect is not offered beside what has one.
        let starting = |has_effect| named(has_effect, &|name| starts_with(name, self.word));
        let inside = self.word.trim_start_matches('-').to_lowercase();
        let containing = || {
            let contains = |name: &str| name.to_lowercase().contains(&inside);
            named(true, &|name| self.word.starts_with('-') && contains(name))
        };
        let offers = [&|| starting(true), &|| starting(false), &containing]
            as [&dyn Fn() -> Vec<Suggestion>; 3];
        offers.iter().map(|offer| offer()).find(|offer| !offer.is_empty()).unwrap_or_default()
    }

    fn values(&self, option: &dyn OptionSpec, known: &Known) -> Vec<Suggestion> {
        match option.value() {
            ValueKind::Choice(words) => self.words(words),
            ValueKind::Processes => self.filters(filter_values::processes(self.word, known)),
            ValueKind::Filter(texts) => self.filters(filter_values::texts(self.word, texts, known)),
            ValueKind::File | ValueKind::MaybeFile => self.files(Wanted::Tables),
            ValueKind::Folder => self.files(Wanted::Folders),
            ValueKind::Query => self.files(Wanted::Traces),
            ValueKind::Servers => self.words(registry::SERVERS.to_vec()),
            _ => Vec::new(),
        }
    }

    /// Filters, in quotes where they need them. What is still open stays without blank and quote.
    fn filters(&self, values: Vec<FilterValue>) -> Vec<Suggestion> {
        let suggestion = |value: FilterValue| {
            let needs_quotes = self.is_quoted || value.filter.contains([' ', '\t']);
            let end = if value.is_open { "" } else { "\"" };
            Suggestion {
                value: match needs_quotes {
                    true => format!("\"{}{end}", value.filter),
                    false => value.filter,
                },
                display_override: Some(value.value),
                description: Some(value.description),
                span: self.span,
                append_whitespace: !value.is_open,
                ..Suggestion::default()
            }
        };
        values.into_iter().map(suggestion).collect()
    }

    fn words(&self, words: Vec<(&str, &str)>) -> Vec<Suggestion> {
        let words = words.into_iter().filter(|(word, _)| starts_with(word, self.word));
        words.map(|(word, help)| self.suggest(word, help)).collect()
    }

    fn suggest(&self, value: &str, description: &str) -> Suggestion {
        Suggestion {
            value: value.to_owned(),
            description: Some(description.to_owned()),
            span: self.span,
            append_whitespace: true,
            ..Suggestion::default()
        }
    }

    /// A path, in quotes where it needs them. The quotes around a folder stay open for what follows.
    fn path(&self, path: &str, is_folder: bool) -> Suggestion {
        let needs_quotes = self.is_quoted || path.contains([' ', '\t']);
        let value = match (needs_quotes, is_folder) {
            (false, _) => path.to_owned(),
            (true, true) => format!("\"{path}"),
            (true, false) => format!("\"{path}\""),
        };
        Suggestion {
            value,
            display_override: Some(path.to_owned()),
            span: self.span,
            append_whitespace: !is_folder,
            ..Suggestion::default()
        }
    }
}

/// The options that are there already.
fn used(options: &[&'static dyn OptionSpec], tokens: &[Token]) -> Vec<&'static str> {
    let is_there =
        |option: &&&dyn OptionSpec| tokens.iter().any(|word| option.is_named(&word.text));
    options.iter().filter(is_there).map(|option| option.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(head: &str) -> Vec<String> {
        let loaded = vec!["/t/leaky.etl".into(), "/t/my trace.etl".into()];
        let known = Known { loaded, values: Vec::new() };
        complete(head, &known).into_iter().map(|suggestion| suggestion.value).collect()
    }

    #[test]
    fn commands_are_offered_first_and_a_forgotten_dot_is_added() {
        assert_eq!(offered("").len(), COMMANDS.len());
        assert_eq!(offered(".l"), [".load", ".load+", ".list"]);
        assert_eq!(offered(".DU"), [".dump"]);
        assert_eq!(offered("du"), [".dump"]);
        assert_eq!(offered(".ex"), [".extract", ".export", ".exit"]);
        assert_eq!(offered(".nonsense "), Vec::<String>::new());
        assert_eq!(offered(".quit "), Vec::<String>::new());
    }

    #[test]
    fn kinds_come_after_dump_and_options_after_the_kind() {
        assert_eq!(
            offered(".dump "),
            ["ObjectRef", "Process", "Module", "Version", "Stack", "Symbols", "Stats"]
        );
        assert_eq!(offered(".dump obj"), ["ObjectRef"]);
        assert_eq!(
            offered(".dump ObjectRef -show"),
            [
                "-ShowStack",
                "-ShowAddress",
                "-ShowLine",
                "-ShowTotal",
                "-ShowRef",
                "-ShowFullFileName"
            ]
        );
        assert_eq!(offered(".dump ObjectRef -pn"), ["-pn"]);
        assert_eq!(offered(".dump Stats -"), ["-filedir", "-json", "-json-pretty"]);
        assert_eq!(offered(".dump -Lea"), ["-Leak"]);
        assert_eq!(offered(".dump -json"), ["-json", "-json-pretty"]);
        assert_eq!(
            offered(".dump -Leak "),
            ["ObjectRef", "Process", "Module", "Version", "Stack", "Symbols", "Stats"]
        );
    }

    #[test]
    fn options_of_commands_are_offered_and_their_values() {
        assert_eq!(offered(".extract a.etl -noo"), ["-NoOverwrite"]);
        assert_eq!(offered(".converttime "), ["-time", "-filedir"]);
        assert_eq!(offered(".converttime -time "), Vec::<String>::new());
        assert_eq!(offered(".converttime -fd "), ["leaky.etl", "\"my trace.etl\""]);
    }

    #[test]
    fn an_option_is_offered_once_and_found_by_a_part_of_its_name() {
        let offers = offered(".dump ObjectRef -ss -");
        assert!(!offers.iter().any(|name| name == "-ShowStack"));
        assert_eq!(
            offered(".dump ObjectRef -stack"),
            ["-StackFilter"],
            "a name that starts so goes first"
        );
        assert_eq!(offered(".dump ObjectRef -estack"), ["-CreateStack"]);
    }

    #[test]
    fn values_are_offered_where_they_are_due_and_options_where_they_may_be() {
        assert_eq!(offered(".dump ObjectRef -ShowTotal "), ["Total", "Process", "File", "None"]);
        assert_eq!(offered(".dump ObjectRef -ShowTotal p"), ["Process"]);
        assert_eq!(offered(".dump ObjectRef -pn "), Vec::<String>::new());
        assert_eq!(offered(".dump -pn "), Vec::<String>::new());
        assert!(offered(".dump ObjectRef -TopN 5 ").contains(&"-Leak".to_owned()));
        assert!(offered(".dump ObjectRef -TopN 5 2 -le").contains(&"-Leak".to_owned()));
    }

    #[test]
    fn options_of_commands_are_offered_and_folders_where_only_they_are_meant() {
        assert_eq!(offered(".load -"), ["-recursive", "-all", "-MaxSize", "-filedir"]);
        assert_eq!(offered(".dir -r -"), ["-od"]);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.etl"), "").expect("a file");
        std::fs::create_dir(folder.path().join("b")).expect("a folder");
        let below = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
        assert_eq!(offered(&format!(".load {below}")).len(), 2);
        let b = format!("{below}b{}", std::path::MAIN_SEPARATOR);
        assert_eq!(offered(&format!(".cd {below}")), [b]);
    }

    #[test]
    fn options_without_effect_are_offered_only_when_nothing_else_fits() {
        assert!(!offered(".dump ObjectRef -").contains(&"-nocolor".to_owned()));
        assert_eq!(offered(".dump ObjectRef -nocol"), ["-nocolor"]);
    }

    #[test]
    fn help_offers_topics() {
        assert_eq!(offered(".help ob"), ["ObjectRef"]);
        assert_eq!(offered(".help fi"), ["filters"]);
        assert_eq!(offered(".help .d"), [".dir", ".dump"]);
        assert_eq!(offered(".help .dump st"), ["Stack", "Stats"]);
        assert_eq!(offered(".help ObjectRef -le"), ["-Leak"]);
    }

    #[test]
    fn paths_with_blanks_are_quoted() {
        assert_eq!(offered(".unload "), ["/t/leaky.etl", "\"/t/my trace.etl\""]);
        assert_eq!(offered(".unload \"/t/my t"), ["\"/t/my trace.etl\""]);
    }

    #[test]
    fn a_suggestion_replaces_the_word_and_no_more() {
        let first = complete(".dump obj", &Known::default()).remove(0);
        assert_eq!((first.span.start, first.span.end), (6, 9));
        assert!(first.append_whitespace);
    }
}
