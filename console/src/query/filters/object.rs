//! Filters over what an object is, whatever happens to its events.

use std::collections::HashMap;
use std::fmt::Write;

use handlescope_model::rules::{UNKNOWN_LIFETIME_NS, lifetime_ns};
use handlescope_model::tables::{Events, Names, Objects};
use handlescope_model::{ArchiveError, EventIdx, EventKind, Numbers, ObjectIdx, Trace, TypeId};

use crate::cancel::Poll;
use crate::filter::Filter;
use crate::query::context::FileContext;
use crate::query::error::QueryError;
use crate::query::objects::ObjectTable;
use crate::query::tables::TypeNames;
use crate::query::{MapMode, ObjectCriteria};
use crate::values::{CountRange, TimeRange};

/// A test of one object, by its row.
type Test<'a> = Box<dyn FnMut(ObjectIdx) -> bool + 'a>;

/// The filters that see the unfiltered object. They commute with those that remove events, so all
/// of them run first, the cheap ones before those that need text.
pub(super) fn tests<'a>(
    file: &'a FileContext<'_>,
    args: &'a ObjectCriteria,
) -> Result<Vec<Test<'a>>, QueryError> {
    let FileContext { trace, objects, types, .. } = file;
    let mut tests: Vec<Test<'a>> = Vec::new();
    if let Some(ids) = args.ids {
        tests.push(Box::new(move |object| ids.contains(u64::from(object.0) + 1)));
    }
    if let Some(mode) = map_mode(args) {
        let wanted = mode == MapMode::Mappings;
        tests.push(Box::new(move |object| objects.is_mapping(object) == wanted));
    }
    if args.leak_at_exit && !args.leak {
        // Most objects have no such event, so that nothing else need be asked of them.
        let at_exit = trace.values(Events::closed_at_exit)?;
        tests.push(Box::new(move |object| objects.events(object).any(|event| at_exit.get(event))));
    }
    if args.multi_process {
        let multi = trace.values(Objects::is_multiprocess)?;
        tests.push(Box::new(move |object| multi.get(object.row())));
    }
    if let Some(filter) = wanted(args.object_type.as_ref()) {
        tests.push(by_type(filter, objects, types));
    }
    if let Some(filter) = wanted(args.object_name.as_ref()) {
        tests.push(by_name(filter, file)?);
    }
    if let Some(range) = args.duration {
        tests.push(by_lifetime(range, objects, trace.values(Events::time_ns)?));
    }
    if let Some(filter) = wanted(args.object.as_ref()) {
        let pointers = trace.values(Objects::pointer)?;
        let mut hex = HexFilter::new(filter);
        tests.push(Box::new(move |object| {
            pointers.get(object.row()).is_some_and(|p| hex.matches(p))
        }));
    }
    if args.ptr_in_map.is_some() || args.view_base.is_some() || args.map_size.is_some() {
        tests.push(by_view(args, trace, objects)?);
    }
    Ok(tests)
}

/// The map mode in force: filters that make sense for one kind only imply it, and those over
/// mappings win.
pub(super) fn map_mode(args: &ObjectCriteria) -> Option<MapMode> {
    if args.ptr_in_map.is_some() || args.view_base.is_some() || args.map_size.is_some() {
        Some(MapMode::Mappings)
    } else if args.handle.is_some() || args.object_name.is_some() {
        Some(MapMode::Objects)
    } else {
        args.map
    }
}

/// A filter that lets everything pass needs no work.
pub(super) fn wanted(filter: Option<&Filter>) -> Option<&Filter> {
    filter.filter(|filter| !filter.passes_everything())
}

fn by_type<'a>(filter: &'a Filter, objects: &'a ObjectTable, types: &'a TypeNames) -> Test<'a> {
    let mut verdicts: HashMap<TypeId, bool> = HashMap::new();
    Box::new(move |object| {
        let id = objects.type_id(object);
        *verdicts.entry(id).or_insert_with(|| filter.matches(types.get(id)))
    })
}

fn by_name<'a>(filter: &Filter, file: &FileContext<'_>) -> Result<Test<'a>, QueryError> {
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

fn by_lifetime(range: TimeRange, objects: &ObjectTable, times: Numbers<i64>) -> Test<'_> {
    let range = range.nanoseconds();
    Box::new(move |object| {
        let time = |event: Option<EventIdx>| times.get(event?.row());
        let (create, end) = (objects.create_event(object), objects.destroy_event(object));
        let lifetime = lifetime_ns(time(create), time(end));
        range.contains(&lifetime.unwrap_or(UNKNOWN_LIFETIME_NS))
    })
}

/// The view of a mapping is that of its first map event, also if a filter removes the event.
fn by_view<'a>(
    args: &'a ObjectCriteria,
    trace: &Trace,
    objects: &'a ObjectTable,
) -> Result<Test<'a>, ArchiveError> {
    let kind = trace.values(Events::kind)?;
    let (base, size) = (trace.values(Events::view_base)?, trace.values(Events::view_size)?);
    let mut view_base = wanted(args.view_base.as_ref()).map(HexFilter::new);
    Ok(Box::new(move |object| {
        let kinds = kind.values();
        let is_map = |&event: &usize| kinds.get(event) == Some(&EventKind::Map.code());
        let Some(map) = objects.events(object).find(is_map) else { return false };
        let (Some(base), Some(size)) = (base.get(map), size.get(map)) else { return false };
        args.ptr_in_map.is_none_or(|pointer| is_in_view(pointer, base, size))
            && view_base.as_mut().is_none_or(|filter| filter.matches(base))
            && args.map_size.is_none_or(|range: CountRange| range.contains(size))
    }))
}

/// The end of the view counts as inside, as in ETWAnalyzer.
fn is_in_view(pointer: u64, base: u64, size: u64) -> bool {
    (base..=base.saturating_add(size)).contains(&pointer)
}

/// A filter over numbers written `0xC0`, which remembers its verdicts: a trace has few distinct
/// handle values, and objects use pointers again.
pub(super) struct HexFilter<'a> {
    filter: &'a Filter,
    seen: HashMap<u64, bool>,
    text: String,
}

impl<'a> HexFilter<'a> {
    pub(super) fn new(filter: &'a Filter) -> Self {
        Self { filter, seen: HashMap::new(), text: String::new() }
    }

    pub(super) fn matches(&mut self, number: u64) -> bool {
        if let Some(&known) = self.seen.get(&number) {
            return known;
        }
        self.text.clear();
        // Writing to a string does not fail.
        let _ = write!(self.text, "0x{number:X}");
        let verdict = self.filter.matches(&self.text);
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
