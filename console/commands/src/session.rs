//! `.list`, `.unload`, `.cls` and `.quit`: lists and unloads traces, clears the screen, and quits.

use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;

use super::shared::groups;
use super::{Command, CommandError, Context, EnteredLine, Flow, Signature};
use handlescope_fleet::dataset::Dataset;
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::filter::Wildcard;
use handlescope_session::grammar::{Arguments, Example, ParseError};
use handlescope_session::paths::{shown, with_home};
use handlescope_session::settings::DisplayArgs;
use handlescope_session::trace::LoadedTrace;
use handlescope_session::values::CountedNoun;

pub struct List;

impl Command for List {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".list"],
        group: groups::FILES,
        usage: "",
        arguments: Arguments::None,
        summary: "list the loaded traces, or the loaded dataset",
        details: "The index counts from 0, as file_index does in JSON and .sql.",
        examples: &Example::lines([".list"]),
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if let Some(folder) = &context.session.dataset {
            let dataset = Dataset::open(folder)?;
            let traces = CountedNoun(dataset.traces()?.len() as u64, "trace");
            writeln!(context.out, "{}: a dataset of {traces}", Untrusted(shown(folder)))?;
            return Ok(());
        }
        if context.session.files.is_empty() {
            writeln!(context.out, "No traces are loaded.")?;
            return Ok(());
        }
        let Context { session, cancel, screen, out, .. } = context;
        let infos: Vec<_> =
            session.files.iter().map(|file| file.trace.info()).collect::<Result<_, _>>()?;
        let paths = session.files.iter().map(|file| file.path.as_path());
        let infos = infos.iter().map(AsRef::as_ref);
        let table = render::loaded(&paths.zip(infos).collect::<Vec<_>>())?;
        let display = session.settings.display(&DisplayArgs::default(), *screen);
        let overwrite = session.overwrite(false);
        table.write(&OutputOptions::default(), &display, &overwrite, cancel, *out)?;
        Ok(())
    }
}

pub struct Unload;

impl Command for Unload {
    /// Paths, names and patterns; empty for everything.
    type Args = Vec<String>;
    const SIGNATURE: Signature = Signature {
        names: &[".unload"],
        group: groups::FILES,
        usage: "[FILE…]",
        arguments: Arguments::LoadedFiles,
        summary: "unload some or all traces",
        details: "FILE is a path as .list shows it, or its last part if that is unique; * and ? \
             work.",
        examples: &Example::lines([".unload", ".unload leaky.etl"]),
    };

    fn parse(entered: &EnteredLine<'_>) -> Result<Vec<String>, ParseError> {
        Ok(entered.texts())
    }

    fn run(names: Vec<String>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let session = &mut context.session;
        if names.is_empty() {
            session.files.clear();
            session.dataset = None;
            session.search_beside_files();
            return Ok(());
        }
        if let (Some(folder), [name]) = (&session.dataset, names.as_slice())
            && (*folder == with_home(name) || folder.ends_with(name))
        {
            session.dataset = None;
            return Ok(());
        }
        let mut unloaded: Vec<PathBuf> = Vec::new();
        for name in &names {
            unloaded.extend(UnloadName::new(name).files(&session.files)?);
        }
        session.files.retain(|file| !unloaded.contains(&file.path));
        session.search_beside_files();
        Ok(())
    }
}

/// A name after `.unload`.
struct UnloadName<'a> {
    typed: &'a str,
    wildcard: Option<Wildcard>,
}

impl UnloadName<'_> {
    fn new(typed: &str) -> UnloadName<'_> {
        UnloadName { typed, wildcard: Wildcard::new(typed).ok() }
    }

    /// Returns the files that a name matches: the one with this path, as loaded or as shown by .list; else those that
    /// match a pattern; else the only one with a path that ends with the name.
    fn files(&self, files: &[LoadedTrace]) -> Result<Vec<PathBuf>, CommandError> {
        let typed = with_home(self.typed);
        let paths = |is_match: &dyn Fn(&Path) -> bool| -> Vec<PathBuf> {
            files.iter().map(|file| &file.path).filter(|path| is_match(path)).cloned().collect()
        };
        let exact = paths(&|path| path == typed || shown(path) == typed);
        if !exact.is_empty() {
            return Ok(exact);
        }
        let matches =
            |text: &str| self.wildcard.as_ref().is_some_and(|wildcard| wildcard.matches(text));
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let matching = paths(&|path| {
            matches(&path.to_string_lossy())
                || matches(&name(path))
                || path.ends_with(&typed)
                || shown(path).ends_with(&typed)
        });
        match matching.as_slice() {
            [] => Err(CommandError::NotLoaded { name: self.typed.to_owned() }),
            [_, _, ..] if !self.typed.contains(['*', '?']) => {
                let paths: Vec<_> = matching.iter().map(|path| path.to_string_lossy()).collect();
                let paths = paths.join(", ");
                Err(CommandError::SeveralLoaded { name: self.typed.to_owned(), paths })
            }
            _ => Ok(matching),
        }
    }
}

pub struct Cls;

impl Command for Cls {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".cls"],
        group: groups::SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "clear the screen",
        details: "Clears the scrollback, too. Has no effect in a pipe or file.",
        examples: &Example::lines([".cls"]),
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.out.flush()?;
        Ok(context.screen.clear()?)
    }
}

pub struct Quit;

impl Command for Quit {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".quit", ".q", ".exit", "quit", "exit", "q"],
        group: groups::SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "leave",
        details: "Ctrl-D on an empty line and the end of a script do the same.",
        examples: &Example::lines([".quit"]),
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        context.flow = Flow::Quit;
        Ok(())
    }
}
