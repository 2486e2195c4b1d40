//! The criteria of objects one by one, as they are taken over.

use super::criteria::ObjectCriteria;
use super::criterion::Criterion;
use crate::filter::{Filter, ProcessFilter};
use crate::values::SuspectId;

/// A criterion that was given, and how to take it over alone.
pub(super) struct Step {
    pub(super) criterion: Criterion,
    /// The filter as it was typed; empty where the criterion is not a filter on text.
    pub(super) value: String,
    pub(super) take: fn(&ObjectCriteria, &mut ObjectCriteria),
}

/// The criteria that were given, in the order of the filters, but those that may load symbols last.
pub(super) fn steps(args: &ObjectCriteria) -> Vec<Step> {
    let mut steps = Vec::new();
    macro_rules! step {
        ($criterion:ident, $($field:ident).+, $is_given:expr, $value:expr) => {
            if $is_given {
                let take: fn(&ObjectCriteria, &mut ObjectCriteria) =
                    |from, to| to.$($field).+.clone_from(&from.$($field).+);
                steps.push(Step { criterion: Criterion::$criterion, value: $value, take });
            }
        };
    }
    macro_rules! switch {
        ($criterion:ident, $($field:ident).+) => {
            step!($criterion, $($field).+, args.$($field).+, String::new())
        };
    }
    macro_rules! range {
        ($criterion:ident, $($field:ident).+) => {
            step!($criterion, $($field).+, args.$($field).+.is_some(), String::new())
        };
    }
    macro_rules! filter {
        ($criterion:ident, $text:path, $($field:ident).+) => {
            step!(
                $criterion, $($field).+, args.$($field).+.is_some(),
                args.$($field).+.as_ref().map_or("", $text).to_owned()
            )
        };
    }
    range!(Ids, ids);
    range!(Mapping, map);
    switch!(MultiProcess, multi_process);
    filter!(ObjectName, Filter::text, object_name);
    filter!(Type, Filter::text, object_type);
    filter!(Object, Filter::text, object);
    filter!(Suspect, SuspectId::text, suspect);
    // Both choose more than each.
    if let Some(criterion) = Criterion::of_leaks(args.leak, args.leak_at_exit) {
        let take: fn(&ObjectCriteria, &mut ObjectCriteria) =
            |from, to| (to.leak, to.leak_at_exit) = (from.leak, from.leak_at_exit);
        steps.push(Step { criterion, value: String::new(), take });
    }
    range!(Time, time);
    filter!(Process, ProcessFilter::text, creator.name);
    filter!(CommandLine, Filter::text, creator.command_line);
    range!(NewProcess, creator.new_process);
    range!(PtrInMap, ptr_in_map);
    filter!(ViewBase, Filter::text, view_base);
    range!(MapSize, map_size);
    switch!(Inherit, inherit);
    filter!(RelatedProcess, ProcessFilter::text, related_process);
    filter!(Handle, Filter::text, handle);
    range!(Duration, duration);
    switch!(Overlapped, overlapped);
    filter!(StackFilter, Filter::text, stack_filter);
    filter!(CreateStack, Filter::text, create_stack);
    filter!(DestroyStack, Filter::text, destroy_stack);
    steps
}

/// Gives a filter another value; `false` when the criterion is not a filter on text, or the value is none.
pub(super) fn set_value(criterion: Criterion, value: &str, args: &mut ObjectCriteria) -> bool {
    let process = || ProcessFilter::new(value).ok();
    let filter = || Filter::new(value).ok();
    match criterion {
        Criterion::Process => args.creator.name = process(),
        Criterion::RelatedProcess => args.related_process = process(),
        Criterion::Type => args.object_type = filter(),
        Criterion::ObjectName => args.object_name = filter(),
        Criterion::CommandLine => args.creator.command_line = filter(),
        Criterion::Handle => args.handle = filter(),
        Criterion::Object => args.object = filter(),
        Criterion::ViewBase => args.view_base = filter(),
        Criterion::StackFilter => args.stack_filter = filter(),
        Criterion::CreateStack => args.create_stack = filter(),
        Criterion::DestroyStack => args.destroy_stack = filter(),
        _ => return false,
    }
    process().is_some() || filter().is_some()
}

#[cfg(test)]
impl Criterion {
    /// Those that are given.
    pub(crate) fn all_of(args: &ObjectCriteria) -> Vec<Criterion> {
        steps(args).into_iter().map(|step| step.criterion).collect()
    }
}
