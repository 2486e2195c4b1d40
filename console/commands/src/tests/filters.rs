//! Tests of each filter as users apply it.

use super::{Ask as _, arguments};
use handlescope_model::tables::Event;
use handlescope_model::{AcquisitionIdx, NameIdx, ProcessIdx};

use handlescope_query::fixture::{
    APP, CHILD, Fixture, NewObject, OTHER, SYSTEM, SavedTrace, With, close, create, duplicate, map,
    object_create, object_delete, reference, unmap,
};

/// Creates a trace from objects with these events.
fn trace(objects: Vec<Vec<Event>>) -> SavedTrace {
    let mut fixture = Fixture::new();
    for events in objects {
        fixture.event_object(events);
    }
    fixture.save()
}

fn created_and_destroyed(saved: &SavedTrace, options: &str) -> (u64, u64) {
    saved.ask(options, |answer| {
        let totals = answer.totals();
        (totals.objects_created, totals.objects_destroyed)
    })
}

#[test]
fn without_filters_every_object_passes_by_creation_and_those_without_one_come_first() {
    let saved = trace(vec![
        vec![create(APP, 30, 0xC0)],
        vec![close(APP, 40, 0xC4)],
        vec![create(APP, 10, 0xC8)],
        vec![create(APP, 10, 0xCC)],
    ]);
    assert_eq!(saved.ids(""), [2, 3, 4, 1]);
}

#[test]
fn row_numbers_that_point_nowhere_end_in_an_answer() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4), close(APP, 2, 4)]);
    fixture.event_object(vec![create(APP, 1, 8)]);
    let objects = &mut fixture.tables.objects;
    objects.first_acquisition[0] = AcquisitionIdx(77);
    objects.name[0] = Some(NameIdx(5));
    objects.name[1] = Some(NameIdx(5));
    let saved = fixture.save();
    assert_eq!(saved.kinds("-ObjectName * -Overlapped"), []);
    let kinds = [(1, vec![]), (2, vec!["handle_create"])];
    assert_eq!(saved.kinds("-MinMaxDuration 9999"), kinds);
}

#[test]
fn ids_are_rows_from_one_and_ranges_have_both_ends() {
    let saved = trace(vec![vec![create(APP, 1, 4)]; 5]);
    assert_eq!(saved.ids("-MinMaxId 2 3"), [2, 3]);
    assert_eq!(saved.ids("-Id 2;4"), [2, 4]);
    assert_eq!(saved.ids("-Id !2 -MinMaxId 1 3"), [1, 3]);
    assert_eq!(saved.ids("-MinMaxId 4"), [4, 5]);
}

#[test]
fn names_and_types_are_tested_once_for_each_and_no_name_is_the_empty_name() {
    let mut fixture = Fixture::new();
    for (kind, name) in
        [("Event", r"\Base\a"), ("Key", r"\REGISTRY\B"), ("UnknownType", ""), ("Event", "")]
    {
        let events = vec![create(APP, 1, 4)];
        fixture.object(NewObject { kind, name, events, ..NewObject::default() });
    }
    let saved = fixture.save();
    assert_eq!(saved.ids(r"-ObjectName *\A"), [1]);
    assert_eq!(saved.ids(r"-ObjectName !*\a"), [2, 3, 4]);
    assert_eq!(saved.ids("-ObjectName !"), [1, 2]);
    assert_eq!(saved.ids("-Type key;UnknownType"), [2, 3]);
    assert_eq!(saved.ids("-Object 0xFFFF810000000010"), [2]);
    assert_eq!(saved.ids("-Object *20;*30"), [3, 4]);
}

#[test]
fn a_leak_keeps_what_is_open_and_drops_every_close() {
    let saved = trace(vec![
        vec![create(APP, 1, 4), create(APP, 2, 8).leaked(), close(APP, 3, 4)],
        vec![create(APP, 1, 4), close(APP, 2, 4)],
        vec![close(APP, 1, 4)],
        vec![reference(APP, 1, 1)],
    ]);
    assert_eq!(saved.kinds("-Leak"), [(1, vec!["handle_create"])]);
}

