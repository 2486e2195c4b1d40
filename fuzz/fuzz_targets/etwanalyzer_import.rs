//! No extract of ETWAnalyzer, however damaged or malicious, makes the import panic, hang or take all
//! memory.
//!
//! Input that starts like an archive is one; everything else is the handle part, or, after a line
//! `main`, `modules` or `stacks`, that part of an extract whose other parts are sound. Good seeds are
//! `.json7z` files and their members.

#![no_main]

use std::fs;

use handlescope_extract::{ImportLimits, NoObserver, import};
use libfuzzer_sys::fuzz_target;

const MAIN: &[u8] = br#"{"SessionStart":"2024-05-10T12:46:34+02:00","Processes":[{"ProcessID":4},{"ProcessID":8}]}"#;
const STACKS: &[u8] = br#"{"StackList":["","a.exe!F\r\nb.dll+0x12\r\n"]}"#;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).expect("a file");
    };
    let input = if bytes.starts_with(b"7z\xBC\xAF\x27\x1C") {
        write("a.json7z", bytes);
        "a.json7z"
    } else {
        let parts = [
            ("main\n", "a"),
            ("modules\n", "a_Derived_Modules"),
            ("stacks\n", "a_Derived_HandleStacks"),
        ];
        let part = parts
            .iter()
            .find_map(|(line, part)| Some((*part, bytes.strip_prefix(line.as_bytes())?)));
        let (part, content) = part.unwrap_or(("a_Derived_Handle", bytes));
        write("a.json", MAIN);
        write("a_Derived_HandleStacks.json", STACKS);
        write(
            "a_Derived_Handle.json",
            br#"{"ObjectReferences":[{"HandleCreateEvents":[{"StackIdx":1}]}]}"#,
        );
        write(&format!("{part}.json"), content);
        "a.json"
    };
    let limits = ImportLimits {
        member_bytes: 16 << 20,
        total_bytes: 32 << 20,
        decoder_bytes: 64 << 20,
        string_bytes: 1 << 20,
        ..ImportLimits::default()
    };
    let output = folder.path().join("out.json7z");
    let _ = import(&folder.path().join(input), &output, limits, &NoObserver);
});
