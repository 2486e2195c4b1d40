//! `.dump Module`

use crate::{
    commands::{
        CommandError, DumpContext, Kind, KindSignature,
        shared::{caveats::write_no_match, modules::MODULES},
    },
    grammar::{Example, OptionGroup},
    query::{self, ModuleCriteria},
    render,
};

pub(crate) struct Module;

impl Kind for Module {
    type Args = ModuleCriteria;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Module",
        summary: "modules with their versions, symbol identities and load addresses",
        details: "One row per image; the JSON output also lists where and when each was loaded.",
        examples: &[
            Example { goal: "all modules", line: ".dump Module" },
            Example { goal: "what one program loaded", line: ".dump Module -pn leaky" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<ModuleCriteria>] = MODULES;

    fn columns() -> Vec<String> {
        render::module_columns().names()
    }

    fn answer(args: &ModuleCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::modules(dump.sources, args, dump.cancel)?;
        answers
            .iter()
            .for_each(|own| write_no_match(own.path, own.no_match.as_ref(), dump.messages));
        dump.write(render::modules(&answers)?)
    }
}
