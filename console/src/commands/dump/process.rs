//! `.dump Process`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature, shared::choice::process_option},
    filter::ProcessFilter,
    grammar::{Example, OptionGroup},
    query, render,
};

pub(crate) struct Process;

impl Kind for Process {
    /// `-ProcessName`: the processes to list.
    type Args = Option<ProcessFilter>;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Process",
        summary: "processes with their start, end and command line",
        details: "One row per lifetime: a pid that is used again is another process.",
        examples: &[
            Example { goal: "all processes", line: ".dump Process" },
            Example { goal: "one program", line: ".dump Process -pn leaky" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<Option<ProcessFilter>>] = &[OptionGroup {
        title: "Which processes",
        options: &[process_option(
            "processes of this name or pid",
            "The name may go without .exe; a number is a pid; ! in front excludes.",
            |process| process,
        )],
    }];

    fn columns() -> Vec<String> {
        render::columns(render::processes(&[]))
    }

    fn answer(process: &Self::Args, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::processes(dump.sources, process.as_ref(), dump.cancel)?;
        dump.write(render::processes(&answers)?)
    }
}
