//! What the groups of all comparisons have in common: what was acquired where, and whether it is a known leak.

use std::sync::Arc;

use handlescope_model::StackIdx;

use crate::answer::TraceAnswer;
use crate::error::QueryError;
use crate::ignored::{IgnoreCandidate, ignored_by};
use handlescope_session::settings::{IgnoreEntry, Ignoring};

/// What a group acquired, and where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupSite {
    /// Name of the processes, if known.
    pub program: Option<String>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: String,
    /// The allocator of allocations. Of two traces, `None` for a heap, because its handle differs each time; for
    /// handles without stack in dumps, the pattern of their object names.
    pub allocator: Option<String>,
    /// The program's function in the stack.
    pub function: Option<String>,
    /// The stack that opened or allocated them; one of several equal ones. Of two traces, the one in the trace after,
    /// if the group leaks there.
    pub stack: Option<StackIdx>,
    /// Index of the compared trace that has the stack.
    pub side: usize,
    /// The known leak it matches, if any.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

/// Marks groups that are known leaks, keeps those that `ignoring` shows, and returns the number of known leaks.
pub fn leave_known_leaks<'a, F: TraceAnswer<'a>, G>(
    groups: &mut Vec<G>,
    site: fn(&mut G) -> &mut GroupSite,
    files: &[F],
    ignoring: &Ignoring,
) -> Result<usize, QueryError> {
    let mut known_leaks = 0;
    for (side, file) in files.iter().enumerate() {
        let mut sites: Vec<&mut GroupSite> =
            groups.iter_mut().map(site).filter(|site| site.side == side).collect();
        let leaks = sites.iter().map(|site| IgnoreCandidate {
            program: site.program.as_deref().unwrap_or_default(),
            type_name: &site.type_name,
            function: site.function.as_deref(),
            // The stacks of a group have equal functions.
            stacks: vec![site.stack],
        });
        let ignored = ignored_by(&ignoring.list, leaks, file.frames())?;
        known_leaks += ignored.iter().flatten().count();
        sites.iter_mut().zip(ignored).for_each(|(site, by)| site.ignored = by);
    }
    groups.retain_mut(|group| ignoring.shows(site(group).ignored.as_ref()));
    Ok(known_leaks)
}
