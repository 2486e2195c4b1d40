//! Completion of command lines, based on the registry.

mod filter_values;
mod paths;
mod sql_completer;

use handlescope_model::{Untrusted, guard::lock};
use reedline::{Completer, CompletionResult, Span, Suggestion};

pub use self::filter_values::{CompletionValues, KnownViews, SharedCompletionValues};
pub use self::paths::starts_with;
pub use self::sql_completer::{is_keyword, is_word, keywords};

use self::filter_values::FilterValue;
use self::paths::FileFilter;
use crate::registry::registry;
use crate::{
    Pipe, Registry, dump::DumpWords, settings::USUAL, shared::symbols::SERVERS, sql::SqlWords,
};
use handlescope_session::grammar::{
    Arguments, OptionSpec, Quotes, Redirect, Token, definition_start, parse, split, value::Offers,
};
use handlescope_session::settings::{AliasExpansion, SettingKey};
use handlescope_session::values::ColumnChoice;

/// Completes commands, kinds, options, their values, and files.
pub struct CommandCompleter {
    known: SharedCompletionValues,
}

impl CommandCompleter {
    /// Creates a completer that looks up in `known` what is loaded.
    pub fn new(known: SharedCompletionValues) -> CommandCompleter {
        CommandCompleter { known }
    }
}

impl Completer for CommandCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let known = lock(&self.known);
        let suggestions = complete_at(line, pos, &known).into_iter().map(shown);
        CompletionResult::fresh(suggestions.collect::<Vec<_>>())
    }
}

/// Makes texts printable in a menu. The inserted text stays unchanged, so that it matches.
fn shown(suggestion: Suggestion) -> Suggestion {
    Suggestion {
        display_override: Some(Untrusted(suggestion.display_value()).to_string()),
        description: suggestion.description.map(|text| Untrusted(text).to_string()),
        ..suggestion
    }
}

/// The word being typed, and what comes before it.
struct WordPosition<'a> {
    line: &'a str,
    before: &'a [Token],
    word: &'a str,
    span: Span,
    is_quoted: bool,
    /// The commands for traces, or for the loaded dataset.
    registry: Registry,
}

/// Returns suggestions for the end of `head`, the line up to the cursor.
pub fn complete(head: &str, known: &CompletionValues) -> Vec<Suggestion> {
    complete_at(head, head.len(), known)
}

fn complete_at(line: &str, cursor: usize, known: &CompletionValues) -> Vec<Suggestion> {
    if let Some(AliasExpansion { line, typed_start, start }) = known.aliases.expanded(line)
        && let Some(behind) = cursor.checked_sub(typed_start).filter(|behind| *behind > 0)
    {
        let suggestions = complete_at(&line, start + behind, known);
        return moved(suggestions, |position| (position + typed_start).saturating_sub(start));
    }
    let head = line.get(..cursor).unwrap_or(line);
    let tokens = split(head);
    let open = tokens
        .split_last()
        .filter(|(last, _)| last.span.end == head.len() && last.quotes != Quotes::Closed);
    let (before, word, start, is_quoted) = match open {
        Some((last, before)) => {
            (before, last.text.as_str(), last.span.start, last.quotes == Quotes::Open)
        }
        None => (&tokens[..], "", head.len(), false),
    };
    let span = Span::new(start, head.len());
    let registry = registry(known.over_dataset);
    WordPosition { line, before, word, span, is_quoted, registry }.suggestions(known)
}

/// Moves suggestions to another line, where the replaced text is at another position.
fn moved(mut suggestions: Vec<Suggestion>, position: impl Fn(usize) -> usize) -> Vec<Suggestion> {
    for Suggestion { span, .. } in &mut suggestions {
        *span = Span::new(position(span.start), position(span.end));
    }
    suggestions
}

