//! Known leaks: which entry of a list ignores which leak of a trace.

use std::sync::Arc;

use handlescope_model::StackIdx;
use handlescope_session::settings::{IgnoreEntry, IgnoreList};

use super::error::QueryError;
use super::frame_names::Frames;
use super::stacks::{StackSet, judge};

/// A leak in the form that entries are matched against.
pub struct IgnoreCandidate<'l> {
    /// Name of the executable.
    pub program: &'l str,
    /// Type of the objects, or kind of the allocations.
    pub type_name: &'l str,
    /// The program's function that opens or allocates, as stack filters see it.
    pub function: Option<&'l str>,
    /// Its create stacks. An entry must match all of them, so that a new caller of a known function is not ignored.
    pub stacks: Vec<Option<StackIdx>>,
}

/// Finds the first entry that ignores each leak.
///
/// # Errors
/// If the query is cancelled while frame names are looked up.
pub fn ignored_by<'l>(
    list: &IgnoreList,
    leaks: impl Iterator<Item = IgnoreCandidate<'l>>,
    frames: Option<&Frames<'_>>,
) -> Result<Vec<Option<Arc<IgnoreEntry>>>, QueryError> {
    let leaks: Vec<IgnoreCandidate<'_>> = leaks.collect();
    let mut ignored: Vec<Option<Arc<IgnoreEntry>>> = vec![None; leaks.len()];
    for entry in list.active() {
        let mut matching: Vec<(&IgnoreCandidate<'_>, &mut Option<Arc<IgnoreEntry>>)> = leaks
            .iter()
            .zip(&mut ignored)
            .filter(|(leak, by)| {
                by.is_none() && entry.matches(leak.program, leak.type_name, leak.function)
            })
            .collect();
        if let Some((filter, frames)) = entry.stack().zip(frames) {
            let mut stacks = StackSet::new(frames.stacks.len());
            let of_leaks = matching.iter().flat_map(|(leak, _)| &leak.stacks);
            of_leaks.for_each(|stack| stacks.add(*stack));
            let verdicts = judge(filter, &stacks, frames)?;
            matching.retain(|(leak, _)| leak.stacks.iter().all(|stack| verdicts.passes(*stack)));
        } else if let Some(filter) = entry.stack() {
            // Without frames there is no stack.
            matching.retain(|_| filter.matches(""));
        }
        matching.into_iter().for_each(|(_, by)| *by = Some(Arc::clone(entry)));
    }
    Ok(ignored)
}
