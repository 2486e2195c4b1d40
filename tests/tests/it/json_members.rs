//! `docs/reference/json.md` and `-json` agree: every written member is documented, and every documented member is
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use handlescope_tests::allocations::gdi_handle;
use handlescope_tests::binary::{Shell, examples, run_over, sample_symbols};
use handlescope_tests::file::FileOptions;
use handlescope_tests::payload::{HeapCall, MethodEvent, MethodRecord};
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use serde_json::{Deserializer, Value};

use crate::fleet::console::small_fleet;

/// Member paths such as `objects.events.kind`, by command: a kind of `.dump`, or `.sql`.
type MemberPaths = BTreeMap<String, BTreeSet<String>>;

/// Returns the members that the page documents.
fn documented() -> MemberPaths {
    let page = fs::read_to_string(examples().join("../docs/reference/json.md")).unwrap();
    let mut members = MemberPaths::new();
    let (mut commands, mut prefixes) = (Vec::new(), Vec::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            commands = code(heading);
            prefixes = vec![""];
        } else if let Some(heading) = line.strip_prefix("### ") {
            prefixes = code(heading);
        } else if let Some(row) = line.strip_prefix("| `") {
            let first_cell = format!("`{}", row.split(" |").next().unwrap_or_default());
            for command in &commands {
                let command = command.trim_start_matches(".dump ").to_owned();
                let paths = members.entry(command).or_default();
                for prefix in &prefixes {
                    paths.extend(code(&first_cell).iter().map(|name| join(prefix, name)));
                }
            }
        }
    }
    // Frames have the same members everywhere.
    let of_frames = |path: &String| path.strip_prefix("stacks.").map(|m| join("stacks.frames", m));
    let frames: Vec<String> = members["ObjectRef"].iter().filter_map(of_frames).collect();
    let of_objects = |of: &[&str]| -> Vec<String> {
        let is_of = |path: &&String| of.iter().any(|own| path.starts_with(own));
        members["ObjectRef"].iter().filter(is_of).cloned().collect()
    };
    let answers = of_objects(&["stacks", "files", "totals", "caveats", "no_match"]);
    let shared = of_objects(&["stacks.", "caveats.", "no_match."]);
    let of_lists = of_objects(&["no_match."]);
    let mut files = of_objects(&["stacks", "files", "caveats", "no_match"]);
    files.retain(|path| !path.starts_with("files.exit_stacks"));
    members.get_mut("Stack").expect("a section on stacks").extend(frames);
    for section in ["Resource", "Resource -GroupBy", "Diff -Kind"] {
        members.get_mut(section).expect("a section on allocations").extend(shared.clone());
    }
    members.get_mut("ObjectRef -GroupBy").expect("a section on groups").extend(answers);
    members.get_mut("Why").expect("a section on suspects").extend(files);
    for section in ["Process", "Module", "Version", "Stack", "Events"] {
        members.get_mut(section).expect("a section on a list").extend(of_lists.clone());
    }
    members
}

/// Returns the texts between backticks.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Adds the members of the documents that a script printed, one per command.
fn add(members: &mut MemberPaths, commands: &[String], printed: &str) {
    let mut documents = Deserializer::from_str(printed).into_iter::<Value>();
    for command in commands {
        let document = documents.next().expect(command).expect(command);
        let name = match command.strip_prefix(".dump ") {
            Some(kind) if kind.starts_with("Resource") && kind.contains("-GroupBy") => {
                "Resource -GroupBy"
            }
            Some(kind) if kind.starts_with("Diff -Kind") => "Diff -Kind",
            Some(kind) if kind.contains("-GroupBy") => "ObjectRef -GroupBy",
            Some(kind) => kind.split(' ').next().unwrap_or_default(),
            None => ".sql",
        };
        add_paths(members.entry(name.to_owned()).or_default(), "", &document);
    }
    assert!(documents.next().is_none(), "a document for each command");
}

fn add_paths(paths: &mut BTreeSet<String>, prefix: &str, value: &Value) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| add_paths(paths, prefix, value)),
        Value::Object(members) => {
            for (name, value) in members {
                // Stacks have numbers as names.
                let is_number = name.bytes().all(|digit| digit.is_ascii_digit());
                let path = if is_number { prefix.to_owned() } else { join(prefix, name) };
                add_paths(paths, &path, value);
                if !is_number {
                    paths.insert(path);
                }
            }
        }
        _ => {}
    }
}

