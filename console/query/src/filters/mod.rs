//! The filters of `.dump ObjectRef`, in their fixed order.
//!
//! Filters on suspects, leaks, times, stacks and handles remove events. Filters on create and destroy stacks, creators,
//! inheritance, related processes and overlaps test the remaining events; all others test the unfiltered object.
//!
//! Filters are applied in the order in which an empty answer names them, and the objects left by each are counted.
//! There are two exceptions: filters on the kind of object come first, and a filter on event stacks comes before those
//! that test the remaining events.
//!
//! They are loops over slices, not polars expressions: each works on what earlier filters left of one object (its
//! events, creation and end), in an order that matters, and stops at the first event that decides.

pub mod event;
pub mod object;
pub mod process;
mod start_handle;

use super::context::FileContext;
use super::criteria::{EventTest, LeftEventsTest, MapMode, ObjectCriteria, ObjectEffect};
use super::criterion::{Criteria, Criterion, Survivors};
use super::error::QueryError;
use super::info::check_clock;
use super::selection::{SelectedObject, Selection};

use self::object::Test;
pub use self::start_handle::open_start_handles;

/// The objects of a trace that pass.
pub struct FilteredObjects {
    pub selection: Selection,
    /// Objects that `-LeakAtExit` would keep but `-Leak` leaves out; `None` if there are none.
    pub at_exit: Option<Selection>,
    /// Objects with handles closed unseen, which `-Leak` and `-LeakAtExit` leave out; `None` if there are none.
    pub unseen: Option<Selection>,
    /// Objects with all handles of the suspect, if totals count these.
    pub suspect: Option<Selection>,
    /// Number of objects that each criterion leaves.
    pub survivors: Survivors,
}

/// Applies all filters of a query to one trace.
pub fn select(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
) -> Result<FilteredObjects, QueryError> {
    let by_time = [(Criterion::MinMaxTime, args.time), (Criterion::MinMaxDuration, args.duration)];
    for (criterion, _) in by_time.into_iter().filter(|(_, range)| range.is_some()) {
        check_clock(file.trace, file.path, criterion)?;
    }
    let mut steps = steps(args).into_iter().peekable();
    let mut tests = Vec::new();
    while let Some((criterion, effect)) = steps.peek()
        && let Some(test) = test(*effect, file, args)?
    {
        tests.push((*criterion, test, 0));
        steps.next();
    }
    let mode = args.map_mode().map(|mode| mode == MapMode::Mappings);
    let selection = Selection::new(&file.objects, file.cancel, |object| {
        let is_of_mode = mode.is_none_or(|mode| file.objects.is_mapping(object) == mode);
        is_of_mode
            && tests.iter_mut().all(|(_, test, count)| {
                let passes = test(object);
                *count += usize::from(passes);
                passes
            })
    })?;
    let mut survivors = Survivors::new(file.objects.len());
    tests.into_iter().for_each(|(criterion, _, count)| survivors.note(criterion, count));
    let mut filtered =
        FilteredObjects { selection, at_exit: None, unseen: None, suspect: None, survivors };
    for (criterion, effect) in steps {
        let FilteredObjects { selection, at_exit, unseen, suspect, survivors } = &mut filtered;
        let beside = at_exit.iter_mut().chain(&mut *unseen).chain(&mut *suspect);
        for selection in [&mut *selection].into_iter().chain(beside) {
            keep(effect, args, file, selection)?;
        }
        if matches!(effect, ObjectEffect::Leaks) {
            *suspect = args.sums_suspect.then(|| selection.clone());
            (*at_exit, *unseen) = event::keep_leaks(args.leak, args.leak_at_exit, file, selection)?;
        }
        survivors.note(criterion, selection.objects().len());
    }
    Ok(filtered)
}

/// Returns the given criteria in the order they are applied.
fn steps(args: &ObjectCriteria) -> Vec<(Criterion, ObjectEffect)> {
    let mut steps: Vec<_> =
        args.given().into_iter().map(|given| (given.criterion, given.effect)).collect();
    if args.stack_filter.is_some() {
        // Symbols may have to be downloaded, so only stacks that can matter are requested.
        steps.sort_by_key(|(_, effect)| effect.rank_by_stacks());
    }
    steps
}

/// Returns the test of a criterion on the unfiltered object; `None` if the criterion looks at events.
fn test<'a>(
    effect: ObjectEffect,
    file: &'a FileContext<'_>,
    args: &'a ObjectCriteria,
) -> Result<Option<Test<'a>>, QueryError> {
    match effect {
        ObjectEffect::Objects(test) => object::test(test, args, file).map(Some),
        ObjectEffect::Views(test) => object::by_view(test, args, file).map(Some),
        ObjectEffect::Leaks
        | ObjectEffect::Events(_)
        | ObjectEffect::Stacks
        | ObjectEffect::LeftEvents(_) => Ok(None),
    }
}

/// Keeps the objects that pass a criterion, except for leaks, which [`event::keep_leaks`] handles.
fn keep(
    effect: ObjectEffect,
    args: &ObjectCriteria,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    match effect {
        ObjectEffect::Leaks => Ok(()),
        ObjectEffect::Objects(_) | ObjectEffect::Views(_) => {
            let Some(mut test) = test(effect, file, args)? else { return Ok(()) };
            Ok(selection.retain(file.cancel, |selected, _| test(selected.object()))?)
        }
        ObjectEffect::Events(EventTest::Suspect) => event::keep_suspect(file, selection),
        ObjectEffect::Events(EventTest::Time) => event::keep_time(args.time, file, selection),
        ObjectEffect::Stacks => {
            let is_plain = args.plain_process_names;
            process::keep_possible_creators(&args.creator, is_plain, file, selection)?;
            event::keep_stacks(&args.stack_filter, file, selection)
        }
        ObjectEffect::LeftEvents(test) => keep_by_left_events(test, args, file, selection),
    }
}

/// Keeps the objects with remaining events that pass a test.
fn keep_by_left_events(
    test: LeftEventsTest,
    args: &ObjectCriteria,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let is_plain = args.plain_process_names;
    match test {
        LeftEventsTest::Creator => {
            process::keep_creators(&args.creator.by_name(), is_plain, file, selection)
        }
        LeftEventsTest::CreatorCommandLine => {
            let creator = args.creator.by_name_and_command_line();
            process::keep_creators(&creator, is_plain, file, selection)
        }
        LeftEventsTest::NewCreator => {
            process::keep_creators(&args.creator, is_plain, file, selection)
        }
        LeftEventsTest::Inherited => event::keep_inherited(file, selection),
        LeftEventsTest::RelatedProcess => {
            process::keep_related(&args.related_process, is_plain, file, selection)
        }
        LeftEventsTest::Handle => event::keep_handles(&args.handle, file, selection),
        LeftEventsTest::Overlapped => event::keep_overlapped(file, selection),
        LeftEventsTest::CreateStack => {
            let create = |selected: SelectedObject| selected.create(&file.objects.table);
            event::keep_by_stack_of(create, &args.create_stack, file, selection)
        }
        LeftEventsTest::DestroyStack => {
            let times = file.trace.event_times()?;
            let end = |selected: SelectedObject| selected.end(&times);
            event::keep_by_stack_of(end, &args.destroy_stack, file, selection)
        }
    }
}
