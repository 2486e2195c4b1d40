//! The file of an answer, from `> FILE`, `>> FILE` or the value of an option, and the format that its extension
//! selects.

use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use thiserror::Error;

use handlescope_render::OutputOptions;
use handlescope_session::grammar::{ParseError, Target};
use handlescope_session::values::FormatSpec;

/// A file name that does not fit the format.
#[derive(Debug, Error)]
enum FileNameError {
    #[error(
        "{option} writes {format}, but {} is a name for {other}; name it {}",
        Untrusted(.file), Untrusted(.instead)
    )]
    OtherFormat {
        option: &'static str,
        format: &'static str,
        file: PathBuf,
        /// The format that the extension selects.
        other: &'static str,
        /// The file with a fitting extension.
        instead: PathBuf,
    },
    #[error(
        ">> cannot append to {}, because a {format} file holds one answer; use > or >> {}",
        Untrusted(.file), Untrusted(.instead)
    )]
    Whole { file: PathBuf, format: &'static str, instead: PathBuf },
    #[error(
        "this command answers with text, but {} is a name for {format}; name it {}",
        Untrusted(.file), Untrusted(.instead)
    )]
    OnlyText { file: PathBuf, format: &'static str, instead: PathBuf },
}

/// Adds the file at the end of the line to the options of a table, and rejects options that contradict each other.
///
/// # Errors
/// If two of them select formats or files, or a file has the extension of another format or cannot be appended to.
pub fn complete_output(
    output: &mut OutputOptions,
    redirect: Option<&Target>,
) -> Result<(), ParseError> {
    let conflict = |option, other| ParseError::Conflict { option, other, reason: "choose one" };
    if let Some((option, other)) = output.conflict() {
        return Err(conflict(option, other));
    }
    if let (Some(option), Some(_)) = (output.file_option(), redirect) {
        return Err(conflict(option, "> FILE"));
    }
    output.redirect = redirect.cloned();
    let redirected = redirect.map(|target| Path::new(&target.file));
    if let Some(format) = output.formats.first()
        && let Some(file) = format.file.as_deref().or(redirected)
        && let Some(other) = FormatSpec::from_extension(file)
        && !other.is_same_as(format.spec)
    {
        return Err(ParseError::refused(FileNameError::OtherFormat {
            option: format.spec.option_name(),
            format: format.spec.name,
            file: file.to_owned(),
            other: other.name,
            instead: file.with_extension(format.spec.extension),
        }));
    }
    if redirect.is_some_and(|target| target.append)
        && let Some(file) = redirected
        && let Some(spec) = FormatSpec::from_extension(file)
        && !spec.format.can_grow()
    {
        let (file, instead) = (file.to_owned(), file.with_extension(GROWING));
        return Err(ParseError::refused(FileNameError::Whole { file, format: spec.name, instead }));
    }
    Ok(())
}

/// Rejects a file for a command without a table if its name is for a table.
///
/// # Errors
/// If its extension is that of a format.
pub fn check_text_file(target: &Target) -> Result<(), ParseError> {
    let file = Path::new(&target.file);
    let Some(FormatSpec { name: format, .. }) = FormatSpec::from_extension(file) else {
        return Ok(());
    };
    let (file, instead) = (file.to_owned(), file.with_extension(TEXT));
    Err(ParseError::refused(FileNameError::OnlyText { file, format, instead }))
}

/// Extension of a JSON file that can be appended to.
const GROWING: &str = "ndjson";
/// Extension of a text file.
const TEXT: &str = "txt";
