//! Compares what handlescope writes for ETWAnalyzer, member by member, with ETWAnalyzer's own extracts of the same
//! traces.
//!
//! These differences are allowed:
//!
//! * numbers of processes and stacks follow the order of each program, so the tests compare what they refer to;
//! * line ends of stacks: CR LF is only for those who want identical bytes;
//! * `Name` is absent where it would be empty, because our tables do not distinguish an empty name from none;
//! * `MiscInfo`: only the published extracts fill it;
//! * facts that are not in the trace: computer, memory, processor names, folders as drive letters, version texts; other
//!   data than handles; seconds of the boot;
//! * members of our own, listed below.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::foreign::json_members;
use handlescope_tests::needs_data;
use serde_json::{Map, Value};

const TRACES: [&str; 6] =
    ["eventleak", "threadleak", "registry", "objectref", "filemap", "duplicates"];

/// Our own members; ETWAnalyzer ignores them.
const OWN: [&str; 8] = [
    "Handlescope",
    "CallerProcessIdx",
    "InheritedByIdx",
    "SourcePid",
    "StackRow",
    "IsByExit",
    "EventOrder",
    "ClosingEvents",
];

/// The four parts of an extract.
struct ExtractDocuments {
    main: Value,
    modules: Value,
    handle: Value,
    stacks: Value,
}

impl ExtractDocuments {
    fn open(archive: &std::path::Path) -> Self {
        let members = json_members(archive);
        let part = |suffix: &str| {
            let of = |name: &str| match name.split_once("_Derived_") {
                Some((_, rest)) => rest == format!("{suffix}.json"),
                None => suffix.is_empty(),
            };
            let (name, bytes) = members.iter().find(|(name, _)| of(name)).expect(suffix);
            assert!(bytes.starts_with(b"{\""), "{name} has neither mark nor indentation");
            serde_json::from_slice(bytes).unwrap()
        };
        Self {
            main: part(""),
            modules: part("Modules"),
            handle: part("Handle"),
            stacks: part("HandleStacks"),
        }
    }

    /// Returns the process for a process number.
    fn process(&self, number: &Value) -> Value {
        let number = number.as_i64().unwrap();
        if number == -1 {
            return Value::Null;
        }
        let process = &self.main["Processes"][number as usize];
        assert!(process.is_object(), "process {number} is there");
        Value::from(vec![process["ProcessID"].clone(), process["StartTime"].clone()])
    }

    fn stack(&self, number: &Value) -> Value {
        let stack = &self.stacks["StackList"][number.as_u64().unwrap() as usize];
        Value::from(stack.as_str().expect("the stack is there").replace("\r\n", "\n"))
    }

    /// Returns an object or event with its numbers resolved, without our own members.
    fn record(&self, record: &Map<String, Value>) -> Value {
        let known = |(name, value): (&String, &Value)| {
            let value = match (name.as_str(), value) {
                ("ProcessIdx" | "SourceProcessIdx" | "Process", number) => self.process(number),
                ("StackIdx", number) => self.stack(number),
                (_, Value::Array(list)) => {
                    assert!(!list.is_empty(), "{name}: an empty list is left out");
                    let each = |record: &Value| self.record(record.as_object().unwrap());
                    list.iter().map(each).collect()
                }
                (_, Value::Object(event)) => self.record(event),
                (_, value) => value.clone(),
            };
            (name.clone(), value)
        };
        record.iter().filter(|(name, _)| !OWN.contains(&name.as_str())).map(known).collect()
    }

    fn objects(&self) -> Vec<Value> {
        let objects = self.handle["ObjectReferences"].as_array().unwrap();
        objects.iter().map(|object| self.record(object.as_object().unwrap())).collect()
    }

    fn processes(&self) -> BTreeMap<String, Value> {
        let processes = self.main["Processes"].as_array().unwrap();
        let key = |process: &Value| format!("{} {}", process["ProcessID"], process["StartTime"]);
        processes.iter().map(|process| (key(process), process.clone())).collect()
    }

    /// Returns the processes that have a module, by the module's file name.
    fn module_processes(&self) -> BTreeMap<String, BTreeSet<String>> {
        let strings = self.modules["SharedStrings"]["Strings"].as_array().unwrap();
        let records = self.modules["Modules"].as_array().unwrap();
        let of_record = |record: &Value| {
            let mut words = record["ModuleAndPid"].as_str().unwrap().split(' ');
            let texts: Vec<i64> =
                words.by_ref().take(7).map(|word| word.parse().unwrap()).collect();
            assert!(texts.iter().all(|text| *text == -2 || strings.get(*text as usize).is_some()));
            let numbers: Vec<u64> = words.map(|word| word[1..].parse().unwrap()).collect();
            assert!(numbers.is_sorted());
            let processes =
                numbers.iter().map(|number| self.process(&Value::from(*number)).to_string());
            (strings[texts[1] as usize].as_str().unwrap().to_owned(), processes.collect())
        };
        records.iter().map(of_record).collect()
    }
}

