//! `.cd`

use std::{env, path::PathBuf};

use super::{Command, CommandError, Context, Entered, Signature, shared::groups};
use crate::{
    grammar::{Arguments, ParseError},
    paths::with_home,
};
use handlescope_model::Untrusted;

pub(crate) struct Cd;

impl Command for Cd {
    /// The new folder, or none to show it.
    type Args = Option<String>;
    const SIGNATURE: Signature = Signature {
        names: &[".cd"],
        group: groups::FILES,
        usage: "[FOLDER]",
        arguments: Arguments::Folder,
        summary: "show or change the current folder",
        details: "~ is the home folder. Loaded traces stay loaded.",
        examples: &[".cd", ".cd examples"],
    };

    fn parse(entered: &Entered<'_>) -> Result<Self::Args, ParseError> {
        let [folder] = entered.at_most("one folder, in quotes if it has spaces")?;
        Ok(folder.map(|word| word.text.clone()))
    }

    fn run(folder: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Some(folder) = folder else {
            let folder = env::current_dir()
                .map_err(|source| CommandError::Folder { folder: PathBuf::from("."), source })?;
            return Ok(writeln!(context.out, "{}", Untrusted(folder))?);
        };
        context.session.settle_paths();
        let folder = with_home(&folder);
        let changed = env::set_current_dir(&folder).and_then(|()| env::current_dir());
        let now = changed.map_err(|source| CommandError::Folder { folder, source })?;
        context.messages.note(format_args!("current folder is {}", Untrusted(now)));
        Ok(())
    }
}
