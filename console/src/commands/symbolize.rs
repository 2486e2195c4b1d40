//! `.symbolize`

use super::{
    Command, CommandError, Context, Signature,
    shared::{
        files::files_option,
        groups,
        names::{NameSearch, store_names},
    },
};
use crate::{
    filter::Filter,
    grammar::{Arguments, OptionGroup},
    trace::choose,
};

pub(crate) struct Symbolize;

impl Command for Symbolize {
    type Args = Vec<Filter>;
    const SIGNATURE: Signature = Signature {
        names: &[".symbolize"],
        group: groups::FILES,
        usage: "[OPTION…]",
        arguments: Arguments::Options,
        summary: "store the names of all frames in the loaded extracts",
        details: "So that they can be read where no symbols are. Names are looked up on the symbol \
                  path; see .sympath. Stored names count where the symbol path has none, and are \
                  replaced when .symbolize finds better ones. An extract is written anew beside the \
                  old one, which it replaces when it is complete.",
        examples: &[".symbolize", ".symbolize -fd *leaky*"],
    };
    const OPTIONS: &'static [OptionGroup<Vec<Filter>>] =
        &[OptionGroup { title: "Which files", options: &[files_option(|files| files)] }];

    fn run(files: Vec<Filter>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, out, messages, .. } = context;
        let wanted = choose(&session.files, &files, messages)?;
        let wanted: Vec<usize> = wanted.into_iter().map(|(index, _)| index).collect();
        for index in wanted {
            let Some(file) = session.files.get(index) else { continue };
            let symbolizer = session.symbolizer();
            let search = NameSearch { frames: &file.frames, symbolizer, cancel };
            let line = store_names(&file.trace, search, messages)?;
            writeln!(out, "{line}")?;
            session.warn_of_missing_symbols(messages);
            session.reload(index)?;
        }
        Ok(())
    }
}