/// Builds a trace with what the sample lacks: references, views, .NET code, a service.
fn trace() -> TraceBuilder {
    const MS: i64 = 1_000_000;
    const OBJECT: u64 = 0xFFFF_8100_0000_1000;
    const PROGRAM: u64 = 0x7ff6_0000_0000;
    const COMPILED: u64 = 0x2000_0000;
    let caller = (700, 701);
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "svchost.exe").command_line("svchost.exe -k net -s TermService");
    trace.object_type(16, "Event").object_type(7, "Process");
    trace.zombie(710, "ended.exe", OBJECT + 0x9000, -MS);
    trace.create_handle(MS, caller, OBJECT + 0x9000, 0x44, 7);
    let method = MethodRecord {
        module_id: 9,
        address: COMPILED,
        size: 0x40,
        type_name: "Leaky.Cache".into(),
        name: "Get".into(),
        signature: "void  ()".into(),
    };
    trace.method(MS, caller, MethodEvent::Load, &method);
    trace.create_handle(2 * MS, caller, OBJECT, 4, 16).stack(&[], &[COMPILED + 5]);
    // Two callers of the same function.
    trace.module(700, r"C:\app.exe", PROGRAM, 0x1_0000);
    for (at, from) in [(1, PROGRAM + 0x10), (2, PROGRAM + 0x20)] {
        let object = OBJECT + 0x100 * at;
        let event =
            trace.create_handle(2 * MS + at as i64, caller, object, 0x100 + 4 * at as u32, 16);
        event.stack(&[], &[PROGRAM, from]);
    }
    trace.reference(3 * MS, caller, OBJECT, b"Dflt", 1);
    trace.close_handle(4 * MS, caller, OBJECT + 0x1000, 8, 16, "before the trace");
    let view =
        MappedView { base: 0x1_0000, size: 0x1000, file_key: 7, misc: 0, offset: 0, pid: 700 };
    trace.map(5 * MS, caller, view);
    let block = HeapCall::Alloc { address: 0x5000, size: 8 };
    trace.heap(6 * MS, caller, 0x1_0000, block).stack(&[], &[COMPILED + 5]);
    trace.process(800, "ended.exe").started(MS).ended(7 * MS);
    trace.heap(6 * MS, (800, 801), 0x2_0000, block).stack(&[], &[COMPILED + 5]);
    gdi_handle(&mut trace, 6 * MS, 700, 0x20010);
    trace.handle_rundown_end(700, OBJECT, 4, 16, "");
    trace
}

