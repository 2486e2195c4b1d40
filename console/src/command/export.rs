//! `.export` and `.schema` as entered.

use std::path::PathBuf;

use super::{Command, Entered, error::ParseError, line::Token, parse};
use crate::{
    expand::with_home,
    filter::Filter,
    registry::{self, suggest},
    sql::Relation,
};

/// What was typed behind `.export`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportArgs {
    /// The folder for the files.
    pub folder: PathBuf,
    /// `-parquet`
    pub parquet: bool,
    /// `-csv`
    pub csv: bool,
    /// `-ndjson`
    pub ndjson: bool,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
}

impl ExportArgs {
    /// The formats that were asked for; Parquet when none was.
    pub fn formats(&self) -> Vec<ExportFormat> {
        let asked = [
            (self.parquet, ExportFormat::Parquet),
            (self.csv, ExportFormat::Csv),
            (self.ndjson, ExportFormat::NdJson),
        ];
        let formats: Vec<_> = asked.into_iter().filter(|(is, _)| *is).map(|(_, f)| f).collect();
        if formats.is_empty() { vec![ExportFormat::Parquet] } else { formats }
    }
}

/// What a table is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    NdJson,
}

impl ExportFormat {
    /// Of its files.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::Parquet => "parquet",
            ExportFormat::Csv => "csv",
            ExportFormat::NdJson => "ndjson",
        }
    }
}

/// What was typed behind `.schema`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaArgs {
    /// The tables and views to describe; none for all.
    pub relations: Vec<Relation>,
    /// `-markdown`: as the document in docs/.
    pub markdown: bool,
}

/// `.export`
pub(crate) fn export(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (args, words): (ExportArgs, _) =
        parse::options_and_words(entered.name, entered.tokens, registry::EXPORT)?;
    let folder = entered.at_most_one(&words, "one folder, in quotes if it has blanks")?;
    let Some(folder) = folder else {
        return Err(ParseError::MissingArgument {
            command: entered.name.to_owned(),
            what: "a folder for the files",
        });
    };
    Ok(Command::Export(ExportArgs { folder: with_home(&folder), ..args }))
}

/// `.schema`
pub(crate) fn schema(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (args, words): (SchemaArgs, _) =
        parse::options_and_words(entered.name, entered.tokens, registry::SCHEMA)?;
    let relations: Result<Vec<Relation>, _> = words.into_iter().map(relation).collect();
    Ok(Command::Schema(SchemaArgs { relations: relations?, ..args }))
}

fn relation(word: &Token) -> Result<Relation, ParseError> {
    Relation::named(&word.text).ok_or_else(|| {
        let names = Relation::all().map(Relation::name);
        ParseError::UnexpectedWord {
            word: word.text.clone(),
            hint: suggest::nearest(&word.text, names)
                .map_or_else(String::new, suggest::did_you_mean),
            help: String::new(),
        }
    })
}
