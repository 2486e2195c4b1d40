//! Checks that selector, names and collector agree on the events of every family.

use std::fmt::Write;

use handlescope_model::Table;

use super::index::{FAMILIES, FamilyIndex};
use super::{Collector, GatheredRows, KernelSelector, RowGatherer, event_name};
use crate::etl::{Event, EventId, Gatherer, Guid, Selector, Sink, Spare, WarningKind};
use crate::metadata::encoded_item;
use crate::options::EventChoice;
use crate::raw::{id_in_file, id_in_session};

fn event(id: EventId, payload: &[u8]) -> Event<'_> {
    Event { id, version: 2, pid: Some(7), tid: Some(8), payload, ..Event::default() }
}

fn undecoded(id: EventId, payload: &[u8]) -> u64 {
    let mut collector = Collector::default();
    collector.event(&event(id, payload));
    collector.shared.diagnostics.of(WarningKind::ShortPayload)
}

#[test]
fn every_event_of_a_family_is_selected_named_and_decoded() {
    let mut selector = KernelSelector::default();
    for (id, name) in FAMILIES.iter().flat_map(|family| family.events) {
        assert!(selector.select(&event(*id, &[])), "{id} is not selected");
        assert_eq!(event_name(*id), Some(*name), "{id} is not named, or twice");
        assert_eq!(undecoded(*id, &[0; 4096]), 0, "{id} is not decoded");
    }
}

#[test]
fn every_selected_event_belongs_to_a_single_family() {
    let mut selector = KernelSelector::default();
    let known: Vec<EventId> =
        FAMILIES.iter().flat_map(|family| family.events).map(|(id, _)| *id).collect();
    for hook in 0..=u16::MAX {
        let id = EventId::Hook(hook);
        assert_eq!(selector.select(&event(id, &[])), known.contains(&id), "{id}");
    }
    for (at, id) in known.iter().enumerate() {
        assert!(!known[..at].contains(id), "two families take {id}");
    }
    let index = FamilyIndex::default();
    for declared in FAMILIES {
        for (id, _) in declared.events {
            assert_eq!(index.family(*id), Some(declared.family), "{id}");
        }
    }
}

#[test]
fn an_event_that_is_not_selected_changes_nothing() {
    for id in [EventId::Hook(0x1123), EventId::Hook(0x1822), EventId::Message] {
        assert!(!KernelSelector::default().select(&event(id, &[])));
        assert_eq!(undecoded(id, &[]), 0);
    }
}

/// Creates events of all families and of none, with arbitrary payloads, two at each time.
fn any_events(payloads: &[Vec<u8>]) -> Vec<Event<'_>> {
    let known = FAMILIES.iter().flat_map(|family| family.events).map(|(id, _)| *id);
    let ids: Vec<EventId> = known.chain([EventId::Hook(0x1822)]).collect();
    payloads
        .iter()
        .enumerate()
        .map(|(at, payload)| {
            // Most are handle and object events, as in a trace.
            let hooks = [0x1120, 0x1121, 0x1122, 0x1130, 0x1131, 0x1132, 0x1133, 0x1021, 0x0262];
            let id = match at % 3 {
                0 => ids[at % ids.len()],
                _ => EventId::Hook(hooks[at % hooks.len()]),
            };
            let (time, tid) = (at as i64 / 2, (at % 5 > 0).then_some(at as u32 % 7));
            Event { time, tid, processor: at as u16 % 4, ..event(id, payload) }
        })
        .collect()
}

#[test]
fn gathered_rows_of_events_without_stacks_are_those_of_the_events_in_order() {
    let mut seed = 1_u64;
    let mut byte = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 60) as u8
    };
    let payloads: Vec<Vec<u8>> = (0..2_000)
        .map(|at| (0..if at % 19 == 0 { 5 } else { 64 }).map(|_| byte()).collect())
        .collect();
    let events = any_events(&payloads);
    let (mut whole, mut parts) = (Collector::default(), Collector::default());
    events.iter().for_each(|event| whole.event(event));
    let mut gatherers = [RowGatherer::default(), RowGatherer::default()];
    let (mut rows, mut gathered) = (GatheredRows::default(), 0);
    for (number, part) in events.chunks(70).enumerate() {
        rows.clear();
        let is_gathered: Vec<bool> =
            part.iter().map(|event| gatherers[number % 2].gather(event, &mut rows)).collect();
        let (mut done, mut count) = (0, 0);
        for (event, is_gathered) in part.iter().zip(is_gathered) {
            if is_gathered {
                count += 1;
                continue;
            }
            parts.append(&mut rows, done..count);
            parts.take(event);
            done = count;
        }
        parts.append(&mut rows, done..count);
        gathered += count;
    }
    assert!(gathered > 1_000, "{gathered} of {} events are gathered", events.len());
    for collected in [&whole, &parts] {
        assert!(collected.shared.diagnostics.of(WarningKind::ShortPayload) > 50);
        assert!(collected.heaps.heap.len() > 100 && collected.virtual_memory.rows.len() > 100);
    }
    let [whole, parts] = [whole, parts].map(|collected| {
        let Collector { shared, handles, duplicates, objects, references, .. } = &collected;
        let timeline = &shared.timeline;
        let names: Vec<String> = handles.name.iter().map(|name| handles.names.text(*name)).collect();
        let ids = (timeline.pid.clone(), timeline.tid.clone(), timeline.ids.clone());
        let rows = (timeline.kind.clone(), timeline.row.clone(), timeline.time.clone());
        let of_handles = (handles.object.clone(), handles.handle.clone(), handles.type_id.clone());
        let of_objects = (objects.object.clone(), objects.type_id.clone());
        let of_references = (references.object.clone(), references.count.clone());
        let heaps = &collected.heaps;
        let of_heaps = (heaps.heap.clone(), heaps.address.clone(), heaps.size.clone());
        format!(
            "{:?} {rows:?} {ids:?} {:?} {of_handles:?} {:?} {names:?} {of_objects:?} {of_references:?} {:?} \
             {of_heaps:?} {:?} {:?}",
            shared.diagnostics.of(WarningKind::ShortPayload),
            timeline.processor,
            handles.name,
            duplicates.rows,
            heaps.moves,
            collected.virtual_memory.rows,
        )
    });
    assert!(whole == parts);
}

