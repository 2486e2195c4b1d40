//! Filters over what an object is, whatever happens to its events.

use std::collections::HashMap;
use std::fmt::Write;

use handlescope_model::rules::{UNKNOWN_LIFETIME_NS, lifetime_ns};
use handlescope_model::tables::{Events, Names, Objects};
use handlescope_model::{ArchiveError, EventIdx, EventKind, Numbers, ObjectIdx, TypeId};

use crate::cancel::Poll;
use crate::filter::Filter;
use crate::query::context::FileContext;
use crate::query::criterion::Criterion;
use crate::query::error::QueryError;
use crate::query::objects::ObjectTable;
use crate::query::tables::TypeNames;
use crate::query::{MapMode, ObjectCriteria};
use crate::values::TimeRange;

/// A test of one object, by its row.
pub(super) type Test<'a> = Box<dyn FnMut(ObjectIdx) -> bool + 'a>;

/// The test of a criterion that looks at the unfiltered object; `None` of one that looks at its events.
pub(super) fn test<'a>(
    criterion: Criterion,
    file: &'a FileContext<'_>,
    args: &'a ObjectCriteria,
) -> Result<Option<Test<'a>>, QueryError> {
    let FileContext { trace, objects, types, .. } = file;
    Ok(Some(match criterion {
        Criterion::MinMaxId => {
            let passes = |id| args.ids.is_none_or(|ids| ids.contains(id));
            Box::new(move |object| passes(u64::from(object.0) + 1))
        }
        // The mode is tested wherever another criterion implies it, too.
        Criterion::Map => Box::new(|_| true),
        Criterion::MultiProcess => {
            let multi = trace.values(Objects::is_multiprocess)?;
            Box::new(move |object| multi.get(object.row()))
        }
        Criterion::ObjectName => by_name(&args.object_name, file)?,
        Criterion::Type => by_type(&args.object_type, objects, types),
        Criterion::Object => {
            let (pointers, mut hex) =
                (trace.values(Objects::pointer)?, HexFilter::new(&args.object));
            Box::new(move |object| pointers.get(object.row()).is_some_and(|p| hex.matches(p)))
        }
        Criterion::PtrInMap => by_view(file, |base, size| {
            args.ptr_in_map.is_none_or(|pointer| is_in_view(pointer, base, size))
        })?,
        Criterion::ViewBase => {
            let mut hex = HexFilter::new(&args.view_base);
            by_view(file, move |base, _| hex.matches(base))?
        }
        Criterion::MinMaxMapSize => {
            by_view(file, |_, size| args.map_size.is_none_or(|range| range.contains(size)))?
        }
        Criterion::MinMaxDuration => {
            by_lifetime(args.duration, objects, trace.values(Events::time_ns)?)
        }
        _ => return Ok(None),
    }))
}

/// The map mode in force: filters that make sense for one kind only imply it, and those over
/// mappings win.
pub(in crate::query) fn map_mode(args: &ObjectCriteria) -> Option<MapMode> {
    if args.ptr_in_map.is_some() || args.view_base.is_some() || args.map_size.is_some() {
        Some(MapMode::Mappings)
    } else if args.handle.is_some() || args.object_name.is_some() {
        Some(MapMode::Objects)
    } else {
        args.map
    }
}

/// A filter that lets everything pass needs no work.
fn wanted(filter: &Option<Filter>) -> Option<&Filter> {
    filter.as_ref().filter(|filter| !filter.passes_everything())
}

fn by_type<'a>(
    filter: &'a Option<Filter>,
    objects: &'a ObjectTable,
    types: &'a TypeNames,
) -> Test<'a> {
    let mut verdicts: HashMap<TypeId, bool> = HashMap::new();
    let passes = |id| filter.as_ref().is_none_or(|filter| filter.matches(types.get(id)));
    Box::new(move |object| {
        let id = objects.type_id(object);
        *verdicts.entry(id).or_insert_with(|| passes(id))
    })
}

fn by_name<'a>(filter: &Option<Filter>, file: &FileContext<'_>) -> Result<Test<'a>, QueryError> {
    let Some(filter) = wanted(filter) else { return Ok(Box::new(|_| true)) };
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

fn by_lifetime(range: Option<TimeRange>, objects: &ObjectTable, times: Numbers<i64>) -> Test<'_> {
    let range = range.map(|range| range.nanoseconds());
    Box::new(move |object| {
        let time = |event: Option<EventIdx>| times.get(event?.row());
        let (create, end) = (objects.create_event(object), objects.destroy_event(object));
        let lifetime = lifetime_ns(time(create), time(end)).unwrap_or(UNKNOWN_LIFETIME_NS);
        range.as_ref().is_none_or(|range| range.contains(&lifetime))
    })
}

/// The view of a mapping is that of its first map event, also if a filter removes the event.
fn by_view<'a>(
    file: &'a FileContext<'_>,
    mut passes: impl FnMut(u64, u64) -> bool + 'a,
) -> Result<Test<'a>, ArchiveError> {
    let FileContext { trace, objects, .. } = file;
    let kind = trace.values(Events::kind)?;
    let (base, size) = (trace.values(Events::view_base)?, trace.values(Events::view_size)?);
    Ok(Box::new(move |object| {
        let kinds = kind.values();
        let is_map = |&event: &usize| kinds.get(event) == Some(&EventKind::Map.code());
        let map = objects.events(object).find(is_map);
        let view = map.and_then(|map| base.get(map).zip(size.get(map)));
        view.is_some_and(|(base, size)| passes(base, size))
    }))
}

/// The end of the view counts as inside, as in ETWAnalyzer.
fn is_in_view(pointer: u64, base: u64, size: u64) -> bool {
    (base..=base.saturating_add(size)).contains(&pointer)
}

/// A filter over numbers written `0xC0`, which remembers its verdicts: a trace has few distinct
/// handle values, and objects use pointers again.
pub(super) struct HexFilter<'a> {
    filter: Option<&'a Filter>,
    seen: HashMap<u64, bool>,
    text: String,
}

impl<'a> HexFilter<'a> {
    pub(super) fn new(filter: &'a Option<Filter>) -> Self {
        Self { filter: wanted(filter), seen: HashMap::new(), text: String::new() }
    }

    pub(super) fn matches(&mut self, number: u64) -> bool {
        let Some(filter) = self.filter else { return true };
        if let Some(&known) = self.seen.get(&number) {
            return known;
        }
        self.text.clear();
        // Writing to a string does not fail.
        let _ = write!(self.text, "0x{number:X}");
        let verdict = filter.matches(&self.text);
        self.seen.insert(number, verdict);
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

    #[test]
    fn map_filters_win_over_handle_filters_which_win_over_the_option() {
        let filter = Filter::new("0xC*").ok();
        let mut args = ObjectCriteria { map: Some(MapMode::Mappings), ..Default::default() };
        assert_eq!(map_mode(&args), Some(MapMode::Mappings));
        args.handle = filter.clone();
        assert_eq!(map_mode(&args), Some(MapMode::Objects));
        args.view_base = filter;
        assert_eq!(map_mode(&args), Some(MapMode::Mappings));
        assert_eq!(map_mode(&ObjectCriteria::default()), None);
    }
}
