//! ETWAnalyzer extracts: both forms, old and new, renamed and incomplete.
//!
//! `synthetic.rs` tests that the published extracts give the known answers.

use std::fs;
use std::time::Duration;

use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::folders::files;
use handlescope_tests::foreign::{ForeignMembers, pack, pack_with};
use serde_json::{Value, json};
use sevenz_rust::EncoderMethod;
const QUESTION: &str = ".dump ObjectRef -ShowStack -json";

/// Returns the answer to the question about every object.
fn answer(shell: &Shell, file: &str) -> Value {
    first_answer(&shell.run(&[file, "-c", QUESTION]).ok())
}

/// Returns the first document of a run, with its objects sorted by id.
fn first_answer(run: &ProgramRun) -> Value {
    let mut answer: Value =
        serde_json::Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap();
    let objects = answer["objects"].as_array_mut().unwrap();
    objects.sort_by_key(|object| object["id"].as_u64());
    answer
}

#[test]
fn frames_objects_and_times_are_those_of_the_file() {
    let shell = Shell::new();
    ForeignMembers::default().pack(&shell.path("Demo.json7z"), "Demo");
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
    // ETWAnalyzer always writes 0, so the offset is unknown.
    assert_eq!(objects[1]["events"][0]["byte_offset"], Value::Null);
}

#[test]
fn symbols_name_what_etw_analyzer_had_none_for_and_the_names_can_be_stored() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let frames = |run: &ProgramRun| -> Vec<Value> {
        let stacks = first_answer(run)["stacks"].clone();
        let stacks = stacks.as_object().unwrap().values();
        stacks.flat_map(|stack| stack.as_array().unwrap().clone()).collect()
    };
    let sample = shell.run(&["leaky.etl", "--symbol-path", symbols, "-c", QUESTION]).ok();
    let sample = frames(&sample);
    let known = |frame: &&Value| frame["module"] == "leaky.exe" && frame["function"].is_string();
    let known = sample.iter().find(known).unwrap();
    let members = ForeignMembers::default();
    let members = ForeignMembers {
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
    ForeignMembers::default().pack(&path, "Demo");
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
    let changed = ForeignMembers::default();
    let changed = ForeignMembers { handle: changed.handle.replace("Demo_0", "Demo_1"), ..changed };
    changed.pack(&path, "Demo");
    let third = shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    assert!(third.stdout.contains("Demo_1"), "{third:?}");
}

#[test]
fn a_renamed_archive_and_files_side_by_side_answer_the_same() {
    let shell = Shell::new();
    let members = ForeignMembers::default();
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
    // Any of the files can be named for the extract, and a change to any of them is noticed.
    assert_eq!(answer(&shell, "Plain_Derived_Handle.json")["objects"], plain["objects"]);
    let longer = members.handle.replace("Demo_0", "Demo_longer");
    fs::write(shell.path("Plain_Derived_Handle.json"), longer).unwrap();
    let changed = answer(&shell, "Plain.json");
    assert_eq!(changed["objects"][0]["name"], "\\BaseNamedObjects\\Demo_longer");
    // A folder may have JSON files of all kinds; only extracts are loaded from it.
    fs::write(shell.path("notes.json"), "{}").unwrap();
    let listed = shell.run(&[".", "-c", ".list"]).ok();
    assert!(listed.stdout.contains("Plain.json") && !listed.stdout.contains("notes"), "{listed:?}");
}

#[test]
fn byte_order_marks_indentation_order_and_case_make_no_difference() {
    let shell = Shell::new();
    let members = ForeignMembers::default();
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
        std::iter::once(0xFEFF)
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
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
fn missing_members_are_reported_and_the_rest_is_imported() {
    let shell = Shell::new();
    let members = ForeignMembers::default();
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
    let members = ForeignMembers {
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
    assert_eq!((&events[3]["leaked"], &events[3]["process"]), (&json!(false), &Value::Null));
}

#[test]
fn a_damaged_conversion_of_an_extract_is_made_again() {
    let shell = Shell::new();
    ForeignMembers::default().pack(&shell.path("Demo.json7z"), "Demo");
    let run = || shell.run(&["Demo.json7z", "-c", QUESTION]).ok();
    let sound = run().stdout;
    let folder = shell.path("cache/handlescope/Converted");
    let [(converted, bytes)] = &files(&folder)[..] else { panic!("one conversion") };
    for place in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        fs::write(converted, damaged).unwrap();
        let again = run();
        assert_eq!(again.stdout, sound, "byte {place}");
        assert!(again.stderr.contains("was converted"), "byte {place}: {again:?}");
        assert!(fs::read(converted).unwrap() == *bytes, "byte {place}");
    }
    assert!(!run().stderr.contains("was converted"));
}