/// Returns the members written for the sample and for the trace above.
fn written() -> MemberPaths {
    let shell = Shell::new();
    let mut commands: Vec<String> =
        shell.kinds().iter().map(|kind| format!(".dump {} -json", kind.name)).collect();
    commands.push(".dump ObjectRef -ShowStack -ShowRef -json".to_owned());
    commands.push(".dump ObjectRef -ShowTarget -json".to_owned());
    commands.push(".dump ObjectRef -ShowTotal Process -json".to_owned());
    commands.push(".dump ObjectRef -TopN 1 -json".to_owned());
    commands.push(".dump ObjectRef -LeakAtExit -ShowStack -json".to_owned());
    commands.push(".dump Stats -Properties * -json".to_owned());
    let columns =
        "process,type,name,namepattern,module,function,lifetime,createstack,closestack,thread";
    commands.push(format!(".dump ObjectRef -GroupBy {columns} -ShowTime 3 -json"));
    commands.push(".dump ObjectRef -LeakAtExit -GroupBy type,createstack -json".to_owned());
    commands.push(".dump ObjectRef -Type Evnt -GroupBy type -json".to_owned());
    commands.push(".dump ObjectRef -GroupBy type -Rows 1 -json".to_owned());
    commands.push(".dump ObjectRef -Type Evnt -json".to_owned());
    commands.push(".dump Why -Type Evnt -json".to_owned());
    commands.push(".dump Why -TopN 1 -json".to_owned());
    commands.push(".dump Stack -TopN 1 -json".to_owned());
    commands.push(".dump Resource -ShowStack -ShowTime 2 -json".to_owned());
    for kind in ["Process -pn", "Module -pn", "Version -pn", "Stack -pn", "Events -Event"] {
        commands.push(format!(".dump {kind} nope -json"));
    }
    commands.push(".dump Resource -pn nope -json".to_owned());
    commands.push(".dump Resource -pn nope -GroupBy kind -json".to_owned());
    commands.push(".dump Resource -GroupBy kind -TopN 1 -json".to_owned());
    commands.push(".dump Diff -pn nope -From 0.001s -json".to_owned());
    commands.push(".dump Diff -Kind heap -pn nope -From 0.001s -json".to_owned());
    let columns = "createstack,freestack,kind,allocator,process,allocated_by,thread,end,size";
    let options = "-ShowTime 2 -ShowStack -json";
    commands.push(format!(".dump Resource -GroupBy {columns} {options}"));
    let mut members = MemberPaths::new();
    add(&mut members, &commands, &run_over(&trace(), &commands.join("\n")).ok().stdout);
    // The columns of a query are its own.
    commands.push(".sql SELECT 1 AS rows LIMIT 0 -json".to_owned());
    let symbols = sample_symbols().display().to_string();
    let script = commands.join("\n");
    let run = shell.script(&["--symbol-path", &symbols, "leaky.etl"], &script).ok();
    add(&mut members, &commands, &run.stdout);
    trace().write(shell.path("other.etl")).unwrap();
    let command = ".dump Diff -json";
    let run = shell.run(&["leaky.etl", "other.etl", "-c", command]);
    add(&mut members, &[command.to_owned()], &run.stdout);
    let command = ".dump Stats -json";
    let mut lossy =
        TraceBuilder::with_options(FileOptions { events_lost: 3, ..Default::default() });
    lossy.process(4, "System");
    let printed = run_over(&lossy, command).ok().stdout;
    add(&mut members, &[command.to_owned()], &printed);
    let command = ".dump Diff -Kind heap -json";
    fs::copy(shell.path("other.etl"), shell.path("same.etl")).unwrap();
    let run = shell.run(&["other.etl", "same.etl", "-c", command]).ok();
    add(&mut members, &[command.to_owned()], &run.stdout);
    let command = ".dump Diff -Kind heap -From 0.001s -json";
    let run = shell.run(&["other.etl", "-c", command]).ok();
    add(&mut members, &[command.to_owned()], &run.stdout);
    for status in [404, 500] {
        let server = SymbolServer::start(move |_| ServerAnswer::Status(status));
        let command = ".dump Symbols -json";
        let run = shell.run(&["leaky.etl", "-symServer", &server.url, "-c", command]).ok();
        add(&mut members, &[command.to_owned()], &run.stdout);
    }
    add_of_dataset(&mut members);
    members
}

/// Adds the members of documents about a dataset.
fn add_of_dataset(members: &mut MemberPaths) {
    let shell = small_fleet();
    let columns = "machine,build,day,trace,process,kind,type,allocator,createstack,function";
    let groups = format!(".dump ObjectRef -GroupBy {columns} -TopN 1 -json");
    for (section, command) in [
        (".why over a dataset", ".why -TopN 1 -json"),
        ("ObjectRef over a dataset", groups.as_str()),
        (".diff -build over a dataset", ".diff -build 1.9 1.10 -TopN 1 -json"),
    ] {
        let run = shell.run(&["fleet", "-c", command]);
        let document = serde_json::from_str(&run.stdout).expect(command);
        add_paths(members.entry(section.to_owned()).or_default(), "", &document);
    }
}

#[test]
fn every_member_is_documented_and_every_documented_member_is_written() {
    let (mut documented, written) = (documented(), written());
    // The traces, stacks and caveats of a diff are documented with `.dump ObjectRef`.
    let is_shared = |path: &&String| {
        ["files.", "stacks.", "caveats.", "no_match."].iter().any(|prefix| path.starts_with(prefix))
    };
    let shared: Vec<String> =
        documented["ObjectRef"].intersection(&written["Diff"]).filter(is_shared).cloned().collect();
    documented.get_mut("Diff").expect("a section on differences").extend(shared);
    let names = |members: &MemberPaths| -> BTreeSet<String> {
        let of_command = |(command, paths): (&String, &BTreeSet<String>)| -> Vec<String> {
            paths.iter().map(|path| format!("{command}: {path}")).collect()
        };
        members.iter().flat_map(of_command).collect()
    };
    let (documented, written) = (names(&documented), names(&written));
    let undocumented: Vec<_> = written.difference(&documented).collect();
    let unwritten: Vec<_> = documented.difference(&written).collect();
    assert!(
        undocumented.is_empty() && unwritten.is_empty(),
        "not in docs/reference/json.md: {undocumented:#?}\nnever written: {unwritten:#?}"
    );
}
