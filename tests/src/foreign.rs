//! Handmade ETWAnalyzer extracts.

use std::fs;
use std::path::Path;

use serde_json::json;
use sevenz_rust::{
    ArchiveEntry, ArchiveReader, ArchiveWriter, EncoderConfiguration, EncoderMethod, Password,
};

use crate::binary::{ProgramRun, Shell};

/// The members of a small extract with a leaked event, a view and a handle from before the trace.
#[derive(Debug, Clone)]
pub struct ForeignMembers {
    /// The main part.
    pub main: String,
    /// `_Derived_Modules`.
    pub modules: String,
    /// `_Derived_Handle`.
    pub handle: String,
    /// `_Derived_HandleStacks`.
    pub stacks: String,
}

impl Default for ForeignMembers {
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

impl ForeignMembers {
    /// Returns names and contents for an extract called `base`.
    #[must_use]
    pub fn named(&self, base: &str) -> Vec<(String, Vec<u8>)> {
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

    /// Writes an archive of an extract called `base`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn pack(&self, path: &Path, base: &str) {
        pack(path, &self.named(base));
    }
}

/// Writes an archive of uncompressed members.
///
/// # Panics
/// If it cannot be written.
pub fn pack(path: &Path, members: &[(String, Vec<u8>)]) {
    pack_with(path, members, EncoderMethod::COPY);
}

/// Writes an archive of members compressed with a method.
///
/// # Panics
/// If it cannot be written.
pub fn pack_with(path: &Path, members: &[(String, Vec<u8>)], method: EncoderMethod) {
    let mut archive = ArchiveWriter::new(fs::File::create(path).unwrap()).unwrap();
    archive.set_content_methods(vec![EncoderConfiguration::new(method)]);
    for (name, content) in members {
        let entry = ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(content.as_slice())).unwrap();
    }
    archive.finish().unwrap();
}

/// Returns the JSON members of an archive; ETWAnalyzer reads nothing else.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn json_members(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = ArchiveReader::open(archive, Password::empty()).unwrap();
    let mut members = Vec::new();
    archive
        .for_each_entries(|entry, content| {
            if entry.name().ends_with(".json") {
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes)?;
                members.push((entry.name().to_owned(), bytes));
            }
            Ok(true)
        })
        .unwrap();
    members
}

/// Returns the message about a file that could not be loaded; checks that nothing was left behind.
///
/// # Panics
/// If it was loaded.
#[must_use]
pub fn refusal(shell: &Shell, file: &str) -> String {
    let ProgramRun { stderr, status, .. } = shell.run(&[file, "-c", ".list"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let cache = shell.path("cache/handlescope/Converted");
    let mut folders = fs::read_dir(cache).into_iter().flatten().flatten();
    let is_empty = |folder: fs::DirEntry| fs::read_dir(folder.path()).unwrap().next().is_none();
    assert!(folders.all(is_empty), "nothing is left behind: {stderr}");
    stderr
}
