//! From a line to a command: one function per command and kind, named in the registry.

use super::{
    Command, Dump, DumpWords, ObjectRefArgs, ShowTotal, error::ParseError, line::Token, parse,
    redirect,
};
use crate::registry::{self, COMMANDS, KINDS, suggest};
use crate::render::Format;

/// A line whose first word is a command.
#[derive(Debug, Clone, Copy)]
pub struct Entered<'a> {
    /// The whole line.
    pub line: &'a str,
    /// The command as typed.
    pub name: &'a str,
    /// What follows it; for a kind of `.dump`, without the kind.
    pub tokens: &'a [Token],
}

/// Reads a line that is neither blank nor a comment.
pub(crate) fn command(line: &str, tokens: &[Token]) -> Result<Option<Command>, ParseError> {
    let Some((first, rest)) = tokens.split_first() else { return Ok(None) };
    let Some(command) = registry::command(&first.text) else {
        return Err(unknown_command(&first.text));
    };
    (command.parse)(&Entered { line, name: &first.text, tokens: rest }).map(Some)
}

fn unknown_command(name: &str) -> ParseError {
    let names = COMMANDS.iter().flat_map(|command| command.names).copied();
    let hint = match suggest::nearest(name, names) {
        Some(nearest) => suggest::did_you_mean(nearest),
        None if registry::kind(name).is_some() => format!(", did you mean .dump {name}?"),
        None => "; .help lists them".to_owned(),
    };
    ParseError::UnknownCommand { name: name.to_owned(), hint }
}

/// `.list`
pub(crate) fn list(entered: &Entered<'_>) -> Result<Command, ParseError> {
    entered.takes_nothing().map(|()| Command::List)
}

/// `.unload`
pub(crate) fn unload(entered: &Entered<'_>) -> Result<Command, ParseError> {
    Ok(Command::Unload(entered.texts()))
}

/// `.help`
pub(crate) fn help(entered: &Entered<'_>) -> Result<Command, ParseError> {
    if let Some(word) = entered.tokens.get(3) {
        return Err(entered.too_many("a command, a kind of .dump or an option", word));
    }
    Ok(Command::Help(entered.texts()))
}

/// `.quit`
pub(crate) fn quit(entered: &Entered<'_>) -> Result<Command, ParseError> {
    entered.takes_nothing().map(|()| Command::Quit)
}

/// `.dump`: the kind may stand anywhere between the options.
pub(crate) fn dump(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (entered, file) = redirect::of_words(entered);
    let kinds = || KINDS.iter().map(|kind| kind.name);
    let listed = || kinds().collect::<Vec<_>>().join(", ");
    let words = DumpWords::of(entered.tokens);
    let Some(word) = words.word else {
        swallowed_kind(&entered)?;
        return Err(ParseError::MissingKind { command: entered.name.to_owned(), kinds: listed() });
    };
    let Some(kind) = words.kind else {
        return Err(ParseError::UnknownKind {
            command: entered.name.to_owned(),
            kind: word.text.clone(),
            kinds: listed(),
            hint: suggest::nearest(&word.text, kinds())
                .map_or_else(String::new, suggest::did_you_mean),
        });
    };
    let mut dump = (kind.parse)(&Entered { tokens: &words.others, ..entered })?;
    dump.output_mut().file = file;
    redirect::one_output(dump.output())?;
    Ok(Command::Dump(dump))
}

/// In `-MinMaxTime 1 ObjectRef` the kind is taken for the maximum; then the option's error explains
/// more than the missing kind.
fn swallowed_kind(entered: &Entered<'_>) -> Result<(), ParseError> {
    let kind = entered.tokens.iter().find_map(|token| registry::kind(&token.text));
    kind.map_or(Ok(()), |kind| (kind.parse)(entered).map(drop))
}

/// `.dump ObjectRef`
pub(crate) fn dump_object_ref(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("ObjectRef", entered.tokens, registry::OBJECT_REF)?;
    args.text = entered.line.to_owned();
    no_conflict(&args)?;
    Ok(Dump::ObjectRef(Box::new(args)))
}

/// Files of events hold nothing but them, and the tables of totals are not the objects that are sorted.
fn no_conflict(args: &ObjectRefArgs) -> Result<(), ParseError> {
    const EVENTS: &str = "the file holds events, not totals; for totals leave it out";
    if matches!(args.show_total, None | Some(ShowTotal::None)) {
        return Ok(());
    }
    let (option, reason) = match args.output.format() {
        _ if args.output.sort_by.is_some() => ("-SortBy", "it orders objects, not totals"),
        Format::Csv => ("-csv", "the file holds events, not totals; for totals leave out -csv"),
        Format::NdJson => ("-ndjson", EVENTS),
        Format::Parquet => ("-parquet", EVENTS),
        Format::Text | Format::Json(_) => return Ok(()),
    };
    Err(ParseError::Conflict { option, other: "-ShowTotal", reason })
}

/// `.dump Process`
pub(crate) fn dump_process(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Process", entered.tokens, registry::PROCESS)?;
    args.text = entered.line.to_owned();
    Ok(Dump::Process(args))
}

/// `.dump Module`
pub(crate) fn dump_module(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Module", entered.tokens, registry::MODULE)?;
    args.text = entered.line.to_owned();
    Ok(Dump::Module(args))
}

/// `.dump Version`
pub(crate) fn dump_version(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Version", entered.tokens, registry::MODULE)?;
    args.text = entered.line.to_owned();
    args.versions = true;
    Ok(Dump::Module(args))
}

/// `.dump Stack`
pub(crate) fn dump_stack(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Stack", entered.tokens, registry::STACK)?;
    args.text = entered.line.to_owned();
    Ok(Dump::Stack(args))
}

/// `.dump Symbols`
pub(crate) fn dump_symbols(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Symbols", entered.tokens, registry::SYMBOLS)?;
    args.text = entered.line.to_owned();
    Ok(Dump::Symbols(args))
}

/// `.dump Stats`
pub(crate) fn dump_stats(entered: &Entered<'_>) -> Result<Dump, ParseError> {
    let mut args = parse::options("Stats", entered.tokens, registry::STATS)?;
    args.text = entered.line.to_owned();
    Ok(Dump::Stats(args))
}

impl Entered<'_> {
    fn texts(&self) -> Vec<String> {
        self.tokens.iter().map(|token| token.text.clone()).collect()
    }

    pub(super) fn takes_nothing(&self) -> Result<(), ParseError> {
        self.tokens.first().map_or(Ok(()), |word| Err(self.too_many("no argument", word)))
    }

    pub(super) fn at_most_one(
        &self,
        words: &[&Token],
        takes: &'static str,
    ) -> Result<Option<String>, ParseError> {
        match words {
            [] => Ok(None),
            [word] => Ok(Some(word.text.clone())),
            [_, second, ..] => Err(self.too_many(takes, second)),
        }
    }

    pub(super) fn too_many(&self, takes: &'static str, word: &Token) -> ParseError {
        ParseError::TooManyArguments {
            command: self.name.to_owned(),
            takes,
            word: word.text.clone(),
        }
    }
}
