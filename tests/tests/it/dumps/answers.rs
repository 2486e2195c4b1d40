//! Answers about a dump.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::binary::{Shell, sample_symbols};
use handlescope_tests::bytes::Guid;
use handlescope_tests::dump::{DumpModule, SampleDump, TraceOperation};
use serde_json::{Value, json};

use super::{PROGRAM, QUESTION, answer, narrow, program, traced, with};

/// Returns type, name, event kinds and rundown handles of each object.
fn objects(answer: &Value) -> Vec<String> {
    let list = |values: &Value, key: &str| {
        values
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value[key].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("+")
    };
    let objects = answer["objects"].as_array().unwrap().iter();
    let text = |object: &Value| {
        let name = object["name"].as_str().unwrap_or("-");
        let (events, open) =
            (list(&object["events"], "kind"), list(&object["existing_handles"], "handle"));
        format!("{} {name} {events} {open}", object["type"].as_str().unwrap())
    };
    objects.map(text).collect()
}

#[test]
fn handles_have_types_names_and_operations_in_dumps_of_both_sizes() {
    let expected = [
        r"Event \BaseNamedObjects\Go  0x4",
        r"File \Device\HarddiskVolume3\log.txt  0x8",
        r"UnknownType - handle_create+handle_close ",
        r"Event - handle_create 0xC",
    ];
    for dump in [traced(), narrow(traced())] {
        for has_information in [false, true] {
            let dump = SampleDump { has_information, ..dump.clone() };
            let (answer, messages) = answer(&dump, QUESTION);
            assert_eq!(objects(&answer), expected, "{dump:?}");
            assert!(!messages.contains("does not show the order"), "{messages}");
            assert!(
                messages.contains("it shows what opened 1 of its 3 open handles"),
                "{messages}"
            );
            assert!(messages.contains("1 reference to an invalid handle (BAD REF)"), "{messages}");
            let pids = &answer["objects"][2]["events"][0]["pid"];
            assert_eq!(pids, &json!(4711));
        }
    }
}

#[test]
fn counts_by_type_and_process_answer_without_operations() {
    let mut dump = program().handle(0x4, "Event", "").handle(0x8, "Event", "");
    dump = dump.handle(0xC, "Key", r"\REGISTRY\MACHINE");
    let shell = with(&dump);
    let run = shell.run(&["a.dmp", "-c", ".dump ObjectRef -ShowTotal Total"]).ok();
    assert!(run.stdout.contains("(rundown)"), "{run:?}");
    for line in ["2 Event", "1 Key"] {
        let words: Vec<&str> = line.split(' ').collect();
        let has = |text: &str| words.iter().all(|word| text.split_whitespace().any(|w| w == *word));
        assert!(run.stdout.lines().any(has), "{line}: {run:?}");
    }
    assert!(run.stderr.contains("it does not say what opened its 3 handles"), "{run:?}");
    assert!(run.stderr.contains("!htrace -enable"), "{run:?}");
    let run = shell.run(&["a.dmp", "-c", ".dump ObjectRef -ShowTotal Process"]).ok();
    assert!(run.stdout.contains("server.exe(4711)"), "{run:?}");
    let sql = ".sql SELECT type, process, pid, COUNT(*) AS n FROM open_handles GROUP BY type, process, pid \
               ORDER BY n DESC -csv";
    let run = shell.run(&["a.dmp", "-c", sql]).ok();
    assert_eq!(run.stdout, "type,process,pid,n\nEvent,server.exe,4711,2\nKey,server.exe,4711,1\n");
    let run = shell.run(&["why", "a.dmp"]);
    assert!(run.stderr.contains(".diff of two dumps"), "{run:?}");
    let open = "Unknown whether anything leaks\n3 handles are open, and no event says what opened them: 2 Event, 1 Key; \
                also in .dump ObjectRef -ShowTotal Total\n";
    assert!(run.stdout.ends_with(open), "{run:?}");
}

#[test]
fn process_system_and_time_are_those_of_the_dump() {
    let dump = SampleDump { command_line: Some("server.exe --port 80".to_owned()), ..traced() };
    for (dump, size) in [(dump.clone(), 8), (narrow(dump), 4)] {
        let shell = with(&dump);
        let sql = ".sql SELECT name, pid, image_path, command_line FROM processes -csv";
        let run = shell.run(&["a.dmp", "-c", sql]).ok();
        let row = r"server.exe,4711,C:\demo\server.exe,server.exe --port 80";
        assert!(run.stdout.lines().any(|line| line == row), "{run:?}");
        let sql =
            ".sql SELECT os_version, os_build, pointer_size, clock, source_format FROM trace -csv";
        let run = shell.run(&["a.dmp", "-c", sql]).ok();
        let row = format!("10.0,19045,{size},none,minidump");
        assert!(run.stdout.contains(&row), "{run:?}");
        let run = shell.run(&["a.dmp", "-c", ".dump Stats -json"]).ok();
        assert!(run.stdout.contains("2026-07-20T12:00:00"), "{run:?}");
    }
}