#[test]
fn a_leak_keeps_creation_end_and_reference_changes() {
    let saved = trace(vec![vec![
        create(APP, 1, 4),
        reference(APP, 2, 1),
        duplicate(OTHER, 3, 8, (APP, 4)).leaked(),
        close(APP, 4, 4),
        object_delete(SYSTEM, 5),
    ]]);
    let left = vec!["reference", "handle_duplicate", "object_delete"];
    assert_eq!(saved.kinds("-Leak"), [(1, left)]);
    assert_eq!(created_and_destroyed(&saved, "-Leak"), (1, 1));
    // The creation still belongs to app, although its event is gone.
    assert_eq!(saved.ids("-Leak -pn app"), [1]);
    assert_eq!(saved.ids("-Leak -pn other"), [0_u64; 0]);
}

#[test]
fn a_view_that_is_not_unmapped_is_a_leak() {
    let mut fixture = Fixture::new();
    for events in [
        vec![map(APP, 1, 0x1000, 0x100).leaked()],
        vec![map(APP, 2, 0x2000, 0x100), unmap(APP, 3, 0x2000, 0x100)],
    ] {
        fixture.object(NewObject { kind: "FileMapping", events, ..NewObject::default() });
    }
    let saved = fixture.save();
    assert_eq!(saved.kinds("-Leak"), [(1, vec!["map"])]);
    assert_eq!(saved.ask("-Leak", |answer| answer.totals().leaked_handles), 1);
}

#[test]
fn a_time_range_removes_events_creation_and_end_outside_of_it() {
    let saved = trace(vec![vec![create(APP, 10, 4), close(APP, 20, 4)]]);
    assert_eq!(saved.kinds("-MinMaxTime 0 15us"), [(1, vec!["handle_create"])]);
    assert_eq!(created_and_destroyed(&saved, "-MinMaxTime 0 15us"), (1, 0));
    assert_eq!(created_and_destroyed(&saved, "-MinMaxTime 15us 1"), (0, 1));
    assert_eq!(saved.kinds("-MinMaxTime 10us 20us"), saved.kinds(""));
    assert_eq!(saved.ids("-MinMaxTime 21us"), [0_u64; 0]);
}

#[test]
fn the_first_create_that_is_left_takes_over_and_the_end_is_not_replaced() {
    let saved = trace(vec![vec![
        object_create(APP, 1),
        duplicate(CHILD, 2, 8, (APP, 4)),
        create(OTHER, 3, 4),
        close(OTHER, 4, 4),
        close(CHILD, 5, 8),
    ]]);
    assert_eq!(saved.ids("-pn app"), [1]);
    assert_eq!(saved.ids("-MinMaxTime 2us -pn other"), [1]);
    assert_eq!(saved.ids("-MinMaxTime 2us 2us -pn child"), [1]);
    assert_eq!(created_and_destroyed(&saved, "-MinMaxTime 0 4us"), (1, 0));
}

#[test]
fn objects_of_which_only_rundown_handles_are_left_go() {
    let mut fixture = Fixture::new();
    fixture.object(NewObject { existing: vec![(APP, 4)], ..NewObject::default() });
    let saved = fixture.save();
    assert_eq!(saved.ids(""), [1]);
    assert_eq!(saved.ids("-MinMaxTime 0"), [0_u64; 0]);
    assert_eq!(saved.ids("-StackFilter *"), [0_u64; 0]);
}

#[test]
fn after_a_leak_a_creation_without_event_still_has_its_time() {
    let saved =
        trace(vec![vec![create(APP, 1, 4), create(OTHER, 5, 8).leaked(), close(APP, 6, 4)]]);
    assert_eq!(saved.ids("-Leak -MinMaxTime 0 9us -pn app"), [1]);
    assert_eq!(saved.ids("-Leak -MinMaxTime 2us 9us -pn other"), [1]);
    // The creation alone is enough to keep the object.
    assert_eq!(saved.kinds("-Leak -MinMaxTime 0 2us"), [(1, vec![])]);
}

#[test]
fn the_creator_is_the_process_of_the_creation_or_else_an_owner_of_a_rundown_handle() {
    let mut fixture = Fixture::new();
    let owned =
        |events, owner| NewObject { events, existing: vec![(owner, 4)], ..NewObject::default() };
    fixture.object(owned(vec![create(APP, 1, 4)], OTHER));
    fixture.object(owned(vec![], OTHER));
    fixture.object(owned(vec![close(APP, 1, 8)], SYSTEM));
    fixture.event_object(vec![close(APP, 1, 8)]);
    let saved = fixture.save();
    assert_eq!(saved.ids("-pn app.exe"), [1]);
    assert_eq!(saved.ids("-pn other"), [2]);
    assert_eq!(saved.ids("-pn 4"), [3]);
    // No known process created the last one, so not even an exclusion matches it.
    assert_eq!(saved.ids("-pn !app"), [2, 3]);
}

