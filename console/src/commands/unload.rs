//! `.unload`

use std::path::Path;

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
        details: "FILE is a path as .list shows it, or just the file name; * and ? work.",
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
        let names: Vec<Unloaded> = names.iter().map(|name| Unloaded::new(name)).collect();
        for name in &names {
            if !session.files.iter().any(|file| name.is(file)) {
                return Err(CommandError::NotLoaded { name: name.typed.to_owned() });
            }
        }
        session.files.retain(|file| !names.iter().any(|name| name.is(file)));
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

    /// Whether a file is meant: by its path as it was named, or by its file name.
    fn is(&self, file: &LoadedTrace) -> bool {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let (path, listed) = (file.path.to_string_lossy(), shown(&file.path));
        let matches = |text: &str| self.wildcard.as_ref().is_some_and(|w| w.matches(text));
        let typed = with_home(self.typed);
        file.path == typed
            || listed == typed
            || Path::new(self.typed) == Path::new(name.as_ref())
            || matches(&path)
            || matches(&name)
    }
}