const KEY_RUNDOWN: EventId = EventId::Hook(0x1824);

/// Encodes the extended item by which an event refers to the frames of a key.
fn carried_key(key: u64) -> Vec<u8> {
    const KEY_64: u16 = 18;
    encoded_item(KEY_64, &[0, key].map(u64::to_le_bytes).concat(), false)
}

/// Encodes the payload that gives a key a single frame.
fn frames_of_key(key: u64) -> Vec<u8> {
    [key, 0x7FF6_0000].map(u64::to_le_bytes).concat()
}

/// Keys are forgotten at the first event from which on a ring is complete, even if that event has no stack.
#[test]
fn keys_are_forgotten_at_the_same_event_whether_rows_are_gathered_or_not() {
    let [before, after] = [5, 6].map(carried_key);
    let close = |time, extended| Event { time, extended, ..event(EventId::Hook(0x1121), &[0; 16]) };
    let (gathered, no_item) = (101, &[][..]);
    for gathers in [false, true] {
        let mut collector = Collector::default().complete_from(Some(100));
        let mut rows = GatheredRows::default();
        // The last one is out of order, so only the one before it is late enough.
        for event in [close(99, &before), close(gathered, no_item), close(98, &after)] {
            let mut gatherer = RowGatherer::default();
            if gathers && gatherer.gather(&event, &mut rows) {
                assert_eq!(event.time, gathered, "an event that carries a stack is taken in order");
                collector.append(&mut rows, 0..1);
            } else {
                collector.take(&event);
            }
        }
        for frames in [5, 6].map(frames_of_key) {
            collector.take(&Event { time: 103, ..event(KEY_RUNDOWN, &frames) });
        }
        let stacks = &collector.stacks.events;
        let frames = [0, 2].map(|row| stacks.fragments().addresses(stacks.parts(row)[0]).count());
        assert_eq!(frames, [0, 1], "gathered: {gathers}");
    }
}

/// In a ring, the frames of a key in an early provider event may belong to the key's next use.
#[test]
fn keys_of_kept_events_are_forgotten_with_those_of_others() {
    let [before, after] = [5, 6].map(carried_key);
    let id = EventId::Manifest { guid: Guid([7; 16]), id: 1 };
    let kept = |time, extended| Event { time, extended, ..event(id, &[]) };
    let close = event(EventId::Hook(0x1121), &[0; 16]);
    for gathers in [false, true] {
        let mut collector = Collector::default().complete_from(Some(100)).keeping(EventChoice::All);
        collector.take(&kept(99, &before));
        let close = Event { time: 100, ..close };
        let mut rows = GatheredRows::default();
        if gathers {
            assert!(RowGatherer::default().gather(&close, &mut rows));
            collector.append(&mut rows, 0..1);
        } else {
            collector.take(&close);
        }
        // It is out of order, so it cannot be what makes the keys forgotten.
        collector.take(&kept(98, &after));
        for frames in [5, 6].map(frames_of_key) {
            collector.take(&Event { time: 103, ..event(KEY_RUNDOWN, &frames) });
        }
        let events = &collector.kept;
        let parts = [0, 1].map(|row| events.get(row).unwrap().stack[0]);
        let fragments = collector.stacks.events.fragments();
        let frames = parts.map(|part| fragments.addresses(part).count());
        assert_eq!(frames, [0, 1], "gathered: {gathers}");
        assert_eq!(fragments.unresolved_keys(), 1);
    }
}

#[test]
fn the_documented_table_of_families_is_that_of_the_list() {
    let mut table = String::from("| Family | Events | Tables |\n|---|---|---|\n");
    for declared in FAMILIES {
        let events: Vec<_> =
            declared.events.iter().map(|(id, name)| format!("{name} `{id}`")).collect();
        let tables: Vec<_> =
            declared.tables.iter().map(|table| format!("`{}`", table.name())).collect();
        let (family, events, tables) = (declared.family, events.join(", "), tables.join(", "));
        let _ = writeln!(table, "| {family:?} | {events} | {tables} |");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/event-families.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page.contains(&table), "docs/reference/event-families.md lacks this table:\n{table}");
}

#[test]
fn every_kernel_event_of_a_family_has_a_class_by_which_a_session_names_it() {
    for (id, name) in FAMILIES.iter().flat_map(|family| family.events) {
        let in_session = id_in_session(*id);
        assert!(
            !matches!(in_session, EventId::Hook(_)),
            "{name} {id} has no class in raw/classes.rs"
        );
        assert_eq!(id_in_file(in_session), *id, "{name}");
    }
}

/// Tables that do not belong to a family: provider events come from any provider, symbols are resolved later, and
/// losses come from the buffers.
const OF_NO_FAMILY: [Table; 5] =
    [Table::ProviderEvents, Table::EventFields, Table::EventValues, Table::Symbols, Table::Losses];

#[test]
fn every_remaining_table_is_of_a_family() {
    let of_families: Vec<Table> =
        FAMILIES.iter().flat_map(|family| family.tables).copied().collect();
    for table in Table::ALL {
        let is_of_none = OF_NO_FAMILY.contains(&table);
        assert!(of_families.contains(&table) != is_of_none, "{}", table.name());
    }
}
