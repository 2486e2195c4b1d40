//! The stacks carried by events.

use handlescope_extract::ResourceMapping;
use handlescope_model::TableRows;
use handlescope_model::tables::ProviderEvents;
use handlescope_tests::bytes::{ByteString, PointerSize};
use handlescope_tests::header::{ExtendedItem, KernelEvent, ManifestEvent};
use handlescope_tests::payload::{CLR_PROVIDER, EventInfo};

use super::{DescribedTrace, EVENT_TRACING, MS, win32k, win32k_info};

const KERNEL: u64 = 0xFFFF_8000_0000_1000;

/// Returns the creation of a handle with these items.
fn created(value: u64, items: Vec<ExtendedItem>) -> ManifestEvent {
    ManifestEvent { items, ..win32k(455, &[value], 5, 1, 700) }
}

/// Returns the event that carries the user part of a stack.
fn user_part(match_id: u64, frames: &[u64]) -> ManifestEvent {
    let items = vec![ExtendedItem::part64(match_id, frames)];
    ManifestEvent { provider: EVENT_TRACING, id: 18, opcode: 24, items, ..Default::default() }
}

fn with_stacks() -> DescribedTrace {
    let mut described = DescribedTrace::new();
    described.event(10, 700, created(1, vec![ExtendedItem::stack64(&[KERNEL, 0x7000])]));
    let part = |match_id| vec![ExtendedItem::part64(match_id, &[KERNEL])];
    described.event(11, 700, created(2, part(5)));
    described.event(12, 800, created(3, part(5)));
    described.event(13, 800, user_part(5, &[0x8000]));
    described.event(14, 700, user_part(5, &[0x7100]));
    described.event(15, 700, user_part(5, &[0x7200]));
    described.event(16, 700, created(4, vec![ExtendedItem::key64(0, 0x99)]));
    described.event(17, 700, created(5, part(6)));
    let stamp = described.stamp(20, 4);
    let payload = ByteString::new().u64(0x99).u64(KERNEL + 8).u64(0x7300).into_vec();
    let event = KernelEvent { hook: 0x1824, stamp, payload, ..Default::default() };
    described.trace.raw_event(20 * MS, 0, event.encode());
    described
}

/// Returns an event of the .NET runtime about a garbage collector handle.
fn gc_handle(id: u16, value: u64) -> ManifestEvent {
    let payload = ByteString::new().u64(value).into_vec();
    ManifestEvent { provider: CLR_PROVIDER, id, payload, ..Default::default() }
}

/// Returns the .NET runtime event that is the stack of the event before it.
fn runtime_stack(frames: &[u64]) -> ManifestEvent {
    let payload = ByteString::new().u16(9).u16(0).u32(frames.len() as u32);
    let payload = payload.ptrs(PointerSize::Eight, frames).into_vec();
    ManifestEvent { provider: CLR_PROVIDER, id: 82, payload, ..Default::default() }
}

/// Builds handles 1 to 4 of two processes; the last one has no stack.
fn with_runtime_stacks() -> DescribedTrace {
    let mut described = DescribedTrace::new();
    described.describe(&EventInfo {
        provider: CLR_PROVIDER,
        provider_name: "Microsoft-Windows-DotNETRuntime".into(),
        id: 30,
        version: 0,
        task: "GarbageCollection".into(),
        opcode: "SetGCHandle".into(),
        fields: vec![("HandleID".into(), 21)],
    });
    described.event(10, 700, gc_handle(30, 1));
    described.event(11, 800, gc_handle(30, 2));
    described.event(12, 700, runtime_stack(&[0x7000, 0x7100]));
    described.event(
        13,
        700,
        ManifestEvent { items: vec![ExtendedItem::stack64(&[0x7200])], ..gc_handle(30, 3) },
    );
    described.event(14, 700, runtime_stack(&[0x7300]));
    described.event(15, 800, runtime_stack(&[0x8000]));
    described.event(16, 700, gc_handle(30, 4));
    described.event(17, 700, gc_handle(31, 9));
    described.event(18, 700, runtime_stack(&[0x7400]));
    described
}

const RUNTIME_STACKS: [&[u64]; 4] = [&[0x7000, 0x7100], &[0x8000], &[0x7200], &[]];

#[test]
fn a_stack_of_the_dotnet_runtime_is_of_the_event_before_on_its_thread() {
    let mut described = with_runtime_stacks();
    described.options.resources = ResourceMapping::from_words(
        "Microsoft-Windows-DotNETRuntime/GarbageCollection/SetGCHandle acquire handle=HandleID",
    )
    .unwrap();
    let tables = described.tables();
    let mut resources = tables.resources();
    resources.sort_by_key(|own| own.key);
    let found: Vec<Vec<u64>> = resources.iter().map(|own| tables.addresses(own.stack)).collect();
    assert_eq!(found, RUNTIME_STACKS.map(<[u64]>::to_vec));
}

#[test]
fn kept_events_of_the_dotnet_runtime_have_these_stacks() {
    let mut described = with_runtime_stacks();
    described.options.events =
        handlescope_extract::EventChoice::new("microsoft-windows-dotnetruntime");
    let tables = described.tables();
    let events: Vec<_> = ProviderEvents::read(&tables.0).unwrap().rows().collect();
    let found: Vec<Vec<u64>> = events.iter().map(|own| tables.addresses(own.stack)).collect();
    assert_eq!(found, RUNTIME_STACKS.map(<[u64]>::to_vec));
}

/// The stacks of [`with_stacks`], by handle.
const STACKS: [(u64, &[u64]); 5] = [
    (1, &[KERNEL, 0x7000]),
    (2, &[KERNEL, 0x7100]),
    (3, &[KERNEL, 0x8000]),
    (4, &[KERNEL + 8, 0x7300]),
    (5, &[KERNEL]),
];

#[test]
fn stacks_that_events_carry_are_theirs_with_the_part_that_comes_later() {
    let tables = with_stacks().tables();
    let mut resources = tables.resources();
    resources.sort_by_key(|own| own.key);
    let found: Vec<(u64, Vec<u64>)> =
        resources.iter().map(|own| (own.key, tables.addresses(own.stack))).collect();
    assert_eq!(found, STACKS.map(|(key, frames)| (key, frames.to_vec())));
}

#[test]
fn kept_events_of_providers_have_the_same_stacks() {
    let mut described = with_stacks();
    described.describe(&win32k_info(455, "GdiHandleOperation", "CreateHandle", &["HandleValue"]));
    described.options.events = handlescope_extract::EventChoice::new("microsoft-windows-win32k");
    let tables = described.tables();
    let events: Vec<_> = ProviderEvents::read(&tables.0).unwrap().rows().collect();
    let found: Vec<Vec<u64>> = events.iter().map(|own| tables.addresses(own.stack)).collect();
    assert_eq!(found, STACKS.map(|(_, frames)| frames.to_vec()));
}

#[test]
fn items_that_lie_are_no_stacks_and_no_failure() {
    let mut described = DescribedTrace::new();
    for (number, data) in
        [vec![], vec![1; 7], vec![1; 12], vec![0xFF; 4000]].into_iter().enumerate()
    {
        for kind in [5, 6, 17, 18] {
            let items = vec![ExtendedItem { kind, data: data.clone() }];
            described.event(10 + i64::from(kind), 700, created(number as u64 + 1, items.clone()));
            described.event(40, 700, ManifestEvent { items, ..user_part(0, &[]) });
        }
    }
    let tables = described.tables();
    assert_eq!(tables.resources().len(), 16);
}
