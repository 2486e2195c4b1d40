//! Between two points of one trace: opened after the first and still open at the second.

use std::cmp::Reverse;

use handlescope_model::StackIdx;

use super::{Group, function, grouped, groups, minutes, parts, per_minute};
use crate::cancel::{Cancel, Poll};
use crate::query::criteria::DiffCriteria;
use crate::query::error::QueryError;
use crate::query::frame_names::FrameNames;
use crate::query::groups::{GroupTree, TimedGroups};
use crate::query::growth::Window;
use crate::query::object_ref::FileAnswer;
use crate::query::source::Source;

/// Objects named as examples of a group.
const SAMPLES: usize = 3;

/// Two points in time, nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// What was opened then or before does not count; `None` for the start.
    pub after_ns: Option<i64>,
    /// What is closed then is not open; `None` for the end.
    pub until_ns: Option<i64>,
}

/// What was opened between two points of one trace, and is still open at the second.
pub struct PointsDiff<'a> {
    /// The trace.
    pub file: FileAnswer<'a>,
    /// The points, within the time of the trace.
    pub window: Window,
    /// Groups with something that is still open, the largest first; with all that is open at the second
    /// point, if that was asked for.
    pub groups: Vec<OpenedGroup>,
}

/// Handles and views of one process, type and create stack.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedGroup {
    /// The owner, `name.exe(pid)`.
    pub process: String,
    /// Process id of the owner, if it is known.
    pub pid: Option<u32>,
    /// Type of the objects.
    pub type_name: String,
    /// The stack that opened them: one of those that are equal.
    pub create_stack: Option<StackIdx>,
    /// Its first frame outside of the system.
    pub function: Option<String>,
    /// Handles and views that were opened between the points.
    pub opened: u64,
    /// Those of them that are open at the second point.
    pub still_open: u64,
    /// Those by the minutes between the points; `None` where these are unknown.
    pub per_minute: Option<f64>,
    /// Handles and views that were opened in the trace and are open at the first point.
    pub open_from: u64,
    /// The same at the second point.
    pub open_to: u64,
    /// Ids of up to three of their objects.
    pub sample_ids: Vec<u64>,
}

/// Finds what was opened between the points of each trace and is still open.
///
/// `spans` has the points of each of the `sources`.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn opened_between<'a>(
    sources: &'a [Source<'a>],
    spans: &[Span],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<PointsDiff<'a>>, QueryError> {
    let files = grouped(sources, criteria, names, cancel)?;
    files.into_iter().zip(spans).map(|(file, span)| of_file(file, *span, criteria)).collect()
}

fn of_file<'a>(
    mut file: FileAnswer<'a>,
    span: Span,
    criteria: &DiffCriteria,
) -> Result<PointsDiff<'a>, QueryError> {
    let mut window = Window { start_ns: 0, end_ns: 0 };
    let mut found = Vec::new();
    if let Some((all, timed)) = parts(&file) {
        let Window { start_ns, end_ns } = all.extent;
        window.start_ns = span.after_ns.unwrap_or(start_ns).clamp(start_ns, end_ns);
        window.end_ns = span.until_ns.unwrap_or(end_ns).clamp(start_ns, end_ns);
        let search =
            Search { file: &file, tree: &all.tree, timed, span, minutes: minutes(&file, window) };
        let mut poll = Poll::new(file.file.cancel);
        for group in groups(&file, (all, timed), criteria) {
            found.extend(search.opened(&group, criteria, &mut poll)?);
        }
    }
    found.sort_by_key(|group| Reverse(group.still_open));
    file.show_stacks(found.iter().filter_map(|group| group.create_stack).collect())?;
    Ok(PointsDiff { file, window, groups: found })
}

/// What is read of a trace.
struct Search<'g, 'a> {
    file: &'g FileAnswer<'a>,
    tree: &'g GroupTree,
    timed: &'g TimedGroups,
    span: Span,
    minutes: Option<f64>,
}

impl Search<'_, '_> {
    /// What a group has between the points, if anything of it is still open; of all that is open at the
    /// second point if that is asked for.
    fn opened(
        &self,
        group: &Group<'_>,
        criteria: &DiffCriteria,
        poll: &mut Poll<'_>,
    ) -> Result<Option<OpenedGroup>, QueryError> {
        let Span { after_ns, until_ns } = self.span;
        let (mut opened, mut still_open, mut open_from, mut open_to) = (0, 0, 0, 0);
        let mut sample_ids: Vec<u64> = Vec::new();
        for handle in self.timed.handles(self.tree, group.node).iter() {
            poll.round()?;
            let Some(life) = self.timed.life(*handle) else { continue };
            // A close whose time is unknown is one nevertheless.
            let outlives = |point: Option<i64>| {
                let is_later = |closed| point.is_some_and(|point| closed > point);
                handle.closed().is_none() || life.closed_ns.is_some_and(is_later)
            };
            let is_after = after_ns.is_none_or(|after| life.opened_ns > after);
            open_from += u64::from(!is_after && outlives(after_ns));
            if until_ns.is_some_and(|until| life.opened_ns > until) {
                continue;
            }
            open_to += u64::from(outlives(until_ns));
            if !is_after {
                continue;
            }
            opened += 1;
            if outlives(until_ns) {
                still_open += 1;
                let id = u64::from(handle.object.0) + 1;
                if sample_ids.len() < SAMPLES && !sample_ids.contains(&id) {
                    sample_ids.push(id);
                }
            }
        }
        let is_shown = still_open > 0 || (criteria.all_open && open_to > 0);
        Ok(is_shown.then(|| OpenedGroup {
            process: group.process.shown_label(criteria.with_identities),
            pid: group.process.known_pid(),
            type_name: group.type_name.to_owned(),
            create_stack: group.create_stack,
            function: function(self.file, group.create_stack),
            opened,
            still_open,
            per_minute: per_minute(still_open, self.minutes),
            open_from,
            open_to,
            sample_ids,
        }))
    }
}
