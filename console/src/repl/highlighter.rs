//! Colours during typing, from the registry: unknown words are red even before Enter.

use std::ops::Range;

use handlescope_model::guard::lock;
use reedline::{Highlighter, StyledText};

use handlescope_commands::completion::{
    SharedCompletionValues, is_keyword, is_word, keywords, starts_with,
};
use handlescope_commands::dump::DumpWords;
use handlescope_commands::registry::registry;
use handlescope_commands::sql::SqlWords;
use handlescope_commands::{Pipe, Registry};
use handlescope_session::grammar::{
    Arguments, OptionSpec, Redirect, Token, definition_start, parse, split,
};
use handlescope_session::settings::{AliasExpansion, Aliases};
use handlescope_session::terminal::{Role, same_length};
use handlescope_sql::Relation;

/// Colours commands, kinds, options and values.
pub struct CommandHighlighter {
    known: SharedCompletionValues,
}

impl CommandHighlighter {
    /// Creates a highlighter that takes the aliases from `known`.
    pub fn new(known: SharedCompletionValues) -> CommandHighlighter {
        CommandHighlighter { known }
    }
}

impl Highlighter for CommandHighlighter {
    fn highlight(&self, line: &str, cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        let mut end = 0;
        for (span, role) in {
            let known = lock(&self.known);
            roles(line, cursor, &known.aliases, registry(known.over_dataset))
        } {
            styled.push((
                Role::Plain.style(),
                line.get(end..span.start).unwrap_or_default().to_owned(),
            ));
            let text = line.get(span.clone()).unwrap_or_default();
            styled.push((role.style(), text.to_owned()));
            end = span.end;
        }
        styled.push((Role::Plain.style(), line.get(end..).unwrap_or_default().to_owned()));
        styled.buffer.retain(|(_, text)| !text.is_empty());
        for (_, text) in &mut styled.buffer {
            *text = same_length(text).into_owned();
        }
        styled
    }
}

type Roles = Vec<(Range<usize>, Role)>;

/// Returns the words of a line in order; `cursor` shows which of them is still being typed.
fn roles(line: &str, cursor: usize, aliases: &Aliases, registry: Registry) -> Roles {
    if line.trim_start().starts_with('#') {
        return vec![(0..line.len(), Role::Comment)];
    }
    if let Some(AliasExpansion { line: expanded, typed_start, start }) = aliases.expanded(line) {
        let alias = line.len() - line.trim_start().len()..typed_start;
        let mut behind =
            roles(&expanded, (cursor + start).saturating_sub(typed_start), aliases, registry);
        behind.retain(|(span, _)| span.start >= start);
        let behind = moved(behind, |position| position - start + typed_start);
        return [vec![(alias, Role::Command)], behind].concat();
    }
    let tokens = split(line);
    let Some((first, arguments)) = tokens.split_first() else { return Vec::new() };
    let typing = Typing { cursor, registry };
    let Some(command) = registry.command_of_line(&first.text) else {
        let names = registry.commands().flat_map(|command| command.signature().names).copied();
        let aliases: Vec<String> = aliases.dotted().map(|(name, _)| name).collect();
        let names = names.chain(aliases.iter().map(String::as_str));
        return vec![(first.span.clone(), typing.wrong(first, names))];
    };
    if matches!(command.signature().arguments, Arguments::Alias)
        && let Some(start) = definition_start(line, arguments)
        && let (Some(name), Some(text)) = (arguments.first(), line.get(start..))
    {
        let name_role = typing.value(name, registry.parse_with(line, aliases).is_ok());
        let name = name.span.start..name.span.end.min(start);
        let words = vec![(first.span.clone(), Role::Command), (name, name_role)];
        let text = roles(text, cursor.saturating_sub(start), aliases, registry);
        return [words, moved(text, |position| position + start)].concat();
    }
    let whole = line;
    let Pipe { line, tokens: arguments, program, start } =
        Pipe::from_command(command.signature().arguments, line, arguments);
    let kept = Redirect::from_command(command.signature().arguments, line, arguments).tokens.len();
    let (arguments, file) = arguments.split_at(kept);
    let mut roles = vec![(first.span.clone(), Role::Command)];
    match command.signature().arguments {
        Arguments::Kind => roles.extend(typing.dump(arguments)),
        Arguments::None => {
            roles.extend(arguments.iter().map(|token| (token.span.clone(), Role::Wrong)));
        }
        Arguments::Sql => roles.extend(typing.sql(line, arguments, &command.options())),
        _ => {
            let is_fine = registry.parse_with(line, aliases).is_ok();
            let options = command.options();
            roles.extend(typing.options(&options, arguments, |word| typing.value(word, is_fine)));
        }
    }
    roles.extend(file.iter().map(|token| (token.span.clone(), Role::Value)));
    if let Some(program) = program {
        let end = whole.trim_end().len();
        roles.push((start..start + 1, Role::Command));
        roles.push((end - program.len()..end, Role::Value));
    }
    roles
}

