//! `.dump Types`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature},
    grammar::{Example, OptionGroup},
    query, render,
};

pub(crate) struct Types;

impl Kind for Types {
    type Args = ();
    const SIGNATURE: KindSignature = KindSignature {
        name: "Types",
        summary: "the object types of the trace",
        details: "One row per type.",
        examples: &[Example { goal: "All types", line: ".dump Types" }],
    };
    const OPTIONS: &'static [OptionGroup<()>] = &[];

    fn columns() -> Vec<String> {
        render::columns(render::types(&[]))
    }

    fn answer((): &(), dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        dump.write(render::types(&query::types(dump.sources)?)?)
    }
}
