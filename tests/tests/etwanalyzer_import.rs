//! Extracts of ETWAnalyzer: both forms, old and new, renamed, incomplete and hostile ones.
//!
//! That the published ones have the known answers is tested with the traces, in `synthetic.rs`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use handlescope_tests::binary::{Run, Shell, sample_symbols};
use handlescope_tests::data::unpack;
use serde_json::{Value, json};
use sevenz_rust::{ArchiveEntry, ArchiveWriter, EncoderConfiguration, EncoderMethod};

/// The members of a small extract with a leaked event, a view and a handle from before.
struct Members {
    main: String,
    modules: String,
    handle: String,
    stacks: String,
}

impl Default for Members {
    fn default() -> Self {
        let main = json!({
            "SourceETLFileName": "C:\\Traces\\Demo.etl",
            "UsedExtractOptions": "ETWAnalyzer 4.0.0.0 -extract ObjectRef",
            "ComputerName": "LAB-PC1", "OSName": "Windows 11 Pro", "OSVersion": "10.0.22631",
            "NumberOfProcessors": 8,
            "SessionStart": "2024-05-10T12:46:34.5+02:00", "SessionEnd": "2024-05-10T12:46:44.5+02:00",
            "TraceHeader": { "BufferSize": 1048576, "EventsLost": 0, "BuffersLost": 0,
                "LogFileMode": "FILE_MODE_SEQUENTIAL" },
            "Processes": [
                { "ProcessID": 4, "ProcessName": "System", "StartTime": "0001-01-01T00:00:00+00:00",
                  "EndTime": "9999-12-31T23:59:59.9999999+00:00" },
                { "ProcessID": 6528, "ProcessName": "leaky.exe", "CmdLine": "C:\\Demo\\leaky.exe -n 2",
                  "StartTime": "2024-05-10T12:46:36.1234567+02:00", "IsNew": true, "ParentPid": 5120 }
            ],
            "HandleData": { "ObjectTypeMap": {}, "ObjectReferences": [] }
        });
        let modules = json!({
            "Modules": [
                { "ModuleAndPid": "0 1 2 3 4 5 6 #0 #1" },
                { "ModuleAndPid": "7 8 9 -2 -2 -2 -2 #1", "PdbIdx": 0 }
            ],
            "UnresolvedPdbs": [ { "Pdb": "0f8fad5b-d9cb-469f-a165-70867728950e 1 leaky.pdb" } ],
            "SharedStrings": { "Strings": ["C:\\Windows\\System32", "ntdll.dll", "10.0.22621.1 (x)",
                "10.0.22621.1", "Windows", "10.0.22621.1", "NT Layer DLL", "C:\\Demo", "leaky.exe",
                "<NoVersion>"] }
        });
        let handle = json!({
            "ObjectTypeMap": { "16": "Event" },
            "ObjectReferences": [
                { "ObjectPtr": -67604145713824i64, "Name": "\\BaseNamedObjects\\Demo_0", "ObjectType": 16,
                  "HandleCreateEvents": [ { "HandleValue": 192, "TimeNs": 3200000000u64, "StackIdx": 1,
                    "ProcessIdx": 1, "ThreadId": 700 } ] },
                { "ObjectPtr": 28713442265137152u64, "ObjectType": 1000,
                  "FileMapEvents": [ { "ViewBase": 2994640650240u64, "FileObject": -138503362970768i64,
                    "MiscInfo": 0, "ViewSize": 4096, "ByteOffset": 0, "TimeNs": 3400000000u64,
                    "StackIdx": 0, "ProcessIdx": 1, "ThreadId": 701 } ] },
                { "ObjectPtr": -67604159847888i64, "Name": "", "ObjectType": 99,
                  "Existing": [ { "Handle": 500, "Process": 1 } ] }
            ]
        });
        let stacks = json!({ "StackList": ["",
            "ntoskrnl.exe!NtCreateEvent\r\nntdll.dll!NtCreateEvent\r\nleaky.exe+0x1A2B\r\nodd.bin!x!y\r\n"
        ] });
        Self {
            main: main.to_string(),
            modules: modules.to_string(),
            handle: handle.to_string(),
            stacks: stacks.to_string(),
        }
    }
}

