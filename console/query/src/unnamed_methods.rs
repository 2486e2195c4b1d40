//! .NET processes with unnamed methods: the trace has neither their method events nor their rundown.

use std::collections::BTreeSet;

use handlescope_model::tables::Modules;
use handlescope_model::{ArchiveError, ModuleIdx, ProcessIdx, StackIdx, Trace};

use super::frame_names::{Frames, processes_with_module};
use super::tables::ProcessList;
use handlescope_session::trace::Caveat;

/// The modules that compile methods at run time: .NET Framework 4, .NET, and .NET Framework 2.
const RUNTIMES: [&str; 4] = ["clr.dll", "coreclr.dll", "mscorwks.dll", "mscorsvr.dll"];

/// Returns a caveat about .NET processes if any of these stacks contains unnamed code there; each stack comes with the
/// process of its event. Most traces have no .NET process, and then their stacks are not read.
pub fn caveat<S>(
    trace: &Trace,
    frames: &Frames<'_>,
    processes: &ProcessList,
    stacks: impl FnOnce() -> Result<S, ArchiveError>,
) -> Result<Option<Caveat>, ArchiveError>
where
    S: IntoIterator<Item = (Option<StackIdx>, Option<ProcessIdx>)>,
{
    let names = trace.values(Modules::name)?;
    let is_runtime = |module: ModuleIdx| {
        let name = names.get(module.row());
        name.is_some_and(|name| RUNTIMES.iter().any(|runtime| runtime.eq_ignore_ascii_case(name)))
    };
    let mut has_runtime = processes_with_module(trace, is_runtime)?;
    if !has_runtime.contains(&true) {
        return Ok(None);
    }
    let named = frames.named();
    // Whether each stack contains unknown code, once checked.
    let mut verdicts: Vec<Option<bool>> = vec![None; frames.stacks.len()];
    let mut without_names: BTreeSet<ProcessIdx> = BTreeSet::new();
    for (stack, process) in stacks()? {
        let Some((stack, process)) = stack.zip(process) else { continue };
        let Some(is_open) = has_runtime.get_mut(process.row()).filter(|is_open| **is_open) else {
            continue;
        };
        let Some(verdict) = verdicts.get_mut(stack.row()) else { continue };
        if *verdict.get_or_insert_with(|| named.is_stack_of_one_process(stack)) {
            *is_open = false;
            without_names.insert(process);
        }
    }
    let labels = without_names.iter().map(|row| processes.get(*row).shown_label(false));
    Ok(Caveat::for_unnamed_methods(&labels.collect::<Vec<_>>()))
}
