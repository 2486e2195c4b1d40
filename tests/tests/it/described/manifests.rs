//! Manifests and mappings that describe events.

use handlescope_extract::ResourceMapping;
use handlescope_model::TableRows;
use handlescope_model::tables::{Methods, Warnings};
use handlescope_tests::bytes::{ByteString, Guid, PointerSize};
use handlescope_tests::header::ManifestEvent;
use handlescope_tests::payload::{
    EventInfo, MethodEvent, MethodRecord, manifest_chunks, trace_logging,
};

use super::{DescribedTrace, MANIFEST, MS, POOL, assert_same_lines, hook};

#[test]
fn a_manifest_that_comes_last_describes_what_came_before() {
    for late in [false, true] {
        let mut described = DescribedTrace::new();
        described.event(10, 700, hook(1, 0x10, 100, "Pen"));
        described.event(11, 700, hook(1, u64::MAX, -5, "Pen"));
        described.event(12, 800, hook(2, 0x10, 7, "Pen"));
        described.event(13, 700, hook(2, 0x10, 7, "Pen"));
        described.event(14, 700, hook(3, 0x10, 7, "Pen"));
        let ms = if late { 50 } else { 2 };
        for chunk in manifest_chunks(POOL, MANIFEST, 200, described.stamp(ms, 700)) {
            described.trace.raw_event(ms * MS, 0, chunk);
        }
        let tables = described.tables();
        let expected = [
            "resource Pen app.exe 0x10 100 freed",
            "resource Pen app.exe 0xffffffffffffffff -5 open",
            "resource Pen other.exe 0x10 7 orphan_free",
        ];
        assert_same_lines(&tables.lines(), &expected);
        assert_eq!(tables.allocators()[0].provider.as_deref(), Some("Hooks"));
        let resources = tables.resources();
        let times: Vec<i64> = resources.iter().map(|own| own.time_ns / MS).collect();
        assert_eq!(times, [10, 11]);
    }
}

#[test]
fn too_many_events_before_their_manifest_are_counted_by_provider() {
    let mut described = DescribedTrace::new();
    let allocator = "x".repeat(30_000);
    for number in 0..1200 {
        described.event(10 + number, 700, hook(1, number as u64, 1, &allocator));
    }
    // Events without any description are no loss.
    for _ in 0..10 {
        let own = hook(9, 0, 1, &allocator);
        described.event(1300, 700, ManifestEvent { provider: Guid::new(5), ..own });
    }
    for chunk in manifest_chunks(POOL, MANIFEST, 2000, described.stamp(1400, 700)) {
        described.trace.raw_event(1400 * MS, 0, chunk);
    }
    let tables = described.tables();
    let kept = tables.resources().len() as u64;
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.kind.ends_with("too many: Hooks"), "{warning:?}");
    assert_eq!(warning.count + kept, 1200);
    assert!((1000..1150).contains(&kept), "{kept}");
}

#[test]
fn allocators_without_end_are_counted_together() {
    const NAMES: i64 = 70_000;
    let mut described = DescribedTrace::new();
    for chunk in manifest_chunks(POOL, MANIFEST, 2000, described.stamp(2, 700)) {
        described.trace.raw_event(2 * MS, 0, chunk);
    }
    for number in 0..NAMES {
        described.event(10 + number, 700, hook(1, 0x10, 1, &number.to_string()));
    }
    let tables = described.tables();
    let allocators = tables.allocators();
    assert_eq!(allocators.len(), (1 << 16) + 1);
    assert_eq!(allocators[1 << 16].name, "(other allocators)");
    let left_out = NAMES as u64 - (1 << 16);
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    assert!(warnings.iter().any(|row| row.kind.contains("allocator") && row.count == left_out));
    assert_eq!(tables.resources().len() as i64, NAMES);
}

