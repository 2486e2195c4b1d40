//! .NET processes with unnamed methods: the trace has neither their method events nor their rundown.

use std::collections::BTreeSet;

use handlescope_model::tables::{ModuleLoads, Modules};
use handlescope_model::{ArchiveError, ProcessIdx, StackIdx, Trace};

use super::frame_names::Frames;
use super::tables::ProcessList;
use handlescope_session::trace::Caveat;

/// The modules that compile methods at run time: .NET Framework 4, .NET, and .NET Framework 2.
const RUNTIMES: [&str; 4] = ["clr.dll", "coreclr.dll", "mscorwks.dll", "mscorsvr.dll"];

/// Whether a stack contains unknown code, once checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKnowledge {
    NotAsked,
    Known,
    Unknown,
}

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
    let mut has_runtime = dot_net_processes(trace, processes.rows().len())?;
    if !has_runtime.contains(&true) {
        return Ok(None);
    }
    let named = frames.named();
    let mut verdicts = vec![CodeKnowledge::NotAsked; frames.stacks.len()];
    let mut without_names: BTreeSet<ProcessIdx> = BTreeSet::new();
    for (stack, process) in stacks()? {
        let Some((stack, process)) = stack.zip(process) else { continue };
        let Some(is_open) = has_runtime.get_mut(process.row()).filter(|is_open| **is_open) else {
            continue;
        };
        let Some(verdict) = verdicts.get_mut(stack.row()) else { continue };
        if *verdict == CodeKnowledge::NotAsked {
            let mut rows = frames.stacks.get(stack.row());
            let is_unknown = rows.any(|frame| named.is_of_one_process(frame));
            *verdict = if is_unknown { CodeKnowledge::Unknown } else { CodeKnowledge::Known };
        }
        if *verdict == CodeKnowledge::Unknown {
            *is_open = false;
            without_names.insert(process);
        }
    }
    let labels = without_names.iter().map(|row| processes.get(*row).shown_label(false));
    Ok(Caveat::for_unnamed_methods(&labels.collect::<Vec<_>>()))
}

/// Returns whether the .NET runtime is loaded, by process row.
fn dot_net_processes(trace: &Trace, count: usize) -> Result<Vec<bool>, ArchiveError> {
    let names = trace.values(Modules::name)?;
    let is_runtime: Vec<bool> = (0..names.len())
        .map(|row| RUNTIMES.iter().any(|runtime| runtime.eq_ignore_ascii_case(names.text(row))))
        .collect();
    let mut has_runtime = vec![false; count];
    if !is_runtime.contains(&true) {
        return Ok(has_runtime);
    }
    let (module, process) =
        (trace.values(ModuleLoads::module)?, trace.values(ModuleLoads::process)?);
    for load in 0..module.len() {
        let Some((module, process)) = module.get(load).zip(process.get(load)) else { continue };
        if is_runtime.get(module.row()).copied().unwrap_or_default()
            && let Some(has_runtime) = has_runtime.get_mut(process.row())
        {
            *has_runtime = true;
        }
    }
    Ok(has_runtime)
}
