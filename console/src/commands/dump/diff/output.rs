//! What answers about handles and about allocations have in common.

use std::{io, path::Path};

use super::options::FLAME;
use crate::{
    commands::{CommandError, DumpContext, Flow},
    query::{NoMatch, TracesDiff},
    render::{
        Table,
        output::Target,
        pictures::{FlameGraph, TraceStacks},
    },
    settings::Display,
};

/// Writes a picture in the place of the answer.
pub(super) fn draw(
    path: &Path,
    graph: &FlameGraph,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let target = Target { path, option: FLAME, format: "SVG" };
    dump.write_file(target, |out| graph.write_svg(out))
}

/// Words for what two traces leak.
pub(super) struct Compared {
    /// What is compared, as in "handles".
    pub(super) what: &'static str,
    /// That the second trace has none of it.
    pub(super) nothing: &'static str,
}

/// Says what got worse between two traces, and draws their groups or writes them as a table.
pub(super) fn compared<'t, F: TraceStacks>(
    answer: &TracesDiff<F>,
    Compared { what, nothing }: Compared,
    flame: Option<&Path>,
    table: impl FnOnce(&Display) -> io::Result<Table<'t>>,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    got_worse(answer.worse(), answer.uncertain(), what, dump);
    let Some(path) = flame else {
        let table = table(&dump.display())?;
        return dump.write(table);
    };
    match FlameGraph::of_traces(answer) {
        // Where the question is whether something got worse, that is not a failure.
        graph if graph.is_empty() => {
            dump.messages.note(format_args!("no picture: {nothing} in the second trace"));
            Ok(())
        }
        graph => draw(path, &graph, dump),
    }
}

/// Says that groups got worse, or may have, and ends with the status that says so, before the answer is written: its reader
/// may leave early.
fn got_worse(worse: usize, uncertain: usize, what: &str, dump: &mut DumpContext<'_, '_>) {
    let groups = |number| match number {
        1 => "1 group".to_owned(),
        number => format!("{number} groups"),
    };
    if uncertain > 0 {
        dump.messages.warning(format_args!(
            "{} of {what} may or may not have got worse, because events were lost; record again, with more or larger \
             buffers",
            groups(uncertain)
        ));
        dump.flow = Flow::Undecided;
    }
    if worse > 0 {
        dump.messages.warning(format_args!("{} of {what} got worse", groups(worse)));
        dump.flow = Flow::Worse;
    }
}

/// Refuses a filter that nothing of either trace passes: a mistyped name would pass any gate.
pub(super) fn check_choice(no_match: Option<&NoMatch>) -> Result<(), CommandError> {
    match no_match {
        Some(no_match) => Err(CommandError::NothingChosen { no_match: no_match.clone() }),
        None => Ok(()),
    }
}