#[test]
fn a_dump_with_operations_alone_has_their_handles() {
    let dump = SampleDump { handles: None, ..traced() };
    let (answer, messages) = answer(&dump, QUESTION);
    assert_eq!(
        objects(&answer),
        ["UnknownType - handle_create+handle_close ", "UnknownType - handle_create ",]
    );
    assert!(messages.contains("it does not list the open handles"), "{messages}");
}

#[test]
fn operations_are_put_into_the_order_that_does_not_contradict_itself() {
    let (newest_first, _) = answer(&traced(), QUESTION);
    let mut dump = traced();
    dump.operations.as_mut().unwrap().reverse();
    let (oldest_first, _) = answer(&dump, QUESTION);
    assert_eq!(objects(&newest_first), objects(&oldest_first));
    assert_eq!(newest_first["stacks"], oldest_first["stacks"]);
    let unclear = program().operation(TraceOperation::Open, 0x4, &[PROGRAM]).operation(
        TraceOperation::Open,
        0x8,
        &[PROGRAM],
    );
    let (_, messages) = answer(&unclear, QUESTION);
    assert!(messages.contains("does not show the order of its handle operations"), "{messages}");
}

#[test]
fn an_unloaded_module_names_its_frames_where_no_other_lay() {
    let mut dump = program().operation(TraceOperation::Open, 0x4, &[0x5000_0010, 0x6000_0010]);
    dump.unloaded = vec![
        DumpModule::new("gone.dll", 0x5000_0000, 0x1000),
        DumpModule::new("first.dll", 0x6000_0000, 0x1000),
        DumpModule::new("second.dll", 0x6000_0000, 0x2000),
    ];
    let (answer, _) = answer(&dump, QUESTION);
    let frames = answer["stacks"].as_object().unwrap().values().next().unwrap();
    assert_eq!(frames[0]["module"], "gone.dll");
    assert_eq!(frames[0]["rva"], "0x10");
    assert_eq!(frames[1]["module"], Value::Null);
    assert_eq!(frames[1]["address"], "0x60000010");
}

/// Returns the modules of the sample trace at addresses in a dump, with the identities of their PDBs.
fn sample_modules(shell: &Shell) -> Vec<DumpModule> {
    let sql = ".sql SELECT path, size, timestamp, pdb_name, pdb_guid, pdb_age FROM modules WHERE pdb_guid \
               IS NOT NULL -json";
    let run = shell.run(&["leaky.etl", "-c", sql]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap().iter();
    let module = |(row, base): (&Value, u64)| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| u32::try_from(row[key].as_u64().unwrap_or_default()).unwrap();
        let guid = u128::from_str_radix(&text("pdb_guid").replace('-', ""), 16).unwrap();
        DumpModule {
            timestamp: number("timestamp"),
            ..DumpModule::new(&text("path"), base, number("size")).pdb(
                &text("pdb_name"),
                Guid::new(guid),
                number("pdb_age"),
            )
        }
    };
    rows.zip((1..).map(|number| number * 0x1_0000_0000)).map(module).collect()
}

/// Joins the modules and functions of frames into a line.
fn functions<'f>(frames: impl Iterator<Item = &'f Value>) -> String {
    frames.map(|frame| format!("{}!{} ", frame["module"], frame["function"])).collect()
}

