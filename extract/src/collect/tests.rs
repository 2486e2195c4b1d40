//! Selector, names and collector agree on the events of every family.

use std::fmt::Write;

use handlescope_model::Table;

use super::index::{FAMILIES, FamilyIndex};
use super::{Collector, KernelSelector, event_name};
use crate::etl::{Event, EventId, Selector, WarningKind};
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/event-families.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page.contains(&table), "docs/event-families.md lacks this table:\n{table}");
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

/// Tables of no single family: objects come from several families, provider events from any provider, symbols are
/// resolved later, and losses come from the buffers.
const OF_NO_FAMILY: [Table; 6] = [
    Table::Objects,
    Table::ProviderEvents,
    Table::EventFields,
    Table::EventValues,
    Table::Symbols,
    Table::Losses,
];

#[test]
fn every_remaining_table_is_of_a_family() {
    let of_families: Vec<Table> =
        FAMILIES.iter().flat_map(|family| family.tables).copied().collect();
    for table in Table::ALL {
        let is_of_none = OF_NO_FAMILY.contains(&table);
        assert!(of_families.contains(&table) != is_of_none, "{}", table.name());
    }
}
