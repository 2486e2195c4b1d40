//! `.list`

use handlescope_model::tables::TraceInfo;

use super::{Command, CommandError, Context, Signature, shared::groups};
use crate::{
    grammar::Arguments,
    query::trace_info,
    render::{self, OutputOptions},
    settings::DisplayArgs,
};

pub(crate) struct List;

impl Command for List {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".list"],
        group: groups::FILES,
        usage: "",
        arguments: Arguments::None,
        summary: "list the loaded traces",
        details: "The number is the file index of the JSON output.",
        examples: &[".list"],
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if context.session.files.is_empty() {
            writeln!(context.out, "No traces are loaded.")?;
            return Ok(());
        }
        let Context { session, cancel, screen, out, .. } = context;
        let files = session.files.iter();
        let infos: Vec<TraceInfo> =
            files.map(|file| trace_info(&file.trace)).collect::<Result<_, _>>()?;
        let paths = session.files.iter().map(|file| file.path.as_path());
        let table = render::loaded(&paths.zip(&infos).collect::<Vec<_>>())?;
        let display = session.settings.display(&DisplayArgs::default(), *screen);
        let overwrite = session.overwrite(false);
        table.write(&OutputOptions::default(), &display, &overwrite, cancel, *out)?;
        Ok(())
    }
}
