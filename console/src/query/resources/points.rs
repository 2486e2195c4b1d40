//! `.diff -Kind` between two points of a trace: what is allocated after the first and still at the second.

use std::cmp::Reverse;

use super::between::Between;
use super::{ResourceGroup, ResourcesAnswer, keep_no_match};
use crate::cancel::Cancel;
use crate::query::Span;
use crate::query::criteria::{ResourceColumn, ResourceCriteria};
use crate::query::error::QueryError;
use crate::query::frame_names::FrameNames;
use crate::query::growth::Window;
use crate::query::source::Source;

const NS_PER_MINUTE: f64 = 60e9;

/// What was allocated between two points of one trace, and is still allocated at the second.
pub struct AllocatedPoints<'a> {
    /// The trace, and its groups of one kind, allocator, process and stack of which something is left, the most bytes
    /// first; with all that is allocated at the second point, if that was asked for.
    pub answer: ResourcesAnswer<'a>,
    /// The points, within the time of the trace.
    pub window: Option<Window>,
}

impl AllocatedPoints<'_> {
    pub fn groups(&self) -> &[ResourceGroup] {
        self.answer.groups.as_ref().map_or(&[], |groups| &groups.rows)
    }

    /// What a group keeps by the minutes between the points; `None` where these have no length.
    pub fn bytes_per_minute(&self, group: &ResourceGroup) -> Option<f64> {
        let minutes = self.window?.length_ns() as f64 / NS_PER_MINUTE;
        (minutes > 0.0).then(|| (group.figures.between.kept.bytes as f64 / minutes).round())
    }

    /// The function of the program that allocated a group.
    pub fn function(&self, group: &ResourceGroup) -> Option<String> {
        self.answer.function(group.create_stack()?)
    }
}

/// Finds what was allocated between the points of each trace and is still allocated; `all_left` also asks for what was
/// allocated at the first point already.
///
/// `spans` has the points of each of the `sources`.
///
/// # Errors
/// As [`super::resources`].
pub fn allocated_between<'a>(
    sources: &[Source<'a>],
    spans: &[Span],
    criteria: &ResourceCriteria,
    all_left: bool,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<AllocatedPoints<'a>>, QueryError> {
    let by = ResourceColumn::COMPARED.to_vec();
    let asked = ResourceCriteria { by: Some(by), ..criteria.clone() };
    let files = sources.iter().zip(spans);
    let files = files.map(|(source, span)| {
        let mut answer = ResourcesAnswer::new(source, &asked, Some(*span), names, cancel)?;
        let is_left = |group: &ResourceGroup| {
            let Between { kept, at_second, .. } = group.figures.between;
            kept.count > 0 || (all_left && at_second.count > 0)
        };
        if let Some(groups) = &mut answer.groups {
            groups.rows.retain(is_left);
            groups.rows.sort_by_key(|group| {
                let kept = group.figures.between.kept;
                Reverse((kept.bytes, kept.count))
            });
        }
        let window = answer.window.map(|Window { start_ns, end_ns }| Window {
            start_ns: span.after_ns.unwrap_or(start_ns).clamp(start_ns, end_ns.max(start_ns)),
            end_ns: span.until_ns.unwrap_or(end_ns).clamp(start_ns, end_ns.max(start_ns)),
        });
        Ok(AllocatedPoints { answer, window })
    });
    let mut answers = files.collect::<Result<Vec<AllocatedPoints<'_>>, QueryError>>()?;
    keep_no_match(&mut answers.iter_mut().map(|points| &mut points.answer).collect::<Vec<_>>());
    Ok(answers)
}