impl Members {
    /// Names and contents for an extract called `base`.
    fn named(&self, base: &str) -> Vec<(String, Vec<u8>)> {
        [
            ("_Derived_Modules", &self.modules),
            ("_Derived_Handle", &self.handle),
            ("_Derived_HandleStacks", &self.stacks),
            ("", &self.main),
        ]
        .map(|(part, text)| (format!("{base}{part}.json"), text.clone().into_bytes()))
        .into_iter()
        .collect()
    }

    fn pack(&self, path: &Path, base: &str) {
        pack(path, &self.named(base));
    }
}

/// Writes an archive of uncompressed members.
fn pack(path: &Path, members: &[(String, Vec<u8>)]) {
    pack_with(path, members, EncoderMethod::COPY);
}

fn pack_with(path: &Path, members: &[(String, Vec<u8>)], method: EncoderMethod) {
    let mut archive = ArchiveWriter::new(fs::File::create(path).unwrap()).unwrap();
    archive.set_content_methods(vec![EncoderConfiguration::new(method)]);
    for (name, content) in members {
        let entry = ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(content.as_slice())).unwrap();
    }
    archive.finish().unwrap();
}

const QUESTION: &str = ".dump ObjectRef -ShowStack -json";

/// The answer to the question about every object.
fn answer(shell: &Shell, file: &str) -> Value {
    first_answer(&shell.run(&[file, "-c", QUESTION]).ok())
}

/// The first document of a run, its objects by id.
fn first_answer(run: &Run) -> Value {
    let mut documents = serde_json::Deserializer::from_str(&run.stdout).into_iter();
    let mut answer: Value = documents.next().unwrap().unwrap();
    let objects = answer["objects"].as_array_mut().unwrap();
    objects.sort_by_key(|object| object["id"].as_u64());
    answer
}

