//! Text of WinDbg, cdb and kd with `!htrace` output.

mod answers;
mod files;
mod forms;
mod snapshots;

use std::fs;

use handlescope_tests::binary::Shell;
use serde_json::Value;

const QUESTION: &str = ".dump ObjectRef -ShowStack -json";

/// A session; the forms below are variants of it. It has an event that is closed and one that is not.
const SESSION: &str = "\
0:000> !htrace
--------------------------------------
Handle = 0x00000038 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca2e3c: ntdll!ZwCreateFile+0x0000000c
0x00ab158f: my_app!Cache::Open+0x0000016f
--------------------------------------
Handle = 0x00000034 - CLOSE
Thread ID = 0x000017f0, Process ID = 0x000017e8

0x77ca2e4c: ntdll!ZwClose+0x0000000c
--------------------------------------
Handle = 0x00000034 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca310c: ntdll!ZwCreateEvent+0x0000000c
--------------------------------------
Parsed 0x3 stack traces.
Dumped 0x3 stack traces.
0:000> q
";

/// Makes a folder with the text `session.log`.
fn with(text: impl AsRef<[u8]>) -> Shell {
    let shell = Shell::new();
    fs::write(shell.path("session.log"), text).unwrap();
    shell
}

/// Returns the program's answer about a text, and its messages.
fn answer(text: impl AsRef<[u8]>) -> (Value, String) {
    let run = with(text).run(&["session.log", "-c", QUESTION]).ok();
    (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
}

/// Returns kind, handle, pid, tid and frames of each event, by object. Frames are `module!function+offset`,
/// `module+rva` or an address.
fn events(answer: &Value) -> Vec<String> {
    let frame = |frame: &Value| {
        let text = |name: &str| frame[name].as_str().map(str::to_owned);
        let offset = frame["offset"].as_u64().map(|offset| format!("+0x{offset:X}"));
        match (text("module"), text("function"), text("rva")) {
            (Some(module), Some(function), _) => {
                format!("{module}!{function}{}", offset.unwrap_or_default())
            }
            (Some(module), None, Some(rva)) => format!("{module}+{rva}"),
            _ => text("address").unwrap_or_default(),
        }
    };
    let event = |event: &Value| {
        let frames = answer["stacks"][event["stack"].to_string()].as_array();
        let frames: Vec<String> = frames.into_iter().flatten().map(frame).collect();
        let (kind, handle) = (event["kind"].as_str().unwrap(), event["handle"].as_str().unwrap());
        let kind = kind.trim_start_matches("handle_");
        format!("{kind} {handle} {}/{} {}", event["pid"], event["tid"], frames.join(" "))
    };
    answer["objects"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|object| object["events"].as_array().unwrap().iter().map(event))
        .collect()
}

/// The events of [`SESSION`].
const EVENTS: [&str; 3] = [
    "create 0x34 6120/6124 ntdll!ZwCreateEvent+0xC",
    "close 0x34 6120/6128 ntdll!ZwClose+0xC",
    "create 0x38 6120/6124 ntdll!ZwCreateFile+0xC my_app!Cache::Open+0x16F",
];