#[test]
fn stacks_have_the_functions_that_the_pdbs_of_the_module_list_name() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let run = shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", QUESTION]).ok();
    let trace: Value = serde_json::from_str(&run.stdout).unwrap();
    let modules = sample_modules(&shell);
    let bases: BTreeMap<String, u64> = modules
        .iter()
        .map(|module| (module.path.rsplit('\\').next().unwrap().to_owned(), module.base))
        .collect();
    let mut dump = SampleDump { modules, ..SampleDump::default() };
    let mut expected = BTreeSet::new();
    for (number, frames) in (1..).zip(trace["stacks"].as_object().unwrap().values()) {
        let frames =
            frames.as_array().unwrap().iter().filter(|frame| !frame["rva"].is_null()).take(32);
        let place = |frame: &Value| {
            let rva = frame["rva"].as_str().unwrap().trim_start_matches("0x");
            bases[frame["module"].as_str().unwrap()] + u64::from_str_radix(rva, 16).unwrap()
        };
        let addresses: Vec<u64> = frames.clone().map(place).collect();
        dump = dump.operation(TraceOperation::Open, number * 4, &addresses).handle(
            number * 4,
            "Event",
            "",
        );
        expected.insert(functions(frames));
    }
    assert!(expected.len() > 3 && expected.iter().any(|stack| stack.contains("leaky::")));
    let dumped = with(&dump);
    let run = dumped.run(&["--symbol-path", symbols, "a.dmp", "-c", QUESTION]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let stacks = answer["stacks"]
        .as_object()
        .unwrap()
        .values()
        .map(|frames| functions(frames.as_array().unwrap().iter()));
    assert_eq!(stacks.collect::<BTreeSet<String>>(), expected);
    // The symbols are also found in a folder beside the dump.
    handlescope_tests::folders::copy_folder(&sample_symbols(), &dumped.path("symbols"));
    let run = dumped.run(&["why", "a.dmp"]);
    assert!(run.stdout.contains("leaky::"), "{run:?}");
}

#[test]
fn what_a_dump_does_not_say_is_unknown_and_no_zero() {
    let process = answer(&traced(), ".dump Process -json").0;
    let process = &process["processes"][0];
    assert_eq!((&process["parent_pid"], &process["command_line"]), (&Value::Null, &Value::Null));
    let stats = answer(&traced(), ".dump Stats -json").0;
    let stats = &stats["files"][0];
    assert_eq!((&stats["os_version"], &stats["os_build"]), (&json!("10.0"), &json!(19045)));
    assert_eq!(stats["utc_offset_minutes"], Value::Null);
    let of_linux = SampleDump { is_linux: true, ..traced() };
    let stats = answer(&of_linux, ".dump Stats -json").0;
    let stats = &stats["files"][0];
    assert_eq!((&stats["os_version"], &stats["os_build"]), (&Value::Null, &Value::Null));
    assert_eq!(stats["product"], "Linux");
}

#[test]
fn the_time_zone_of_a_dump_is_known_also_where_it_is_utc() {
    for (bias, offset, text) in [(-120, 120, "UTC+02:00"), (0, 0, "UTC+00:00")] {
        let dump = SampleDump { zone: Some(bias), ..traced() };
        let stats = answer(&dump, ".dump Stats -json").0;
        assert_eq!(stats["files"][0]["utc_offset_minutes"], offset);
        let shown = with(&dump).run(&["a.dmp", "-c", ".dump Stats"]).ok().stdout;
        assert!(shown.contains(text), "{shown}");
    }
    let shown = with(&traced()).run(&["a.dmp", "-c", ".dump Stats"]).ok().stdout;
    assert!(!shown.contains("UTC+"), "{shown}");
}

#[test]
fn a_handle_value_chooses_handles_that_are_only_listed() {
    let listed = |question: &str| objects(&answer(&traced(), question).0);
    let handle = listed(".dump ObjectRef -Handle 0x4 -json");
    assert_eq!(handle, [r"Event \BaseNamedObjects\Go  0x4"]);
    assert_eq!(listed(".dump ObjectRef -Handle 0xC -json"), ["Event - handle_create 0xC"]);
    assert_eq!(listed(".dump ObjectRef -Handle 0x10 -json").len(), 1);
}

#[test]
fn files_of_linux_are_handles_from_0_on() {
    let dump = SampleDump { is_linux: true, ..SampleDump::default() }
        .handle(0, "", "/dev/null")
        .handle(1, "", "pipe:[4711]")
        .handle(5, "", "/var/log/app.log");
    let (answer, messages) = answer(&dump, ".dump ObjectRef -json");
    let expected = ["/dev/null  0x0", "pipe:[4711]  0x1", "/var/log/app.log  0x5"]
        .map(|it| format!("UnknownType {it}"));
    assert_eq!(objects(&answer), expected);
    assert!(messages.contains("it does not say what opened its 3 file descriptors"), "{messages}");
    assert!(!messages.contains("!htrace") && !messages.contains("BAD"), "{messages}");
    let empty = with(&SampleDump { is_linux: true, ..SampleDump::default() })
        .run(&["a.dmp", "-c", ".list"]);
    assert!(empty.stderr.contains("it is from Linux"), "{empty:?}");
    assert!(!empty.stderr.contains("WinDbg"), "{empty:?}");
    // On Windows, 0 is no handle.
    let (answer, _) = self::answer(
        &program().handle(0, "Event", "").handle(4, "Event", ""),
        ".dump ObjectRef -json",
    );
    assert_eq!(objects(&answer).len(), 1);
}