impl WordPosition<'_> {
    fn suggestions(&self, known: &CompletionValues) -> Vec<Suggestion> {
        let Some((first, arguments)) = self.before.split_first() else {
            return self.commands(known);
        };
        let Some(command) = self.registry.command_of_line(&first.text) else { return Vec::new() };
        let takes = command.signature().arguments;
        let head = self.line.get(..self.span.start).unwrap_or(self.line);
        if let Some(program) = Pipe::from_command(takes, head, arguments).program {
            return if program.is_empty() { self.programs() } else { self.files(FileFilter::All) };
        }
        if matches!(takes, Arguments::Alias)
            && let Some(start) = definition_start(self.line, arguments)
            && let Some(line) = self.line.get(start..)
        {
            let suggestions = complete_at(line, self.span.end - start, known);
            return moved(suggestions, |position| position + start);
        }
        // In a query, > is a comparison.
        if Redirect::without_file(arguments).is_some() && !matches!(takes, Arguments::Sql) {
            return self.files(FileFilter::Tables);
        }
        if self.word.starts_with('-') && !matches!(takes, Arguments::Kind) {
            let options = command.options();
            if !options.is_empty() {
                return self.options(&options, arguments);
            }
        }
        if let Some(option) = parse::incomplete_option(&command.options(), arguments) {
            return match takes {
                Arguments::Alias => self.aliases(known),
                _ => self.values(option, known),
            };
        }
        match takes {
            Arguments::None => Vec::new(),
            Arguments::Options => {
                let options = command.options();
                self.options(&options, arguments)
            }
            Arguments::Points(most) => {
                let options = command.options();
                let is_next = parse::words(&options, arguments).len() < most;
                let mut suggestions =
                    if is_next { self.beginning(&known.snapshots) } else { Vec::new() };
                suggestions.extend(self.options(&options, arguments));
                suggestions
            }
            Arguments::Files => self.files(FileFilter::Traces),
            Arguments::Folder | Arguments::SymbolPath => self.files(FileFilter::Folders),
            Arguments::Relations => self.relations(known),
            Arguments::Word(words) => {
                self.words(if arguments.is_empty() { words() } else { Vec::new() })
            }
            Arguments::Sql => self.query(first, arguments, known),
            Arguments::LoadedFiles => self.beginning(&known.loaded),
            Arguments::Topic => self.topics(arguments, known),
            Arguments::Setting => self.settings(arguments),
            Arguments::Alias if arguments.is_empty() => self.aliases(known),
            Arguments::Alias => Vec::new(),
            Arguments::Kind => self.dump(arguments, known),
        }
    }

    /// Returns suggestions inside a query, because its words are not just separated by spaces.
    fn query(
        &self,
        command: &Token,
        arguments: &[Token],
        known: &CompletionValues,
    ) -> Vec<Suggestion> {
        // Only options come before the query, and these are already complete.
        let start = match SqlWords::new(self.line, arguments).and_then(|words| words.query.first())
        {
            Some(first) => first.span.start,
            None => self.span.start.max(command.span.end),
        };
        let Some(query) = self.line.get(start..) else { return Vec::new() };
        let (span, candidates) =
            sql_completer::candidates(query, self.span.end - start, known.views.get());
        candidates
            .into_iter()
            .map(|candidate| Suggestion {
                value: candidate.text,
                description: Some(candidate.description),
                span: Span::new(start + span.start, start + span.end),
                ..Suggestion::default()
            })
            .collect()
    }

    /// Returns tables and views with their meanings.
    fn relations(&self, known: &CompletionValues) -> Vec<Suggestion> {
        let relations = known.views.get().relations();
        self.words(relations.map(|relation| (relation.name(), relation.doc())).collect())
    }

    fn commands(&self, known: &CompletionValues) -> Vec<Suggestion> {
        // A word without a dot may be a command.
        let dotted = format!(".{}", self.word);
        let commands = self.registry.commands().filter_map(|command| {
            let signature = command.signature();
            let name = signature.names.iter().find(|name| starts_with(name, self.word)).copied();
            let name =
                name.or_else(|| Some(command.name()).filter(|name| starts_with(name, &dotted)))?;
            Some(self.suggest(name, signature.summary))
        });
        let mut aliases: Vec<_> = known.aliases.dotted().collect();
        aliases.retain(|(name, _)| starts_with(name, self.word) || starts_with(name, &dotted));
        commands.chain(aliases.iter().map(|(name, line)| self.suggest(name, line))).collect()
    }

    fn aliases(&self, known: &CompletionValues) -> Vec<Suggestion> {
        self.words(known.aliases.iter().collect())
    }

    fn settings(&self, arguments: &[Token]) -> Vec<Suggestion> {
        let [name, ..] = arguments else {
            let keys =
                Vec::from_iter(SettingKey::ALL.iter().map(|key| (key.name(), key.sources())));
            return self.words(keys.iter().map(|(name, help)| (*name, help.as_str())).collect());
        };
        match SettingKey::named(&name.text) {
            Ok(SettingKey::SymbolPath) => self.files(FileFilter::Folders),
            Ok(key) => {
                let usual = (USUAL, "removes it from the configuration file");
                self.words(key.words().into_iter().chain([usual]).collect())
            }
            Err(_) => Vec::new(),
        }
    }

    fn files(&self, filter: FileFilter) -> Vec<Suggestion> {
        paths::candidates(self.word, filter)
            .into_iter()
            .map(|candidate| self.path(&candidate.path, candidate.is_folder))
            .collect()
    }

    /// Returns programs that may take an answer.
    fn programs(&self) -> Vec<Suggestion> {
        let programs = paths::programs(self.word);
        programs.iter().map(|program| self.suggest(program, "a program")).collect()
    }

    /// Returns the names that begin with the word.
    fn beginning(&self, names: &[String]) -> Vec<Suggestion> {
        names
            .iter()
            .filter(|name| starts_with(name, self.word))
            .map(|name| self.path(name, false))
            .collect()
    }

    fn topics(&self, arguments: &[Token], known: &CompletionValues) -> Vec<Suggestion> {
        if let Some(kind) = arguments.last().and_then(|word| self.registry.kind(&word.text)) {
            return self.options(&kind.options(), &[]);
        }
        let kinds = self.registry.kinds().map(|kind| (kind.name(), kind.signature().summary));
        let commands =
            self.registry.commands().map(|command| (command.name(), command.signature().summary));
        let topics = self.registry.topics.iter().map(|topic| (topic.name, topic.summary));
        let is_first = arguments.is_empty();
        if is_first && self.word.starts_with('-') {
            return self.options_of_all();
        }
        kinds
            .chain(topics.chain(commands).chain(known.aliases.iter()).filter(|_| is_first))
            .filter(|(name, _)| starts_with(name, self.word))
            .map(|(name, summary)| self.suggest(name, summary))
            .collect()
    }

    /// Returns the options of all kinds and commands, without duplicate names.
    fn options_of_all(&self) -> Vec<Suggestion> {
        let mut suggestions = self.options(&self.registry.options().collect::<Vec<_>>(), &[]);
        suggestions.sort_by(|left, right| left.value.cmp(&right.value));
        suggestions.dedup_by(|left, right| left.value.eq_ignore_ascii_case(&right.value));
        suggestions
    }

    fn dump(&self, arguments: &[Token], known: &CompletionValues) -> Vec<Suggestion> {
        let words = DumpWords::new(arguments, self.registry);
        // Before the kind is known, options of any kind decide whether a value is expected.
        let options = words.options(self.registry);
        let mut suggestions = Vec::new();
        let last = parse::known_items(&options, &words.option_tokens).pop();
        if let Some(parse::Item::Option { spec, values, .. }) = last {
            let (least, most) = spec.value().arity;
            if values.len() < most {
                suggestions = match (spec.value().offers, words.kind.and_then(|kind| kind.table()))
                {
                    (Offers::Column, Some(table)) => self.words(columns(&(table.columns)())),
                    (Offers::Columns, Some(table)) => self.column_choices(&(table.choices)()),
                    _ => self.values(spec, known),
                };
            }
            if values.len() < least {
                return suggestions;
            }
        }
        match words.kind {
            Some(_) => suggestions.extend(self.options(&options, &words.option_tokens)),
            None if self.word.starts_with('-') => suggestions.extend(self.options_once(&options)),
            None => suggestions.extend(self.kinds()),
        }
        suggestions
    }

    fn kinds(&self) -> Vec<Suggestion> {
        self.registry
            .kinds()
            .filter(|kind| starts_with(kind.name(), self.word))
            .map(|kind| self.suggest(kind.name(), kind.signature().summary))
            .collect()
    }

    /// Returns the options before the kind is known, without duplicates.
    fn options_once(&self, options: &[&'static dyn OptionSpec]) -> Vec<Suggestion> {
        let mut once: Vec<&'static dyn OptionSpec> = Vec::new();
        for option in options {
            if !once.iter().any(|known| known.name() == option.name()) {
                once.push(*option);
            }
        }
        self.options(&once, &[])
    }

    /// Returns options that are not used yet, each by its longest name that starts with the word. If there are none,
    /// returns options that contain the word, so that `-stack` finds everything about stacks.
    fn options(&self, options: &[&'static dyn OptionSpec], words: &[Token]) -> Vec<Suggestion> {
        let used: Vec<&str> = options
            .iter()
            .filter(|o| words.iter().any(|word| o.is_named(&word.text)))
            .map(|option| option.name())
            .collect();
        let named = |has_effect: bool, fits: &dyn Fn(&str) -> bool| -> Vec<Suggestion> {
            options
                .iter()
                .filter(|option| !used.contains(&option.name()))
                .filter(|option| option.has_effect() == has_effect)
                .filter_map(|option| {
                    let name = option
                        .doc()
                        .names
                        .iter()
                        .filter(|name| fits(name))
                        .max_by_key(|name| name.len())?;
                    Some(self.suggest(name, option.doc().help))
                })
                .collect()
        };
        // Options without effect are offered only if nothing else matches.
        let starting = |has_effect| named(has_effect, &|name| starts_with(name, self.word));
        let inside = self.word.trim_start_matches('-').to_lowercase();
        let offers = [&|| starting(true), &|| starting(false), &|| {
            named(true, &|name| self.word.starts_with('-') && name.to_lowercase().contains(&inside))
        }] as [&dyn Fn() -> Vec<Suggestion>; 3];
        offers.iter().map(|offer| offer()).find(|offer| !offer.is_empty()).unwrap_or_default()
    }

    fn values(&self, option: &dyn OptionSpec, known: &CompletionValues) -> Vec<Suggestion> {
        let value = option.value();
        match value.offers {
            Offers::Words => self.words((value.words)()),
            Offers::List => self.list((value.words)()),
            Offers::Processes => self.filters(filter_values::processes(self.word, known)),
            Offers::Texts(texts) => self.filters(filter_values::texts(self.word, texts, known)),
            Offers::Suspects => self.filters(filter_values::suspects(self.word, known)),
            Offers::Files => self.files(FileFilter::Tables),
            Offers::Folders => self.files(FileFilter::Folders),
            Offers::Traces => self.files(FileFilter::Traces),
            Offers::Servers => self.words(SERVERS.to_vec()),
            Offers::Points => self.beginning(&known.snapshots),
            Offers::Nothing | Offers::Column | Offers::Columns => Vec::new(),
        }
    }

    /// Returns filters, quoted if needed. A filter that continues gets neither a space nor a closing quote.
    fn filters(&self, values: Vec<FilterValue>) -> Vec<Suggestion> {
        let suggestions = values.into_iter().map(|value| {
            let needs_quotes = self.is_quoted || value.filter.contains([' ', '\t']);
            let end = if value.is_open { "" } else { "\"" };
            Suggestion {
                value: if needs_quotes { format!("\"{}{end}", value.filter) } else { value.filter },
                display_override: Some(value.value),
                description: Some(value.description),
                span: self.span,
                append_whitespace: !value.is_open,
                ..Suggestion::default()
            }
        });
        suggestions.collect()
    }

    /// Returns suggestions after the last comma of a list: words that it does not contain yet.
    fn list(&self, words: Vec<(&str, &str)>) -> Vec<Suggestion> {
        let (before, word) = self.word.rsplit_once(',').unwrap_or(("", self.word));
        let comma = if before.is_empty() { "" } else { "," };
        words
            .into_iter()
            .filter(|(choice, _)| {
                starts_with(choice, word)
                    && !before.split(',').any(|used| used.eq_ignore_ascii_case(choice))
            })
            .map(|(choice, help)| Suggestion {
                display_override: Some(choice.to_owned()),
                append_whitespace: false,
                ..self.suggest(&format!("{before}{comma}{choice}"), help)
            })
            .collect()
    }

    /// Returns columns, and the word for all.
    fn column_choices(&self, names: &[String]) -> Vec<Suggestion> {
        let everything =
            self.words(vec![(ColumnChoice::ALL, "including those the screen has no room for")]);
        [self.list(columns(names)), everything].concat()
    }

    fn words(&self, words: Vec<(&str, &str)>) -> Vec<Suggestion> {
        words
            .into_iter()
            .filter(|(word, _)| starts_with(word, self.word))
            .map(|(word, help)| self.suggest(word, help))
            .collect()
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

    /// Returns a path, quoted if needed. The quotes around a folder stay open for the rest.
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

fn columns(names: &[String]) -> Vec<(&str, &str)> {
    names.iter().map(|name| (name.as_str(), "a column")).collect()
}

#[cfg(test)]
mod tests;