#[test]
fn related_is_any_process_of_events_owners_sources_callers_and_heirs() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4), close(OTHER, 2, 4)]);
    fixture.event_object(vec![duplicate(APP, 1, 4, (OTHER, 8))]);
    fixture.event_object(vec![duplicate(APP, 1, 4, (APP, 4)).inherited_by(CHILD)]);
    fixture.object(NewObject {
        events: vec![create(APP, 1, 4)],
        existing: vec![(SYSTEM, 8)],
        ..NewObject::default()
    });
    let pushed =
        Event { caller_process: Some(ProcessIdx(SYSTEM)), ..duplicate(CHILD, 1, 4, (OTHER, 8)) };
    fixture.event_object(vec![pushed]);
    let saved = fixture.save();
    assert_eq!(saved.ids("-RelatedProcess other"), [1, 2, 5]);
    assert_eq!(saved.ids("-RelatedProcess child"), [3, 5]);
    assert_eq!(saved.ids("-RelatedProcess System"), [4, 5]);
    assert_eq!(saved.ids("-RelatedProcess 100"), [1, 2, 3, 4]);
}

#[test]
fn a_negative_related_process_asks_for_some_other_process() {
    let saved = trace(vec![
        vec![create(APP, 1, 4), close(APP, 2, 4)],
        vec![create(APP, 1, 4), close(OTHER, 2, 4)],
    ]);
    assert_eq!(saved.ids("-RelatedProcess !app"), [2]);
}

#[test]
fn an_unknown_source_of_a_duplicate_is_invalid() {
    let unknown = Event { source_process: None, ..duplicate(APP, 1, 4, (OTHER, 8)) };
    let saved = trace(vec![vec![unknown]]);
    assert_eq!(saved.ids("-RelatedProcess Invalid(0)"), [1]);
    assert_eq!(saved.ids("-RelatedProcess !app"), [1]);
    assert_eq!(saved.ids("-RelatedProcess other"), [0_u64; 0]);
}

#[test]
fn creation_and_end_stay_related_when_a_leak_removes_their_events() {
    let saved = trace(vec![vec![
        create(OTHER, 1, 4),
        create(APP, 2, 8).leaked(),
        close(OTHER, 3, 4),
        object_delete(SYSTEM, 4),
    ]]);
    assert_eq!(saved.ids("-Leak -RelatedProcess other"), [1]);
    assert_eq!(saved.ids("-Leak -RelatedProcess child"), [0_u64; 0]);
}

#[test]
fn handles_are_matched_in_hex_and_leave_creation_and_other_events_alone() {
    let saved = trace(vec![
        vec![create(APP, 1, 0xC0), reference(APP, 2, 1), create(APP, 3, 0xC4), close(APP, 4, 0xC0)],
        vec![create(APP, 5, 0x1C0)],
        vec![reference(APP, 6, 1)],
    ]);
    assert_eq!(saved.kinds("-Handle 0xc4"), [(1, vec!["reference", "handle_create"])]);
    assert_eq!(saved.ids("-Handle *C0"), [1, 2]);
    assert_eq!(saved.ids("-Handle C4"), [0_u64; 0]);
    assert_eq!(created_and_destroyed(&saved, "-Handle 0xC4 -CreateStack !x"), (1, 0));
}

#[test]
fn handle_and_name_filters_leave_mappings_out_and_map_filters_everything_else() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 0xC0)]);
    let events = vec![map(APP, 2, 0x1_0000, 0x1000), unmap(APP, 9, 0x1_0000, 0x1000)];
    fixture.object(NewObject { kind: "FileMapping", events, ..NewObject::default() });
    let saved = fixture.save();
    assert_eq!(saved.ids("-Map 0"), [1]);
    assert_eq!(saved.ids("-Map 1"), [2]);
    assert_eq!(saved.ids("-ObjectName * -Map 1"), [1]);
    assert_eq!(saved.ids("-Handle *"), [1]);
    assert_eq!(saved.ids("-ViewBase *"), [2]);
    // With both kinds of filter, the map filter wins and the handle filter is not applied.
    assert_eq!(saved.ids("-ViewBase 0x10000 -Handle 0xC0"), [2]);
    assert_eq!(saved.ids("-PtrInMap 0x11000"), [2]);
    assert_eq!(saved.ids("-PtrInMap 0x11001"), [0_u64; 0]);
    assert_eq!(saved.ids("-MinMaxMapSize 4KiB 4KiB"), [2]);
    assert_eq!(saved.ids("-MinMaxMapSize 4097"), [0_u64; 0]);
}

