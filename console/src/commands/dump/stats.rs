//! `.dump Stats`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature},
    grammar::{Example, OptionGroup},
    query, render,
    settings::Display,
};

pub(crate) struct Stats;

impl Kind for Stats {
    type Args = ();
    const SIGNATURE: KindSignature = KindSignature {
        name: "Stats",
        summary: "what is in the traces: machine, clock, events by kind, losses",
        details: "Shows also what could not be decoded or attributed; nothing is dropped silently.",
        examples: &[Example { goal: "is the trace complete?", line: ".dump Stats" }],
    };
    const OPTIONS: &'static [OptionGroup<()>] = &[];

    fn columns() -> Vec<String> {
        render::columns(render::stats(&[], &Display::default()))
    }

    fn answer((): &(), dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::stats(dump.sources, dump.cancel)?;
        dump.write(render::stats(&answers, &dump.display())?)
    }
}
