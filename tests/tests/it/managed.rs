//! Managed code in a real trace: every frame of every stack is in an image, in a method, or unknown.

use handlescope_extract::{ExtractOptions, NoObserver, StackChoice};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::bytes::Guid;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::{DebugId, ManagedModule, MethodEvent, MethodRecord};
use handlescope_tests::scenario::TraceBuilder;

const MS: i64 = 1_000_000;
const NET: (u32, u32) = (700, 701);
const COMPILED: u64 = 0x2000_0000;
const NATIVE_IMAGE: u64 = 0x7FF8_0000_0000;

fn method(address: u64, name: &str) -> MethodRecord {
    MethodRecord {
        module_id: 9,
        address,
        size: 0x40,
        type_name: "Leaky.Cache".into(),
        name: name.into(),
        signature: "void  ()".into(),
    }
}

/// Returns the methods of the frames in each stack; `-` for a frame without one.
fn methods_of_stacks(trace: &Trace) -> Vec<String> {
    let frame = |table| trace.frame(table).unwrap();
    let (stacks, frames, methods) =
        (frame(Table::Stacks), frame(Table::Frames), frame(Table::Methods));
    let lists = stacks.column("frames").unwrap().list().unwrap().clone();
    let method = frames.column("method").unwrap().u32().unwrap().clone();
    let text = |column: &str, row: usize| {
        methods.column(column).unwrap().str().unwrap().get(row).unwrap_or("?").to_owned()
    };
    let name = |frame: u32| match method.get(frame as usize) {
        None => "-".to_owned(),
        Some(row) => ["module", "type_name", "name"].map(|c| text(c, row as usize)).join(" "),
    };
    (0..stacks.height())
        .map(|row| {
            let list = lists.get_as_series(row).unwrap();
            let list = list.u32().unwrap();
            let names: Vec<_> = (0..list.len()).filter_map(|at| list.get(at)).map(name).collect();
            names.join(", ")
        })
        .collect()
}

#[test]
fn code_compiled_before_and_at_run_time_has_names_by_process_address_and_time() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "net.exe");
    trace.process(800, "other.exe");
    trace.module(700, r"C:\Windows\assembly\Leaky.ni.dll", NATIVE_IMAGE, 0x10000);
    let user = [COMPILED + 5, NATIVE_IMAGE + 0x1010];
    trace.method(MS, NET, MethodEvent::Load, &method(COMPILED, "Get"));
    trace.create_handle(2 * MS, NET, 0xFFFF_8000_0000_1000, 4, 16).stack(&[], &user);
    trace.method(6 * MS, NET, MethodEvent::Unload, &method(COMPILED, "Get"));
    trace.method(7 * MS, NET, MethodEvent::Load, &method(COMPILED, "Put"));
    trace.create_handle(8 * MS, NET, 0xFFFF_8000_0000_2000, 8, 16).stack(&[], &user);
    trace.create_handle(9 * MS, (800, 801), 0xFFFF_8000_0000_3000, 4, 16).stack(&[], &user);
    let precompiled = method(NATIVE_IMAGE + 0x1000, "Find");
    trace.method(20 * MS, NET, MethodEvent::RundownEnd, &precompiled);
    trace.method(20 * MS, NET, MethodEvent::RundownEnd, &method(COMPILED, "Put"));
    let guid = Guid::new(0x0155_fe84_c000_1eb1_57c6_858e_85d4_6b4c);
    let module = ManagedModule {
        module_id: 9,
        path: r"C:\app\Leaky.dll".into(),
        native_path: r"C:\Windows\assembly\Leaky.ni.dll".into(),
        native_pdb: DebugId { name: r"D:\build\Leaky.ni.pdb".into(), guid, age: 3 },
    };
    trace.managed_module(20 * MS, NET, &module);

    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    trace.write(&input).unwrap();
    extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    let archive = Trace::open(&output).unwrap();
    let modules = archive.frame(Table::Modules).unwrap();
    let cell = |name: &str| modules.column(name).unwrap().get(0).unwrap().to_string();
    let pdb = ["pdb_name", "pdb_guid", "pdb_age"].map(cell).join(" ");
    assert_eq!(pdb, r#""Leaky.ni.pdb" "0155fe84-c000-1eb1-57c6-858e85d46b4c" 3"#);
    assert_eq!(
        methods_of_stacks(&archive),
        [
            "Leaky.dll Leaky.Cache Get, Leaky.dll Leaky.Cache Find",
            "Leaky.dll Leaky.Cache Put, Leaky.dll Leaky.Cache Find",
            "-, -",
        ]
    );
}

#[test]
fn the_rundown_of_clr_2_names_methods() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "net.exe");
    let user = [COMPILED + 5];
    trace.create_handle(2 * MS, NET, 0xFFFF_8000_0000_1000, 4, 16).stack(&[], &user);
    trace.method(20 * MS, NET, MethodEvent::RundownEndV2, &method(COMPILED, "Get"));
    let module =
        ManagedModule { module_id: 9, path: r"C:\app\Leaky.dll".into(), ..Default::default() };
    trace.managed_module_v2(20 * MS, NET, &module);
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    trace.write(&input).unwrap();
    extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    assert_eq!(methods_of_stacks(&Trace::open(&output).unwrap()), ["Leaky.dll Leaky.Cache Get"]);
}

#[needs_data]
#[test]
fn most_frames_outside_of_all_images_are_managed_methods() {
    let trace = SharedTrace::open("real/net.4.5.2.x64");
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("net.json7z");
    let options = ExtractOptions { stacks: StackChoice::All, ..ExtractOptions::default() };
    extract(trace.etl(), &output, options, &NoObserver, &Cancel::default()).unwrap();
    let archive = Trace::open(&output).unwrap();
    let column = |table, name| archive.column(table, name).unwrap();
    let stack_of = column(Table::StackEvents, "stack");
    let frames = column(Table::Stacks, "frames");
    let module = column(Table::Frames, "module");
    let method = column(Table::Frames, "method");
    let (module, method) = (module.u32().unwrap(), method.u32().unwrap());
    let frames = frames.list().unwrap();
    let stack_of = stack_of.u32().unwrap();
    let (mut in_modules, mut managed, mut unknown) = (0, 0, 0);
    for stack in (0..stack_of.len()).filter_map(|row| stack_of.get(row)) {
        let list = frames.get_as_series(stack as usize).unwrap();
        let list = list.u32().unwrap().clone();
        for frame in (0..list.len()).filter_map(|row| list.get(row)) {
            match (module.get(frame as usize), method.get(frame as usize)) {
                (Some(_), _) => in_modules += 1,
                (None, Some(_)) => managed += 1,
                (None, None) => unknown += 1,
            }
        }
    }
    // These figures are from a reference reader.
    assert_eq!((in_modules, managed, unknown), (178_116, 30_087, 330));
}
