//! `.dump Version`

use crate::{
    commands::{
        CommandError, DumpContext, Kind, KindSignature,
        shared::{caveats::write_no_match, modules::MODULES},
    },
    grammar::{Example, OptionGroup},
    query::{self, ModuleCriteria},
    render,
};

pub(crate) struct Version;

impl Kind for Version {
    type Args = ModuleCriteria;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Version",
        summary: "modules with version, product and description, by the processes that loaded them",
        details: "Modules that the same processes loaded are listed together, under the names of these.",
        examples: &[
            Example { goal: "All modules", line: ".dump Version" },
            Example { goal: "One module", line: ".dump Version -Dll leaky.exe" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<ModuleCriteria>] = MODULES;

    fn columns() -> Vec<String> {
        render::version_columns().names()
    }

    fn answer(args: &ModuleCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::modules(dump.sources, args, dump.cancel)?;
        answers
            .iter()
            .for_each(|own| write_no_match(own.path, own.no_match.as_ref(), dump.messages));
        dump.write(render::versions(&answers, &dump.display())?)
    }
}
