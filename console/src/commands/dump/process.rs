//! `.dump Process`

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature, shared::choice::process_option},
    grammar::{Example, OptionGroup},
    query::{self, ProcessCriteria},
    render,
};

pub(crate) struct Process;

impl Kind for Process {
    type Args = ProcessCriteria;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Process",
        summary: "processes with their start, end and command line",
        details: "One row per lifetime: a pid that is used again is another process.",
        examples: &[
            Example { goal: "all processes", line: ".dump Process" },
            Example { goal: "one program", line: ".dump Process -pn leaky" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<ProcessCriteria>] = &[OptionGroup {
        title: "Which processes",
        options: &[process_option(
            "processes of this name or pid",
            "The name may go without .exe; a number is a pid; ! in front excludes.",
            |args| &mut args.process,
        )],
    }];

    fn answer(args: &ProcessCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::processes(dump.sources, args, dump.cancel)?;
        dump.write(render::processes(&answers)?)
    }
}
