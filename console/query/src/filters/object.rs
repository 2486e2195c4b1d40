//! Filters on what an object is, independent of its events.

use std::collections::HashMap;
use std::fmt::Write;

use handlescope_model::rules::{UNKNOWN_LIFETIME_NS, lifetime_ns};
use handlescope_model::tables::{Acquisitions, Names, Objects};
use handlescope_model::{EventIdx, ObjectIdx, TypeId};

use crate::context::FileContext;
use crate::criteria::AcquisitionCriteria;
use crate::criterion::Criterion;
use crate::error::QueryError;
use handlescope_session::cancel::Poll;
use handlescope_session::filter::Filter;
use handlescope_session::values::TimeRange;

/// A test of an object, by its row.
pub type Test<'a> = Box<dyn FnMut(ObjectIdx) -> bool + 'a>;

/// Returns the test of a criterion on the unfiltered object; `None` if the criterion looks at events.
pub fn test<'a>(
    criterion: Criterion,
    args: &'a AcquisitionCriteria,
    file: &'a FileContext<'_>,
) -> Result<Option<Test<'a>>, QueryError> {
    Ok(Some(match criterion {
        Criterion::Id => {
            let mut digits = String::new();
            Box::new(move |object| {
                args.id.as_ref().is_none_or(|filter| {
                    digits.clear();
                    let _ = write!(digits, "{}", id_of(object));
                    filter.matches(&digits)
                })
            })
        }
        Criterion::MinMaxId => {
            Box::new(|object| args.ids.is_none_or(|ids| ids.contains(id_of(object))))
        }
        // The mode is in [`AcquisitionCriteria::map_mode`], and other criteria may imply it.
        Criterion::Map => Box::new(|_| true),
        Criterion::MultiProcess => {
            let multi = file.trace.values(Objects::is_multiprocess)?;
            Box::new(move |object| multi.get(object.row()))
        }
        Criterion::ObjectName => by_name(&args.object_name, file)?,
        Criterion::Type => by_type(&args.object_type, file),
        Criterion::Object => {
            let pointers = file.trace.values(Objects::pointer)?;
            let mut hex = HexFilter::new(&args.object);
            Box::new(move |object| pointers.get(object.row()).is_some_and(|p| hex.matches(p)))
        }
        Criterion::MinMaxDuration => by_lifetime(args.duration, file)?,
        Criterion::PtrInMap => {
            let pointer = args.ptr_in_map;
            by_view(file, move |base, size| pointer.is_none_or(|it| is_in_view(it, base, size)))?
        }
        Criterion::ViewBase => {
            let mut hex = HexFilter::new(&args.view_base);
            by_view(file, move |base, _| hex.matches(base))?
        }
        Criterion::MinMaxMapSize => {
            let sizes = args.map_size;
            by_view(file, move |_, size| sizes.is_none_or(|sizes| sizes.contains(size)))?
        }
        _ => return Ok(None),
    }))
}

fn id_of(object: ObjectIdx) -> u64 {
    u64::from(object.0) + 1
}

/// Returns the filter, unless it lets everything pass and so needs no work.
fn effective(filter: &Option<Filter>) -> Option<&Filter> {
    filter.as_ref().filter(|filter| !filter.passes_everything())
}

fn by_type<'a>(filter: &'a Option<Filter>, file: &'a FileContext<'_>) -> Test<'a> {
    let FileContext { objects, types, .. } = file;
    let mut verdicts: HashMap<TypeId, bool> = HashMap::new();
    Box::new(move |object| {
        let id = objects.type_id(object);
        *verdicts
            .entry(id)
            .or_insert_with(|| filter.as_ref().is_none_or(|filter| filter.matches(types.get(id))))
    })
}

fn by_name<'a>(filter: &Option<Filter>, file: &FileContext<'_>) -> Result<Test<'a>, QueryError> {
    let Some(filter) = effective(filter) else { return Ok(Box::new(|_| true)) };
    let FileContext { trace, volumes, cancel, .. } = file;
    let names = trace.values(Names::name)?;
    let mut poll = Poll::new(cancel);
    let verdict = |row| poll.round().map(|()| volumes.matches(filter, names.text(row)));
    let verdicts: Vec<bool> = (0..names.len()).map(verdict).collect::<Result<_, _>>()?;
    let without_name = filter.matches("");
    let name = trace.values(Objects::name)?;
    Ok(Box::new(move |object| {
        let verdict = name.get(object.row()).and_then(|name| verdicts.get(name.row()));
        verdict.copied().unwrap_or(without_name)
    }))
}

fn by_lifetime<'a>(
    range: Option<TimeRange>,
    file: &'a FileContext<'_>,
) -> Result<Test<'a>, QueryError> {
    let times = file.trace.event_times()?;
    let range = range.map(|range| range.nanoseconds());
    Ok(Box::new(move |object| {
        let time = |event: Option<EventIdx>| times.get(event?.row());
        let (create, end) = (times.table.create_event(object), times.destroy_event(object));
        let lifetime = lifetime_ns(time(create), time(end)).unwrap_or(UNKNOWN_LIFETIME_NS);
        range.as_ref().is_none_or(|range| range.contains(&lifetime))
    }))
}

/// Returns a test of the base and size of a mapping's view. It uses the first map event, even if a filter removes the
/// event.
fn by_view<'a>(
    file: &'a FileContext<'_>,
    mut passes: impl FnMut(u64, u64) -> bool + 'a,
) -> Result<Test<'a>, QueryError> {
    let trace = file.trace;
    let times = trace.event_times()?;
    let (base, size) = (trace.values(Acquisitions::key)?, trace.values(Acquisitions::size)?);
    Ok(Box::new(move |object| {
        let table = &times.table;
        let mut views = table.acquisitions(object).filter(|row| {
            let state = table.state(*row);
            state.is_view() && state.is_opened()
        });
        // Views are in the order they were mapped.
        let first = views.next();
        let view = first.and_then(|row| base.get(row).zip(size.get(row)));
        view.is_some_and(|(base, size)| passes(base, size as u64))
    }))
}

/// The end of the view counts as inside, as in ETWAnalyzer.
fn is_in_view(pointer: u64, base: u64, size: u64) -> bool {
    (base..=base.saturating_add(size)).contains(&pointer)
}

/// A filter on numbers written as `0xC0` that remembers its verdicts: a trace has few distinct handle values, and
/// pointers are reused by objects.
pub struct HexFilter<'a> {
    filter: Option<&'a Filter>,
    verdicts: HashMap<u64, bool>,
    text: String,
}

impl<'a> HexFilter<'a> {
    pub fn new(filter: &'a Option<Filter>) -> Self {
        Self { filter: effective(filter), verdicts: HashMap::new(), text: String::new() }
    }

    pub fn matches(&mut self, number: u64) -> bool {
        let Some(filter) = self.filter else { return true };
        if let Some(&verdict) = self.verdicts.get(&number) {
            return verdict;
        }
        self.text.clear();
        // Writing to a string does not fail.
        let _ = write!(self.text, "0x{number:X}");
        let verdict = filter.matches(&self.text);
        self.verdicts.insert(number, verdict);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_view_is_inside_and_a_view_at_the_end_of_memory_does_not_wrap() {
        assert!(is_in_view(0x1000, 0x1000, 0x10));
        assert!(is_in_view(0x1010, 0x1000, 0x10));
        assert!(!is_in_view(0x1011, 0x1000, 0x10));
        assert!(is_in_view(u64::MAX, u64::MAX - 1, 0x10));
    }
}
