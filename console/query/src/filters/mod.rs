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
use super::criteria::{AcquisitionCriteria, MapMode};
use super::criterion::{Criteria, Criterion, Survivors};
use super::error::QueryError;
use super::info::check_clock;
use super::selection::{SelectedObject, Selection};

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
    args: &AcquisitionCriteria,
) -> Result<FilteredObjects, QueryError> {
    check_clock(file.trace, file.path, args)?;
    let mut steps = steps(args).into_iter().peekable();
    let mut tests = Vec::new();
    while let Some(criterion) = steps.peek()
        && let Some(test) = object::test(*criterion, args, file)?
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
    for criterion in steps {
        let FilteredObjects { selection, at_exit, unseen, suspect, survivors } = &mut filtered;
        let beside = at_exit.iter_mut().chain(&mut *unseen).chain(&mut *suspect);
        for selection in [&mut *selection].into_iter().chain(beside) {
            keep(criterion, args, file, selection)?;
        }
        if criterion.is_of_leaks() {
            *suspect = args.sums_suspect.then(|| selection.clone());
            (*at_exit, *unseen) = event::keep_leaks(args.leak, args.leak_at_exit, file, selection)?;
        }
        survivors.note(criterion, selection.objects().len());
    }
    Ok(filtered)
}

/// Returns the given criteria in the order they are applied.
fn steps(args: &AcquisitionCriteria) -> Vec<Criterion> {
    let mut steps: Vec<_> = args.given().into_iter().map(|given| given.criterion).collect();
    if args.stack_filter.is_some() {
        // Symbols may have to be downloaded, so only stacks that can matter are requested.
        steps.sort_by_key(|criterion| rank_by_stacks(*criterion));
    }
    steps
}

/// Returns where a criterion comes relative to a filter on event stacks: before it, unless it tests the remaining
/// events.
fn rank_by_stacks(criterion: Criterion) -> u8 {
    match criterion {
        Criterion::StackFilter => 1,
        Criterion::Process
        | Criterion::CmdLine
        | Criterion::NewProcess
        | Criterion::Inherit
        | Criterion::RelatedProcess
        | Criterion::Handle
        | Criterion::Overlapped
        | Criterion::CreateStack
        | Criterion::DestroyStack => 2,
        _ => 0,
    }
}

/// Keeps the objects that pass a criterion, except for leaks, which [`event::keep_leaks`] handles.
fn keep(
    criterion: Criterion,
    args: &AcquisitionCriteria,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let is_plain = args.plain_process_names;
    match criterion {
        Criterion::Suspect => event::keep_suspect(file, selection),
        Criterion::MinMaxTime => event::keep_time(args.time, file, selection),
        Criterion::StackFilter => {
            // A stack filter may remove the creation, and another event takes over.
            process::keep_created(&args.creator, is_plain, file, selection, true)?;
            event::keep_stacks(&args.stack_filter, file, selection)
        }
        Criterion::Process | Criterion::CmdLine | Criterion::NewProcess => {
            // One process must pass all of them.
            let creator = args.creator.up_to(criterion);
            process::keep_created(&creator, is_plain, file, selection, false)
        }
        Criterion::Inherit => event::keep_inherited(file, selection),
        Criterion::RelatedProcess => {
            process::keep_related(&args.related_process, is_plain, file, selection)
        }
        Criterion::Handle => event::keep_handles(&args.handle, file, selection),
        Criterion::Overlapped => event::keep_overlapped(file, selection),
        Criterion::CreateStack => {
            let create = |selected: SelectedObject| selected.create(&file.objects.table);
            event::keep_by_stack_of(create, &args.create_stack, file, selection)
        }
        Criterion::DestroyStack => {
            let times = file.trace.event_times()?;
            let end = |selected: SelectedObject| selected.end(&times);
            event::keep_by_stack_of(end, &args.destroy_stack, file, selection)
        }
        _ => match object::test(criterion, args, file)? {
            Some(mut test) => {
                Ok(selection.retain(file.cancel, |selected, _| test(selected.object()))?)
            }
            None => Ok(()),
        },
    }
}
