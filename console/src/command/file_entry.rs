//! From a line to a command about files.

use std::path::Path;

use super::{
    Command, ConvertTimeArgs, DirArgs, Entered, ExtractArgs, LoadArgs, SaveArgs, error::ParseError,
    line::Token, parse,
};
use crate::{
    expand::with_home,
    registry::{self, EXTRACTORS, suggest},
};

/// `.load` and `.load+`
pub(crate) fn load(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (args, words) = parse::options_and_words(entered.name, entered.tokens, registry::LOAD)?;
    if words.is_empty() {
        return Err(ParseError::MissingArgument {
            command: entered.name.to_owned(),
            what: "at least one file, folder or pattern; .unload empties the session",
        });
    }
    let queries = words.into_iter().map(|word| word.text.clone()).collect();
    Ok(Command::Load(LoadArgs { queries, append: entered.name.ends_with('+'), ..args }))
}

/// `.save`
pub(crate) fn save(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (args, words): (SaveArgs, _) =
        parse::options_and_words(entered.name, entered.tokens, registry::SAVE)?;
    let file = entered.at_most_one(&words, "one file, in quotes if its name has blanks")?;
    let Some(file) = file else {
        return Err(ParseError::MissingArgument {
            command: entered.name.to_owned(),
            what: "the name of the archive, NAME.json7z",
        });
    };
    Ok(Command::Save(SaveArgs { file: with_home(&file), ..args }))
}

/// `.dir`
pub(crate) fn dir(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let tokens: Vec<Token> = entered.tokens.iter().map(with_dash).collect();
    let (args, words) = parse::options_and_words(entered.name, &tokens, registry::DIR)?;
    let query = entered.at_most_one(&words, "one folder or pattern")?;
    Ok(Command::Dir(DirArgs { query, ..args }))
}

/// An option that starts with `/`, as those of Windows' own `dir` do, with a `-` instead. What
/// exists as a file is none.
fn with_dash(token: &Token) -> Token {
    let is_option = |name: &str| {
        registry::command(".dir").is_some_and(|command| command.option(name).is_some())
    };
    let dashed = token.text.strip_prefix('/').map(|name| format!("-{name}"));
    let dashed = dashed.filter(|name| is_option(name) && !Path::new(&token.text).exists());
    Token { text: dashed.unwrap_or_else(|| token.text.clone()), ..token.clone() }
}

/// `.cd`
pub(crate) fn change_folder(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let words: Vec<&Token> = entered.tokens.iter().collect();
    entered.at_most_one(&words, "one folder, in quotes if it has blanks").map(Command::ChangeFolder)
}

/// `.converttime`
pub(crate) fn convert_time(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let args: ConvertTimeArgs =
        parse::options(entered.name, entered.tokens, registry::CONVERT_TIME)?;
    if args.time.is_none() {
        return Err(ParseError::MissingArgument {
            command: entered.name.to_owned(),
            what: "-time and a point in time, or seconds since session start",
        });
    }
    Ok(Command::ConvertTime(args))
}

/// `.extract`: words are extractors, or files as those behind `-fd`.
pub(crate) fn extract(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (mut args, words): (ExtractArgs, _) =
        parse::options_and_words(entered.name, entered.tokens, registry::EXTRACT)?;
    let (mut named, mut is_one_known) = (Vec::new(), false);
    for word in words {
        let extractor = EXTRACTORS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word.text));
        match extractor {
            Some(_) if with_home(&word.text).exists() => named.push(word.text.clone()),
            Some((_, true)) => is_one_known = true,
            Some((name, false)) => args.unknown_extractors.push((*name).to_owned()),
            None => named.push(file_or_typo(word)?),
        }
    }
    if !is_one_known && !args.unknown_extractors.is_empty() {
        return Err(ParseError::NothingToExtract {
            command: entered.name.to_owned(),
            names: args.unknown_extractors.join(", "),
        });
    }
    args.queries.splice(0..0, named);
    if args.queries.is_empty() {
        return Err(ParseError::MissingArgument {
            command: entered.name.to_owned(),
            what: "at least one trace, folder or pattern",
        });
    }
    Ok(Command::Extract(Box::new(args)))
}

/// A word that is no extractor is a file, unless it looks like a mistyped extractor.
fn file_or_typo(word: &Token) -> Result<String, ParseError> {
    let is_name = word.text.chars().all(char::is_alphanumeric);
    let names = EXTRACTORS.iter().map(|(name, _)| *name);
    match suggest::nearest(&word.text, names) {
        Some(name) if is_name && !with_home(&word.text).exists() => {
            Err(ParseError::UnexpectedWord {
                word: word.text.clone(),
                hint: suggest::did_you_mean(name),
                help: String::new(),
            })
        }
        _ => Ok(word.text.clone()),
    }
}
