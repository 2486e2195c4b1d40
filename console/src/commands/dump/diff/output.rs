//! What answers about handles and about allocations have in common.

use std::path::Path;

use super::options::FLAME;
use crate::{
    commands::{CommandError, DumpContext, Flow},
    render::{output::Target, pictures::FlameGraph},
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

/// Says that groups got worse, and ends with the status that says so.
pub(super) fn got_worse(worse: usize, what: &str, dump: &mut DumpContext<'_, '_>) {
    if worse > 0 {
        let groups = if worse == 1 { "1 group".to_owned() } else { format!("{worse} groups") };
        dump.messages.warning(format_args!("{groups} of {what} got worse"));
        dump.flow = Flow::Worse;
    }
}
