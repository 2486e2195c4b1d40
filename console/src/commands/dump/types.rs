//! `.dump Types`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature},
    grammar::{Example, OptionGroup},
    render,
};

pub(crate) struct Types;

impl Kind for Types {
    type Args = ();
    const SIGNATURE: KindSignature = KindSignature {
        name: "Types",
        summary: "the object types of the trace",
        details: "One row per type.",
        examples: &[Example { goal: "all types", line: ".dump Types" }],
    };
    const OPTIONS: &'static [OptionGroup<()>] = &[];

    fn answer((): &(), dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        for source in dump.sources {
            let frame = source.trace.frame(handlescope_model::Table::ObjectTypes)?;
            dump.write(render::frame(frame, ".dump Types"))?;
        }
        Ok(())
    }
}