/// Moves roles to the positions that their words have in another line.
fn moved(roles: Roles, position: impl Fn(usize) -> usize) -> Roles {
    roles.into_iter().map(|(span, role)| (position(span.start)..position(span.end), role)).collect()
}

struct Typing {
    cursor: usize,
    registry: Registry,
}

impl Typing {
    fn dump(&self, arguments: &[Token]) -> Roles {
        let words = DumpWords::new(arguments, self.registry);
        let known = words.options(self.registry);
        let names = || known.iter().flat_map(|option| option.doc().names).copied();
        let mut roles =
            self.options(&known, &words.option_tokens, |word| self.wrong(word, names()));
        if let Some(word) = words.word {
            let kinds = self.registry.kinds().map(|kind| kind.name());
            let role = match words.kind {
                Some(_) => Role::Kind,
                None => self.wrong(word, kinds.chain(names())),
            };
            roles.push((word.span.clone(), role));
        }
        roles.sort_by_key(|(span, _)| span.start);
        roles
    }

    /// Colours options around a query; words of the query are coloured if SQL knows them.
    fn sql(&self, line: &str, arguments: &[Token], options: &[&'static dyn OptionSpec]) -> Roles {
        let names = || options.iter().flat_map(|option| option.doc().names).copied();
        let Some(words) = SqlWords::new(line, arguments) else {
            let words = || names().chain(keywords());
            return self.options(options, arguments, |word| self.wrong(word, words()));
        };
        let around = |tokens| self.options(options, tokens, |word| self.wrong(word, names()));
        let mut roles = around(words.before);
        if let [first, ..] = words.query {
            let end = words.query.last().map_or(first.span.end, |last| last.span.end);
            roles.extend(query_roles(line, first.span.start..end));
        }
        roles.extend(around(words.behind));
        roles
    }

    /// Colours options with their values; `word` gives the role of anything else.
    fn options(
        &self,
        options: &[&'static dyn OptionSpec],
        tokens: &[Token],
        word: impl Fn(&Token) -> Role,
    ) -> Roles {
        let mut roles = Roles::new();
        for item in parse::known_items(options, tokens) {
            match item {
                parse::Item::Word(token) | parse::Item::Unknown(token) => {
                    roles.push((token.span.clone(), word(token)));
                }
                parse::Item::Option { spec, name, values } => {
                    roles.push((name.span.clone(), Role::Option));
                    let is_fine = values.is_empty() || spec.check(values).is_ok();
                    roles.extend(values.iter().map(|v| (v.span.clone(), self.value(v, is_fine))));
                }
            }
        }
        roles
    }

    /// Returns the role of a word that is not a name. At the cursor it may be the start of one.
    fn wrong<'a>(&self, token: &Token, mut names: impl Iterator<Item = &'a str>) -> Role {
        let may_become = self.is_at(token) && names.any(|name| starts_with(name, &token.text));
        if may_become { Role::Unfinished } else { Role::Wrong }
    }

    /// Returns the role of a value of an option or command; `is_fine` says whether it is accepted.
    fn value(&self, token: &Token, is_fine: bool) -> Role {
        match (is_fine, self.is_at(token)) {
            (true, _) => Role::Value,
            (false, true) => Role::Unfinished,
            (false, false) => Role::Wrong,
        }
    }

    fn is_at(&self, token: &Token) -> bool {
        token.span.end == self.cursor
    }
}

/// Returns the roles of SQL words and string literals in a query.
fn query_roles(line: &str, span: Range<usize>) -> Roles {
    let mut roles = Roles::new();
    let mut position = span.start;
    while let Some(rest) = line.get(position..span.end).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or_default();
        let (length, role) = if first == '\'' {
            let closing = rest.char_indices().skip(1).find(|(_, c)| *c == '\'');
            (closing.map_or(rest.len(), |(end, _)| end + 1), Some(Role::Value))
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = rest.get(..length).unwrap_or_default();
            let role = if is_keyword(word) {
                Some(Role::Option)
            } else {
                Relation::named(word).map(|_| Role::Kind)
            };
            (length, role)
        } else {
            (first.len_utf8(), None)
        };
        roles.extend(role.map(|role| (position..position + length, role)));
        position += length;
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words with their roles; the cursor is at `|`, or else after the line.
    fn shown(line: &str) -> Vec<(String, Role)> {
        let cursor = line.find('|').unwrap_or(line.len());
        let line = line.replace('|', "");
        let mut aliases = Aliases::default();
        aliases.define("leaks", ".dump ObjectRef -Leak", |_| false).expect("an alias");
        roles(&line, cursor, &aliases, registry(false))
            .into_iter()
            .map(|(span, role)| (line.get(span).unwrap_or("?").to_owned(), role))
            .collect()
    }

    fn of(line: &str, word: &str) -> Role {
        let shown = shown(line);
        shown.iter().find(|(text, _)| text == word).map_or_else(|| panic!("{shown:?}"), |(_, r)| *r)
    }

    #[test]
    fn each_word_has_its_role() {
        let words = shown(".dump ObjectRef -pn \"a b\" -Leak -TopN 5 2 ");
        let roles: Vec<Role> = words.iter().map(|(_, role)| *role).collect();
        use Role::{Kind, Option, Value};
        assert_eq!(roles, [Role::Command, Kind, Option, Value, Option, Option, Value, Value]);
        assert_eq!(of("# a note", "# a note"), Role::Comment);
        assert_eq!(of(".load a.etl", "a.etl"), Role::Value);
    }

    #[test]
    fn meaningless_words_are_marked_before_enter() {
        assert_eq!(of(".dump ObjectRef -Laek ", "-Laek"), Role::Wrong);
        assert_eq!(of(".dump ObjectRef -Laek", "-Laek"), Role::Wrong);
        assert_eq!(of(".dump ObjectRef Leak ", "Leak"), Role::Wrong);
        assert_eq!(of(".dump Object ", "Object"), Role::Wrong);
        assert_eq!(of(".dump Process -Leak ", "-Leak"), Role::Wrong);
        assert_eq!(of(".nonsense", ".nonsense"), Role::Wrong);
        assert_eq!(of(".quit now", "now"), Role::Wrong);
        assert_eq!(of(".dump ObjectRef -ShowTotal Totl ", "Totl"), Role::Wrong);
        assert_eq!(of(".timefmt utv ", "utv"), Role::Wrong);
        assert_eq!(of(".timefmt utc ", "utc"), Role::Value);
        assert_eq!(of(".dump Process > a.txt", ">"), Role::Value);
        // The helper of these tests takes a bar as the cursor.
        let roles =
            roles(".dump Process -pn a | grep -x b ", 0, &Aliases::default(), registry(false));
        assert_eq!(roles.last(), Some(&(22..31, Role::Value)));
        assert!(roles.contains(&(20..21, Role::Command)));
        assert_eq!(of(".dump Process > a.txt b", ">"), Role::Wrong);
        assert_eq!(of(".load -r a ", "-r"), Role::Option);
        assert_eq!(of(".load -rr a ", "-rr"), Role::Wrong);
        assert_eq!(of(".help ObjectRef -Leak ", "-Leak"), Role::Value);
    }

    /// Returns the words of a line that are marked as wrong.
    fn wrong(line: &str) -> Vec<String> {
        shown(line)
            .into_iter()
            .filter(|(_, role)| *role == Role::Wrong)
            .map(|(word, _)| word)
            .collect()
    }

    #[test]
    fn an_option_and_its_values_are_not_marked_as_wrong_but_its_misspelling_is() {
        let registry = registry(false);
        let commands = registry.commands().map(|command| (command, command.name().to_owned()));
        let kinds = registry.kinds().map(|kind| (kind, format!(".dump {}", kind.name())));
        for (command, start) in commands.chain(kinds) {
            for option in command.options() {
                let tokens = split(option.doc().example);
                let behind =
                    tokens.iter().skip_while(|token| !option.is_named(&token.text)).skip(1);
                let values = behind
                    .take_while(|token| !token.is_switch())
                    .map(|token| token.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" ");
                for name in option.doc().names {
                    let line = format!("{start} {name} {values} ");
                    assert!(wrong(&line).is_empty(), "{line}: {:?}", wrong(&line));
                    let misspelt = format!("{name}qq");
                    assert_eq!(wrong(&format!("{start} {misspelt} ")), [misspelt], "{start}");
                }
            }
        }
    }

    #[test]
    fn a_word_that_may_still_become_right_is_not_marked() {
        assert_eq!(of(".dump ObjectRef -Lea", "-Lea"), Role::Unfinished);
        assert_eq!(of(".dump ObjectRef -Lea| -ss", "-Lea"), Role::Unfinished);
        assert_eq!(of(".dump ObjectRef -Lea -ss", "-Lea"), Role::Wrong);
        assert_eq!(of(".dump Obj", "Obj"), Role::Unfinished);
        assert_eq!(of(".dump -", "-"), Role::Unfinished);
        assert_eq!(of(".dump ObjectRef -", "-"), Role::Unfinished);
        assert_eq!(of(".dump ObjectRef x", "x"), Role::Wrong);
        assert_eq!(of(".du", ".du"), Role::Unfinished);
        assert_eq!(of(".dump ObjectRef -MinMaxTime 10m", "10m"), Role::Unfinished);
    }

    #[test]
    fn an_alias_is_coloured_as_a_command_and_what_follows_as_of_what_it_stands_for() {
        let command = (".leaks".to_owned(), Role::Command);
        assert_eq!(shown("  .leaks"), [command]);
        assert_eq!(of(".leaks -pn a -Laek ", "-pn"), Role::Option);
        assert_eq!(of(".leaks -pn a -Laek ", "a"), Role::Value);
        assert_eq!(of(".leaks -pn a -Laek ", "-Laek"), Role::Wrong);
        assert_eq!(of(".leaks -Typ", "-Typ"), Role::Unfinished);
        assert_eq!(of(".lea", ".lea"), Role::Unfinished);
        assert_eq!(of(".alias x = .leaks -Laek ", ".leaks"), Role::Command);
        assert_eq!(of(".alias x = .leaks -Laek ", "-Laek"), Role::Wrong);
        assert_eq!(of(".alias x = .leaks ", "x"), Role::Value);
        assert_eq!(of(".alias list = .leaks ", "list"), Role::Wrong);
        assert_eq!(of(".config color red ", "red"), Role::Wrong);
    }

    #[test]
    fn a_query_has_the_colours_of_sql() {
        let line = ".sql -json SELECT 'FROM', name FROM leaks -csv x";
        assert_eq!(of(line, "-json"), Role::Option);
        assert_eq!(of(line, "SELECT"), Role::Option);
        assert_eq!(of(line, "'FROM'"), Role::Value);
        assert_eq!(of(line, "leaks"), Role::Kind);
        assert_eq!(of(line, "-csv"), Role::Option);
        assert!(!shown(line).iter().any(|(text, _)| text == "name"));
        assert_eq!(of(".sql leaks ", "leaks"), Role::Wrong);
        assert_eq!(of(".sql SEL", "SEL"), Role::Unfinished);
    }

    #[test]
    fn a_line_that_was_taken_over_cannot_talk_to_the_terminal() {
        let line = ".load \"a\u{1b}]0;x\u{9c}\u{202e}.etl\"";
        for cursor in 0..=line.len() {
            let text = CommandHighlighter::new(SharedCompletionValues::default())
                .highlight(line, cursor)
                .raw_string();
            assert_eq!(text, ".load \"a?]0;x·□.etl\"");
            assert_eq!(text.len(), line.len());
        }
    }

    #[test]
    fn the_text_itself_is_never_changed() {
        for line in
            ["", "  ", ".dump  ObjectRef\t-pn \"a", "ä -ö \"", "# x", ".load a  ", ".sql SELECT 'ä"]
        {
            for cursor in 0..=line.len() {
                let styled = CommandHighlighter::new(SharedCompletionValues::default())
                    .highlight(line, cursor);
                assert_eq!(styled.raw_string(), line);
            }
        }
    }
}
