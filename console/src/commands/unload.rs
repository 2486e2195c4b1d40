//! `.unload`

use std::path::{Path, PathBuf};

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    filter::Wildcard,
    grammar::{Arguments, ParseError},
    paths::{shown, with_home},
    trace::LoadedTrace,
};

pub(crate) struct Unload;

impl Command for Unload {
    /// Paths, names and patterns; none for everything.
    type Args = Vec<String>;
    const SIGNATURE: Signature = Signature {
        names: &[".unload"],
        group: groups::FILES,
        usage: "[FILE…]",
        arguments: Arguments::LoadedFiles,
        summary: "unload traces, all of them or those named",
        details: "FILE is a path as .list shows it, or its end, such as the file name, if no other has it; * and ? work.",
        examples: &[".unload", ".unload leaky.etl"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Vec<String>, ParseError> {
        Ok(entered.texts())
    }

    fn run(names: Vec<String>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let session = &mut context.session;
        if names.is_empty() {
            session.files.clear();
            session.search_beside_files();
            return Ok(());
        }
        let mut unloaded: Vec<PathBuf> = Vec::new();
        for name in &names {
            unloaded.extend(Unloaded::new(name).files(&session.files)?);
        }
        session.files.retain(|file| !unloaded.contains(&file.path));
        session.search_beside_files();
        Ok(())
    }
}

/// A name after `.unload`.
struct Unloaded<'a> {
    typed: &'a str,
    wildcard: Option<Wildcard>,
}

impl Unloaded<'_> {
    fn new(typed: &str) -> Unloaded<'_> {
        Unloaded { typed, wildcard: Wildcard::new(typed).ok() }
    }

    /// The files that are meant: that of the path, as it was named or as .list shows it; else those that a pattern
    /// matches; else the only one with the end of its path.
    fn files(&self, files: &[LoadedTrace]) -> Result<Vec<PathBuf>, CommandError> {
        let typed = with_home(self.typed);
        let paths = |is_meant: &dyn Fn(&Path) -> bool| -> Vec<PathBuf> {
            let paths = files.iter().map(|file| &file.path);
            paths.filter(|path| is_meant(path)).cloned().collect()
        };
        let exact = paths(&|path| path == typed || shown(path) == typed);
        if !exact.is_empty() {
            return Ok(exact);
        }
        let matches = |text: &str| self.wildcard.as_ref().is_some_and(|w| w.matches(text));
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let meant = paths(&|path| {
            matches(&path.to_string_lossy())
                || matches(&name(path))
                || path.ends_with(&typed)
                || shown(path).ends_with(&typed)
        });
        match meant.as_slice() {
            [] => Err(CommandError::NotLoaded { name: self.typed.to_owned() }),
            [_, _, ..] if !self.typed.contains(['*', '?']) => {
                let paths = meant.iter().map(|path| path.to_string_lossy());
                let paths = paths.collect::<Vec<_>>().join(", ");
                Err(CommandError::SeveralLoaded { name: self.typed.to_owned(), paths })
            }
            _ => Ok(meant),
        }
    }
}