/// What went wrong when a file was loaded.
fn refusal(shell: &Shell, file: &str) -> String {
    let Run { stderr, status, .. } = shell.run(&[file, "-c", ".list"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let cache = shell.path("cache/handlescope/Converted");
    let mut folders = fs::read_dir(cache).into_iter().flatten().flatten();
    let is_empty = |folder: fs::DirEntry| fs::read_dir(folder.path()).unwrap().next().is_none();
    assert!(folders.all(is_empty), "nothing is left behind: {stderr}");
    stderr
}

#[test]
fn frames_objects_and_times_are_those_of_the_file() {
    let shell = Shell::new();
    Members::default().pack(&shell.path("Demo.json7z"), "Demo");
    let answer = answer(&shell, "Demo.json7z");
    let objects = answer["objects"].as_array().unwrap();
    assert_eq!(objects.iter().map(|o| o["id"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(objects[0]["pointer"], "0xFFFFC283AEE8CD60");
    assert_eq!(objects[0]["name"], "\\BaseNamedObjects\\Demo_0");
    assert_eq!(objects[1]["type"], "FileMapping");
    assert_eq!((&objects[2]["type"], &objects[2]["name"]), (&json!("UnknownType"), &Value::Null));
    assert_eq!(objects[2]["existing_handles"][0]["handle"], "0x1F4");
    let create = &objects[0]["events"][0];
    assert_eq!((&create["leaked"], &create["tid"]), (&json!(true), &json!(700)));
    let frames = answer["stacks"][create["stack"].to_string()].as_array().unwrap();
    let texts: Vec<_> = frames
        .iter()
        .map(|f| {
            (f["module"].clone(), f["function"].clone(), f["rva"].clone(), f["offset"].clone())
        })
        .collect();
    let named =
        |module: &str, function: &str| (json!(module), json!(function), Value::Null, Value::Null);
    assert_eq!(texts[0], named("ntoskrnl.exe", "NtCreateEvent"));
    assert_eq!(texts[1], named("ntdll.dll", "NtCreateEvent"));
    assert_eq!(texts[2], (json!("leaky.exe"), Value::Null, json!("0x1A2B"), Value::Null));
    assert_eq!(texts[3], named("odd.bin", "x!y"));
    // ETWAnalyzer always writes 0: that is unknown.
    assert_eq!(objects[1]["events"][0]["byte_offset"], Value::Null);
}

#[test]
fn symbols_name_what_etw_analyzer_had_none_for_and_the_names_can_be_stored() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let frames = |run: &Run| -> Vec<Value> {
        let stacks = first_answer(run)["stacks"].clone();
        let stacks = stacks.as_object().unwrap().values();
        stacks.flat_map(|stack| stack.as_array().unwrap().clone()).collect()
    };
    let sample = shell.run(&["leaky.etl", "--symbol-path", symbols, "-c", QUESTION]).ok();
    let sample = frames(&sample);
    let known = |frame: &&Value| frame["module"] == "leaky.exe" && frame["function"].is_string();
    let known = sample.iter().find(known).unwrap();
    let members = Members::default();
    let members = Members {
        stacks: members.stacks.replace("0x1A2B", known["rva"].as_str().unwrap()),
        modules: members.modules.replace(
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "641fc440-82b9-e1ed-4c4c-44205044422e",
        ),
        ..members
    };
    members.pack(&shell.path("Demo.json7z"), "Demo");
    let without = frames(&shell.run(&["Demo.json7z", "-c", QUESTION]).ok());
    let of_leaky = |frames: &[Value]| {
        frames.iter().find(|frame| frame["module"] == "leaky.exe").unwrap().clone()
    };
    assert_eq!(of_leaky(&without)["function"], Value::Null);
    let with = shell
        .run(&["Demo.json7z", "--symbol-path", symbols, "-c", QUESTION, "-c", ".symbolize"])
        .ok();
    let named = frames(&with);
    for member in ["function", "offset", "rva"] {
        assert_eq!(of_leaky(&named)[member], known[member], "{member}");
    }
    let again = shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    assert!(!again.stderr.contains("converted"), "{again:?}");
    assert_eq!(frames(&again), named, "those of the text are still there, too");
}

#[test]
fn it_is_converted_once_and_again_when_it_has_changed() {
    let shell = Shell::new();
    let path = shell.path("Demo.json7z");
    Members::default().pack(&path, "Demo");
    let old = fs::FileTimes::new()
        .set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    fs::File::options().write(true).open(&path).unwrap().set_times(old).unwrap();
    let before = fs::read(&path).unwrap();
    let first = shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    assert!(first.stderr.contains("Demo.json7z is ETWAnalyzer's and was converted"), "{first:?}");
    let second = shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    assert!(!second.stderr.contains("converted"), "{second:?}");
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(fs::read(&path).unwrap(), before, "theirs stays as it is");
    let changed = Members::default();
    let changed = Members { handle: changed.handle.replace("Demo_0", "Demo_1"), ..changed };
    changed.pack(&path, "Demo");
    let third = shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    assert!(third.stdout.contains("Demo_1"), "{third:?}");
}

#[test]
fn a_renamed_archive_and_files_side_by_side_answer_the_same() {
    let shell = Shell::new();
    let members = Members::default();
    members.pack(&shell.path("Renamed.json7z"), "Demo");
    let packed = answer(&shell, "Renamed.json7z");
    for (name, content) in members.named("Plain") {
        fs::write(shell.path(&name), content).unwrap();
    }
    let one_shot =
        shell.run(&["dump", "ObjectRef", "-fd", "Plain.json", "-ShowStack", "-json"]).ok();
    let plain = first_answer(&one_shot);
    assert_eq!(packed["objects"], plain["objects"]);
    assert_eq!(packed["stacks"], plain["stacks"]);
    // Any of the files stands for all, and a change of any is seen.
    assert_eq!(answer(&shell, "Plain_Derived_Handle.json")["objects"], plain["objects"]);
    let longer = members.handle.replace("Demo_0", "Demo_longer");
    fs::write(shell.path("Plain_Derived_Handle.json"), longer).unwrap();
    let changed = answer(&shell, "Plain.json");
    assert_eq!(changed["objects"][0]["name"], "\\BaseNamedObjects\\Demo_longer");
    // A folder has JSON of all sorts; only extracts are found in it.
    fs::write(shell.path("notes.json"), "{}").unwrap();
    let listed = shell.run(&[".", "-c", ".list"]).ok();
    assert!(listed.stdout.contains("Plain.json") && !listed.stdout.contains("notes"), "{listed:?}");
}

#[test]
fn byte_order_marks_indentation_order_and_case_make_no_difference() {
    let shell = Shell::new();
    let members = Members::default();
    members.pack(&shell.path("Plain.json7z"), "Plain");
    let expected = answer(&shell, "Plain.json7z");
    let indented = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    };
    let lower = |text: &str| {
        text.replace("\"HandleValue\"", "\"handlevalue\"").replace("\"TimeNs\"", "\"TIMENS\"")
    };
    let utf16 = |text: &str| {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let utf8 = |text: &str| [b"\xEF\xBB\xBF".as_slice(), text.as_bytes()].concat();
    let odd = [
        ("Odd.json", utf8(&indented(&members.main))),
        ("Odd_Derived_HandleStacks.json", utf8(&members.stacks.replace("\\r\\n", "\\n"))),
        ("Odd_Derived_Handle.json", utf16(&lower(&indented(&members.handle)))),
        ("Odd_Derived_Modules.json", members.modules.clone().into_bytes()),
    ];
    let odd: Vec<_> = odd.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
    pack_with(&shell.path("Odd.json7z"), &odd, EncoderMethod::LZMA2);
    let found = answer(&shell, "Odd.json7z");
    assert_eq!((&found["objects"], &found["stacks"]), (&expected["objects"], &expected["stacks"]));
}

#[test]
fn what_is_missing_is_told_and_the_rest_is_there() {
    let shell = Shell::new();
    let members = Members::default();
    let without = |part: &str| {
        let mut named = members.named("Less");
        named.retain(|(name, _)| !name.ends_with(&format!("{part}.json")));
        pack(&shell.path("Less.json7z"), &named);
        shell.run(&["Less.json7z", "-c", QUESTION, "-c", ".dump Process -json"]).ok()
    };
    let run = without("_Derived_HandleStacks");
    assert!(run.stderr.contains("no stacks in this extract"), "{run:?}");
    let found = first_answer(&run);
    let stack = &found["objects"][0]["events"][0]["stack"];
    assert!(stack.is_u64(), "the number is still there: {found}");
    assert_eq!(found["stacks"][stack.to_string()], json!([]));
    let run = without("_Derived_Handle");
    assert!(run.stderr.contains("no handle data in this extract"), "{run:?}");
    assert!(run.stdout.contains("leaky.exe"), "{run:?}");
    let run = without("_Derived_Modules");
    assert!(run.stdout.contains("NtCreateEvent"), "{run:?}");
}

#[test]
fn old_versions_new_versions_and_damaged_numbers_are_read() {
    let shell = Shell::new();
    let members = Members {
        main: r#"{"SessionStart":"2024-05-10T12:46:34+02:00","StartStopTags":"x","Processes":
            [{"ProcessID":7,"ProcessName":null,"StartStopTags":"+","Future":{"deep":[[{"a":[1]}]]}},null]}"#
            .into(),
        handle: r#"{"Brand":[{"New":{}}],"ObjectReferences":[
            {"ObjectPtr":5,"HandleCreateEvents":[{"HandleValue":18446744073709551615,"ProcessIdx":-1,
                "StackIdx":77},{"HandleValue":4,"ProcessIdx":0,"TimeNs":5,"StackIdx":-1}],
             "HandleCloseEvents":[{"HandleValue":4,"ProcessIdx":0,"TimeNs":2},
                {"HandleValue":4,"ProcessIdx":0,"TimeNs":9,"ThreadId":null}],
             "HandleDuplicateEvents":[{"HandleValue":4,"SourceProcessIdx":-1,"ProcessIdx":99}]},
            null,{"Name":"a -- Other Name -- ","Existing":null,"CreateEvent":null}]}"#
            .into(),
        stacks: r#"{"StackList":["NtCreateEvent\nmain",null]}"#.into(),
        modules: "{}".into(),
    };
    members.pack(&shell.path("Old.json7z"), "Old");
    let found = answer(&shell, "Old.json7z");
    let objects = found["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0]["type"], "UnknownType");
    assert_eq!(objects[2]["name"], "a");
    let events = objects[0]["events"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["handle_create", "handle_duplicate", "handle_close", "handle_create", "handle_close"]
    );
    assert_eq!(events[0]["handle"], "0xFFFFFFFFFFFFFFFF");
    assert_eq!((&events[0]["process"], &events[0]["pid"]), (&json!("Invalid"), &json!(0)));
    assert_eq!((&events[3]["leaked"], &events[3]["process"]), (&json!(false), &json!("")));
}

#[test]
fn broken_json_is_refused_with_member_and_position() {
    let shell = Shell::new();
    let cases = [
        ("", "member Bad_Derived_Handle.json, line 1, column 0: EOF while parsing a value"),
        (r#"{"ObjectReferences":[{"ObjectPtr":1},"#, "line 1, column 37: EOF while parsing"),
        ("{\n\"ObjectReferences\":[{\"ObjectPtr\":\"x\"}]}", "line 2, column 36: invalid type"),
        (r#"{"ObjectReferences":[]} x"#, "column 25: trailing characters"),
        ("[]", "invalid type: sequence, expected an object"),
        ("{\"a\":\"\u{1}\"}", "control character"),
    ];
    for (handle, said) in cases {
        let members = Members { handle: handle.into(), ..Members::default() };
        members.pack(&shell.path("Bad.json7z"), "Bad");
        let error = refusal(&shell, "Bad.json7z");
        assert!(error.contains("Bad.json7z: member Bad_Derived_Handle.json"), "{error}");
        assert!(error.contains(said), "{said}: {error}");
    }
    let deep = format!("{{\"Unknown\":{}", "[".repeat(100_000));
    Members { handle: deep, ..Members::default() }.pack(&shell.path("Bad.json7z"), "Bad");
    assert!(refusal(&shell, "Bad.json7z").contains("nested deeper than 64 levels, at byte 74"));
    let long = format!("{{\"Unknown\":\"{}", "x".repeat(17 << 20));
    Members { handle: long, ..Members::default() }.pack(&shell.path("Bad.json7z"), "Bad");
    assert!(refusal(&shell, "Bad.json7z").contains("a string of more than 16777216 bytes"));
}

#[test]
fn other_json_and_other_archives_are_no_extracts() {
    let shell = Shell::new();
    fs::write(shell.path("other.json"), r#"{"name":"package"}"#).unwrap();
    assert!(refusal(&shell, "other.json").contains("neither SessionStart nor Processes"));
    pack(&shell.path("other.json7z"), &[("readme.txt".into(), b"x".to_vec())]);
    assert!(refusal(&shell, "other.json7z").contains("neither of handlescope nor of ETWAnalyzer"));
    let handle = Members::default().named("x").swap_remove(1);
    pack(&shell.path("other.json7z"), &[handle]);
    assert!(refusal(&shell, "other.json7z").contains("no main member"));
}

#[test]
fn names_that_lead_out_and_names_that_are_there_twice_are_refused() {
    let shell = Shell::new();
    for (name, said) in [
        ("../Bad.json", "leads out of the archive"),
        ("a\\..\\..\\Bad.json", "leads out of the archive"),
        ("/etc/Bad.json", "absolute name"),
        ("C:\\Bad.json", "absolute name"),
        ("Bad.json", "is there twice"),
    ] {
        let mut members = Members::default().named("Bad");
        members.push((name.to_owned(), b"{}".to_vec()));
        pack(&shell.path("Bad.json7z"), &members);
        let error = refusal(&shell, "Bad.json7z");
        assert!(error.contains(said) && error.contains("the archive is refused"), "{error}");
    }
}

#[test]
fn a_damaged_archive_is_refused_wherever_the_damage_is() {
    let shell = Shell::new();
    let path = shell.path("Bad.json7z");
    for method in [EncoderMethod::COPY, EncoderMethod::LZMA2] {
        pack_with(&path, &Members::default().named("Bad"), method);
        let good = fs::read(&path).unwrap();
        for at in (40..good.len()).step_by(good.len() / 6) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            fs::write(&path, &bad).unwrap();
            refusal(&shell, "Bad.json7z");
            fs::write(&path, &good[..at]).unwrap();
            refusal(&shell, "Bad.json7z");
        }
    }
    pack(&path, &Members::default().named("Bad"));
    let mut bad = fs::read(&path).unwrap();
    let in_handle = bad.windows(6).position(|bytes| bytes == b"Demo_0").unwrap();
    bad[in_handle] ^= 1;
    fs::write(&path, &bad).unwrap();
    let error = refusal(&shell, "Bad.json7z");
    assert!(error.contains("member Bad_Derived_Handle.json cannot be unpacked"), "{error}");
}

#[test]
fn an_extract_of_ours_is_not_believed_more() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    fs::rename(shell.path("leaky.json7z"), shell.path("ours.7z")).unwrap();
    let unpacked = unpack(&shell.path("ours.7z"));
    let mut members: Vec<(String, Vec<u8>)> = fs::read_dir(unpacked.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    for (name, said) in [
        ("../events.parquet", "leads out of the archive"),
        ("/events.parquet", "absolute name"),
        ("events.parquet", "is there twice"),
    ] {
        members.push((name.to_owned(), b"x".to_vec()));
        pack(&shell.path("bad.json7z"), &members);
        let error = refusal(&shell, "bad.json7z");
        assert!(error.contains(said) && error.contains("the archive is refused"), "{error}");
        members.pop();
    }
    members.push(("more.parquet".into(), vec![0; 80 << 20]));
    pack_with(&shell.path("bad.json7z"), &members, EncoderMethod::LZMA2);
    let error = refusal(&shell, "bad.json7z");
    assert!(error.contains("bytes claim to hold 83"), "{error}");
}

#[test]
fn a_part_that_is_too_large_is_refused_unless_it_is_allowed() {
    let shell = Shell::new();
    Members::default().pack(&shell.path("Demo.json7z"), "Demo");
    for (name, content) in Members::default().named("Plain") {
        fs::write(shell.path(&name), content).unwrap();
    }
    for file in ["Demo.json7z", "Plain.json"] {
        let refused = shell.run(&["-c", &format!(".load -MaxSize 400 {file}")]);
        assert_eq!(refused.status, Some(1));
        assert!(
            refused.stderr.contains("bytes, more than the limit of 400; if you"),
            "{refused:?}"
        );
        let _ = shell.run(&["-c", &format!(".load -MaxSize 1MB {file}"), "-c", ".list"]).ok();
    }
}

#[test]
fn a_bomb_costs_neither_time_nor_memory() {
    let shell = Shell::new();
    let mut members = Members::default().named("Bad");
    members[1].1 = vec![b' '; 80 << 20];
    pack_with(&shell.path("Bad.json7z"), &members, EncoderMethod::LZMA2);
    let begin = Instant::now();
    let error = refusal(&shell, "Bad.json7z");
    assert!(error.contains("bytes claim to hold 838"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
}
