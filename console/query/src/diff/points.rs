//! Compares two points of one trace: what was acquired after the first and is still there at the second.

use std::cmp::Reverse;

use super::compared::{ComparableAnswer, extent, minutes, per_minute, rows_of_suspect};
use super::group::{GroupSite, leave_known_leaks};
use crate::acquired::{AcquisitionGroup, AcquisitionGroups, KeptSites, PointAmounts, PointSpan};
use crate::context::Source;
use crate::criteria::DiffCriteria;
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use crate::growth::{Growth, Lifetime, ProcessLifetimes, TimeWindow, Verdict};
use crate::suspect_rows::SuspectRows;
use crate::tables::ProcessInfo;
use handlescope_session::cancel::Cancel;

/// What was acquired between two points of one trace and is still there at the second; `F` is the answer for its
/// handles or allocations.
pub struct PointsDiff<F> {
    pub file: F,
    /// The points, clamped to the time of the trace; event numbers if the trace has no clock.
    pub window: TimeWindow,
    /// Groups with something still there, largest first; if requested, also groups with only older things at the second
    /// point. Known leaks are left out, or only they are shown.
    pub groups: Vec<OpenedGroup>,
    /// Number of groups that are known leaks.
    pub ignored: usize,
}

/// Handles and views of one process, type and create stack, or allocations of one process, kind, allocator and stack.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedGroup {
    pub site: GroupSite,
    /// The owner; `None` if not even its id is known.
    pub process: Option<ProcessInfo>,
    /// Amounts at the points and between them.
    pub between: PointAmounts,
    /// Handles or allocations opened between the points and kept, per minute; `None` if the minutes are unknown.
    pub per_minute: Option<f64>,
    /// Their bytes per minute.
    pub bytes_per_minute: Option<f64>,
}

/// Finds what was acquired between the points of each trace and is still there.
///
/// `spans` holds the points of each of the `sources`.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn between_points<'a, F: ComparableAnswer<'a>>(
    sources: &'a [Source<'a>],
    spans: &[PointSpan],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<PointsDiff<F>>, QueryError> {
    let files = F::ask(sources, criteria, false, names, cancel)?;
    let suspects = rows_of_suspect(&files, criteria)?;
    files
        .into_iter()
        .zip(spans)
        .zip(&suspects)
        .map(|((file, span), suspect)| of_file(file, *span, suspect.as_ref(), criteria))
        .collect()
}

fn of_file<'a, F: ComparableAnswer<'a>>(
    mut file: F,
    span: PointSpan,
    suspect: Option<&SuspectRows>,
    criteria: &DiffCriteria,
) -> Result<PointsDiff<F>, QueryError> {
    let acquired = file.acquired(criteria, KeptSites::ByAllocator)?;
    let TimeWindow { start_ns, end_ns } = extent(&file, acquired.as_ref());
    let within = |ns: Option<i64>, edge| ns.unwrap_or(edge).clamp(start_ns, end_ns.max(start_ns));
    let window = TimeWindow {
        start_ns: within(span.after_ns, start_ns),
        end_ns: within(span.until_ns, end_ns),
    };
    let mut groups = Vec::new();
    if let Some(acquired) = &acquired {
        let minutes = minutes(window.length_ns(), acquired.window.is_some());
        for group in &acquired.groups {
            if suspect.is_some_and(|rows| !acquired.has_any(group, rows)) {
                continue;
            }
            acquired.cancel.check()?;
            let between = acquired.between(group, span)?;
            if between.kept.count > 0 || (criteria.all_open && between.at_second.count > 0) {
                let minutes = minutes.filter(|_| has_rate(acquired, group, window));
                groups.push(OpenedGroup::new(acquired, group, between, minutes));
            }
        }
    }
    drop(acquired);
    groups.sort_by_key(|group| Reverse((group.between.kept.bytes, group.between.kept.count)));
    let files = std::slice::from_ref(&file);
    let ignored =
        leave_known_leaks(&mut groups, |group| &mut group.site, files, &criteria.ignoring)?;
    file.show_stacks(groups.iter().filter_map(|group| group.site.stack).collect())?;
    Ok(PointsDiff { file, window, groups, ignored })
}

/// Whether a group opened enough between two points for a rate, by the same rule as `.why`.
fn has_rate(
    acquired: &AcquisitionGroups<'_>,
    group: &AcquisitionGroup<'_>,
    window: TimeWindow,
) -> bool {
    let is_between =
        |lifetime: &Lifetime| (window.start_ns..=window.end_ns).contains(&lifetime.opened_ns);
    let processes: Vec<ProcessLifetimes> = acquired
        .shares(group)
        .map(|share| {
            let ProcessLifetimes { mut lifetimes, window: of_process } = share.lifetimes;
            lifetimes.retain(is_between);
            // What was closed later was still open at the second point.
            for lifetime in &mut lifetimes {
                lifetime.closed_ns = lifetime.closed_ns.filter(|closed| *closed <= window.end_ns);
            }
            let window = of_process.between(Some(window.start_ns), Some(window.end_ns));
            ProcessLifetimes { lifetimes, window }
        })
        .collect();
    Growth::from_processes(&processes, window).verdict != Verdict::Short
}

impl OpenedGroup {
    fn new(
        acquired: &AcquisitionGroups<'_>,
        group: &AcquisitionGroup<'_>,
        between: PointAmounts,
        minutes: Option<f64>,
    ) -> Self {
        let process = acquired.shown_name(group).map(|_| group.process.clone().into_owned());
        Self {
            site: GroupSite {
                program: process.as_ref().map(|process| process.name.clone()),
                type_name: group.type_name.to_owned(),
                allocator: group.allocator.map(str::to_owned),
                function: group.create_stack.and_then(|stack| acquired.function(stack)),
                stack: group.create_stack,
                ..GroupSite::default()
            },
            process,
            per_minute: per_minute(between.kept.count, minutes),
            bytes_per_minute: minutes.map(|minutes| (between.kept.bytes as f64 / minutes).round()),
            between,
        }
    }
}