#[test]
fn map_filters_know_the_view_when_the_time_has_removed_its_map_event() {
    let mut fixture = Fixture::new();
    let events = vec![map(APP, 2, 0x1_0000, 0x1000), unmap(APP, 9, 0x1_0000, 0x1000)];
    fixture.object(NewObject { kind: "FileMapping", events, ..NewObject::default() });
    let saved = fixture.save();
    let left = saved.kinds("-PtrInMap 0x10800 -MinMaxTime 5us 10us");
    assert_eq!(left, [(1, vec!["unmap"])]);
}

#[test]
fn inheritance_needs_a_child_and_an_event_that_is_left() {
    let saved = trace(vec![
        vec![create(APP, 1, 4), duplicate(APP, 5, 4, (APP, 4)).inherited_by(CHILD)],
        vec![create(APP, 1, 8), duplicate(APP, 5, 8, (APP, 8))],
    ]);
    assert_eq!(saved.ids("-Inherit"), [1]);
    assert_eq!(saved.ids("-Inherit -MinMaxTime 0 2us"), [0_u64; 0]);
}

#[test]
fn the_duration_is_that_of_the_unfiltered_object_and_unknown_is_9999() {
    let saved = trace(vec![
        vec![create(APP, 0, 4), close(APP, 5_000, 4)],
        vec![create(APP, 0, 4)],
        vec![close(APP, 0, 4)],
    ]);
    assert_eq!(saved.ids("-MinMaxDuration 5ms 5ms"), [1]);
    assert_eq!(saved.ids("-MinMaxDuration 0 0.004999"), [0_u64; 0]);
    assert_eq!(saved.ids("-MinMaxDuration 9999"), [3, 2]);
    assert_eq!(saved.ids("-MinMaxTime 0 1us -MinMaxDuration 5ms 5ms"), [1]);
}

#[test]
fn overlap_looks_at_what_is_left_and_multi_process_at_everything() {
    let mut fixture = Fixture::new();
    fixture.object(NewObject {
        events: vec![create(APP, 1, 4), create(OTHER, 2, 8), close(APP, 3, 4), close(OTHER, 4, 8)],
        is_multiprocess: true,
        ..NewObject::default()
    });
    fixture.event_object(vec![create(APP, 1, 4), close(APP, 2, 4), create(APP, 3, 8)]);
    let saved = fixture.save();
    assert_eq!(saved.ids("-Overlapped"), [1]);
    assert_eq!(saved.ids("-Overlapped -MinMaxTime 2us"), [0_u64; 0]);
    assert_eq!(saved.ids("-MultiProcess -MinMaxTime 2us 2us"), [1]);
}

#[test]
fn open_handles_count_whenever_their_object_passes() {
    let mut fixture = Fixture::new();
    fixture.object(NewObject {
        events: vec![create(APP, 1, 4), close(APP, 2, 4), create(APP, 3, 8).leaked()],
        existing: vec![(APP, 8), (OTHER, 4), (OTHER, 8)],
        ..NewObject::default()
    });
    fixture.object(NewObject {
        kind: "UnknownType",
        existing: vec![(SYSTEM, 4)],
        ..NewObject::default()
    });
    let saved = fixture.save();
    let rows = |options: &str| {
        saved.ask(options, |answer| {
            let by = arguments(options).count_by.expect("a table");
            let handles = answer.handle_counts.as_ref().expect("counts");
            let rows = handles.rows(by, None, Default::default()).rows.into_iter();
            rows.map(|row| format!("{} {}", row.name, row.count)).collect::<Vec<_>>()
        })
    };
    let by_process = rows("-ShowTotal Process");
    assert_eq!(by_process, ["app.exe(100) 1", "System(4) 1", "other.exe(300) 2"]);
    assert_eq!(rows("-ShowTotal Total"), ["UnknownType 1", "Event 3"]);
    assert_eq!(rows("-ShowTotal Total -Leak"), ["Event 1"]);
    assert_eq!(rows("-ShowTotal Process -Leak"), ["app.exe(100) 1"]);
}