#[test]
fn a_mapping_chooses_events_and_fields() {
    let mut described = DescribedTrace::new();
    let words = "Contoso.*/x acquire; Contoso.Pool/Take acquire handle=block size=bytes \
                 allocator=tag; */Give release handle=block allocator=tag";
    described.options.resources = ResourceMapping::from_words(words).unwrap();
    let items =
        |name: &str| trace_logging(name, b"block\0\x0abytes\0\x08tag\0\x08", "Contoso.Pool");
    for (ms, name, block) in [(10, "Take", 1), (11, "Take", 2), (12, "Give", 1), (13, "Look", 1)] {
        let payload = ByteString::new().u64(block).u32(64).u32(7).into_vec();
        let event =
            ManifestEvent { provider: POOL, items: items(name), payload, ..Default::default() };
        described.event(ms, 700, event);
    }
    // The built-in rules still apply.
    let fields = b"Handle\0\x0a";
    let items = trace_logging("acquireRESOURCE", fields, "Contoso.Pool");
    let payload = ByteString::new().u64(3).into_vec();
    described.event(
        14,
        700,
        ManifestEvent { provider: POOL, items, payload, ..Default::default() },
    );
    let expected = [
        "resource 7 app.exe 0x1 64 freed",
        "resource 7 app.exe 0x2 64 open",
        "resource  app.exe 0x3 0 open",
    ];
    assert_same_lines(&described.tables().lines(), &expected);
    described.options.resources.clear();
    assert_same_lines(&described.tables().lines(), &expected[2..]);
}

/// The provider of .NET method events, which have their own event family.
const RUNTIME: Guid = Guid::new(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);

#[test]
fn a_mapping_takes_events_of_a_family_too_and_the_family_still_has_them() {
    let words = "Microsoft-Windows-DotNETRuntime/Load acquire handle=Start; \
                 e13c0d23-ccbc-4e12-931b-d9cc2eee27e4/144 release handle=Start";
    let info = |id: u16, task: &str| EventInfo {
        provider: RUNTIME,
        provider_name: "Microsoft-Windows-DotNETRuntime".into(),
        id,
        version: 1,
        task: task.into(),
        fields: vec![("MethodID".into(), 16), ("ModuleID".into(), 16), ("Start".into(), 16)],
        ..EventInfo::default()
    };
    // Once described before the events, once after.
    for describes_at in [1, 50] {
        let mut described = DescribedTrace::new();
        for (id, task) in [(143, "Load"), (144, "Unload")] {
            let event = info(id, task).event(PointerSize::Eight, described.stamp(describes_at, 4));
            described.trace.raw_event(describes_at * MS, 0, event);
        }
        let code = |address| MethodRecord {
            module_id: 9,
            address,
            size: 0x40,
            type_name: "App.Program".into(),
            name: "Main".into(),
            signature: "void ()".into(),
        };
        let trace = &mut described.trace;
        let (first, second) = (code(0x7000_0000), code(0x7100_0000));
        trace.method(10 * MS, (700, 701), MethodEvent::Load, &first);
        trace.method(11 * MS, (700, 701), MethodEvent::Load, &second);
        for (ms, address) in [(20_i64, 0x7000_0010), (21, 0x7100_0010)] {
            let object = 0xFFFF_8000_0000_0000 + ms.unsigned_abs();
            trace.create_handle(ms * MS, (700, 701), object, 4, 16).stack(&[], &[address]);
        }
        trace.method(30 * MS, (700, 701), MethodEvent::Unload, &first);
        let methods = |described: &DescribedTrace| {
            let tables = described.tables();
            let methods = Methods::read(&tables.0).unwrap();
            methods.rows().map(|row| (row.address, row.name)).collect::<Vec<_>>()
        };
        let alone = methods(&described);
        assert_eq!(alone.len(), 2, "{alone:?}");
        assert_same_lines(&described.tables().lines(), &[] as &[&str]);
        described.options.resources = ResourceMapping::from_words(words).unwrap();
        let expected =
            ["resource  app.exe 0x70000000 0 freed", "resource  app.exe 0x71000000 0 open"];
        assert_same_lines(&described.tables().lines(), &expected);
        assert_eq!(methods(&described), alone);
    }
}
