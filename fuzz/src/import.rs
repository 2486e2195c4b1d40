//! What is done with any bytes as an extract of ETWAnalyzer: it is converted.
//!
//! Input that starts like an archive is one; everything else is the handle part, or, after a line
//! `main`, `modules` or `stacks`, that part of an extract whose other parts are sound.

use std::fs;

use handlescope_extract::NoObserver;
use handlescope_model::{Cancel, ContainerLimits};
use handlescope_sources::{ImportLimits, import};

const MAIN: &[u8] = br#"{"SessionStart":"2024-05-10T12:46:34+02:00","Processes":[{"ProcessID":4},{"ProcessID":8}]}"#;
const STACKS: &[u8] = br#"{"StackList":["","a.exe!F\r\nb.dll+0x12\r\n"]}"#;
const HANDLE: &[u8] = br#"{"ObjectReferences":[{"HandleCreateEvents":[{"StackIdx":1}]}]}"#;

/// Converts an extract that is made of these bytes; says whether it could be.
pub fn convert(bytes: &[u8]) -> bool {
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
        write("a_Derived_Handle.json", HANDLE);
        write(&format!("{part}.json"), content);
        "a.json"
    };
    let limits = ImportLimits {
        container: ContainerLimits {
            decoder_bytes: 64 << 20,
            ..ContainerLimits::for_members_of(16 << 20)
        },
        string_bytes: 1 << 20,
        ..ImportLimits::default()
    };
    let output = folder.path().join("out.json7z");
    let converted =
        import(&folder.path().join(input), &output, limits, &NoObserver, &Cancel::default());
    assert_eq!(converted.is_ok(), output.exists());
    converted.is_ok()
}
