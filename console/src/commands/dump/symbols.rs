//! `.dump Symbols`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature, shared::modules::dll_option},
    filter::Filter,
    grammar::{Example, OptionGroup},
    query, render,
};

pub(crate) struct Symbols;

impl Kind for Symbols {
    /// `-Dll`: modules with such a file name.
    type Args = Option<Filter>;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Symbols",
        summary: "what became of the search for the symbols of each module, and why",
        details: "Looks for the names of all frames of the trace, and lists the modules that they \
                  lie in: how many distinct frames, how many with a name, the PDB that the trace \
                  names, and where it was found or why not. What misses most comes first. \
                  Nothing is downloaded unless a server is named; see .sympath.",
        examples: &[
            Example { goal: "what is missing?", line: ".dump Symbols" },
            Example { goal: "one module", line: ".dump Symbols -Dll leaky.exe" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<Option<Filter>>] =
        &[OptionGroup { title: "Which modules", options: &[dll_option(|name| name)] }];

    fn columns() -> Vec<String> {
        render::symbol_columns().names()
    }

    fn answer(name: &Self::Args, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::symbols(dump.sources, name.as_ref(), dump.names, dump.cancel)?;
        dump.write(render::symbols(&answers)?)?;
        // The answer has said so.
        dump.session.skip_missing_symbols();
        Ok(())
    }
}