fn for_each_trace(check: impl Fn(&str, &ExtractDocuments, &ExtractDocuments)) {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let home = tempfile::tempdir().unwrap();
        std::fs::copy(trace.etl(), home.path().join("trace.etl")).unwrap();
        let mut command = handlescope(home.path());
        command.args(["extract", "-etwanalyzer", "trace.etl", "-o", ".", "-symFolder"]);
        let _ = ProgramRun::from(command.arg(trace.pdbs().path()).output().unwrap()).ok();
        let ours = ExtractDocuments::open(&home.path().join("trace.json7z"));
        check(name, &ours, &ExtractDocuments::open(&trace.file(".json7z")));
    }
}

/// Removes what may differ between two records of the same object.
fn without_differences(mut object: Value) -> Value {
    let members = object.as_object_mut().unwrap();
    if members.get("Name").is_some_and(|name| name == "") {
        members.remove("Name");
    }
    for value in members.values_mut() {
        for event in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            event.remove("MiscInfo");
        }
    }
    object
}

#[needs_data]
#[test]
fn objects_and_events_are_the_same() {
    for_each_trace(|name, ours, theirs| {
        assert_eq!(ours.handle["ObjectTypeMap"], theirs.handle["ObjectTypeMap"], "{name}");
        let (our_objects, their_objects) = (ours.objects(), theirs.objects());
        assert_eq!(our_objects.len(), their_objects.len(), "{name}");
        for (ours, theirs) in our_objects.into_iter().zip(their_objects) {
            assert_eq!(without_differences(ours), without_differences(theirs), "{name}");
        }
    });
}

#[needs_data]
#[test]
fn stacks_are_the_same_texts_each_once() {
    for_each_trace(|name, ours, theirs| {
        let texts = |extract: &ExtractDocuments| -> Vec<String> {
            let texts = extract.stacks["StackList"].as_array().unwrap().iter();
            texts.map(|text| text.as_str().unwrap().replace("\r\n", "\n")).collect()
        };
        let (our_texts, their_texts) = (texts(ours), texts(theirs));
        assert_eq!(our_texts[0], "", "{name}: that of events without stack");
        let set = |texts: &[String]| texts.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(set(&our_texts), set(&their_texts), "{name}");
        assert_eq!(set(&our_texts).len(), our_texts.len(), "{name}");
    });
}

#[needs_data]
#[test]
fn processes_and_session_are_the_same() {
    for_each_trace(|name, ours, theirs| {
        assert_eq!(ours.processes(), theirs.processes(), "{name}");
        for member in
            ["SessionStart", "SessionEnd", "OSVersion", "NumberOfProcessors", "CPUSpeedMHz"]
        {
            assert_eq!(ours.main[member], theirs.main[member], "{name}: {member}");
        }
        let header = |extract: &ExtractDocuments| {
            let mut header = extract.main["TraceHeader"].clone();
            // The comma comes with or without a space after it.
            header["LogFileMode"] =
                header["LogFileMode"].as_str().unwrap().replace(", ", ",").into();
            header
        };
        assert_eq!(header(ours), header(theirs), "{name}");
    });
}

#[needs_data]
#[test]
fn modules_and_their_pdbs_are_the_same() {
    for_each_trace(|name, ours, theirs| {
        assert_eq!(ours.module_processes(), theirs.module_processes(), "{name}");
        for member in ["UnresolvedPdbs", "TotalPdbCount"] {
            assert_eq!(ours.modules[member], theirs.modules[member], "{name}: {member}");
        }
        let pdb = |extract: &ExtractDocuments| -> Vec<Value> {
            extract.modules["Modules"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|module| module.get("PdbIdx").cloned())
                .collect()
        };
        assert_eq!(pdb(ours), pdb(theirs), "{name}");
    });
}

#[test]
fn every_member_is_one_of_the_format_or_ours() {
    const MAIN: &[&str] = &[
        "SourceETLFileName",
        "UsedExtractOptions",
        "ComputerName",
        "OSName",
        "OSBuild",
        "OSVersion",
        "MemorySizeMB",
        "NumberOfProcessors",
        "CPUSpeedMHz",
        "CPUProcessorGroups",
        "SessionStart",
        "SessionEnd",
        "BootTime",
        "TraceHeader",
        "ETWMarks",
        "Model",
        "AdDomain",
        "IsDomainJoined",
        "Displays",
        "PowerConfiguration",
        "Processes",
        "Disk",
        "ModuleVersions",
        "NetworkInterfaces",
    ];
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "--etwanalyzer", "-o", "."]).ok();
    let ExtractDocuments { main, modules, handle, stacks } =
        ExtractDocuments::open(&shell.path("leaky.json7z"));
    let names = |value: &Value| -> Vec<String> {
        let names = value.as_object().unwrap().keys();
        names.filter(|name| !OWN.contains(&name.as_str())).cloned().collect()
    };
    assert!(names(&main).iter().all(|name| MAIN.contains(&name.as_str())), "{:?}", names(&main));
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let expected = ["Modules", "SharedStrings", "TotalPdbCount", "UnresolvedPdbs"];
    assert_eq!(sorted(names(&modules)), expected);
    assert_eq!(sorted(names(&handle)), ["ObjectReferences", "ObjectTypeMap"]);
    assert_eq!(names(&stacks), ["StackList"]);
    assert!(main["UsedExtractOptions"].as_str().unwrap().starts_with("handlescope "));
    assert!(!main.to_string().contains("\"ObjectReferences\""), "there is a part for it");
}
