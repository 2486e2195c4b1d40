//! Ways to record, each as a user would.

/// A way to record.
#[derive(Debug, Clone, Copy)]
pub struct RecordingWay {
    /// The name, also used in file names.
    pub name: &'static str,
    pub tool: RecordingTool,
    /// Options of the tool.
    pub options: &'static [&'static str],
}

/// Program that records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingTool {
    /// `handlescope record`
    Record,
    /// `wpr` with its own profile.
    Wpr,
    /// `wpr` with the profile of `handlescope wprp`.
    Profile,
}

/// Placeholder for the process id of the recorded program.
pub const PID: &str = "PID";

/// Every documented way, each option of the profile by itself.
pub const WAYS: [RecordingWay; 13] = [
    RecordingWay { name: "record", tool: RecordingTool::Record, options: &[] },
    RecordingWay {
        name: "record-mappings-virtual-alloc",
        tool: RecordingTool::Record,
        options: &["--mappings", "--virtual-alloc"],
    },
    RecordingWay { name: "record-ring", tool: RecordingTool::Record, options: &["--ring"] },
    RecordingWay {
        name: "record-types",
        tool: RecordingTool::Record,
        options: &["--type", "Event;File;Key;Thread"],
    },
    RecordingWay { name: "wpr-handle", tool: RecordingTool::Wpr, options: &["Handle"] },
    RecordingWay { name: "wprp", tool: RecordingTool::Profile, options: &[] },
    RecordingWay {
        name: "wprp-references",
        tool: RecordingTool::Profile,
        options: &["--references"],
    },
    RecordingWay { name: "wprp-mappings", tool: RecordingTool::Profile, options: &["--mappings"] },
    RecordingWay {
        name: "wprp-virtual-alloc",
        tool: RecordingTool::Profile,
        options: &["--virtual-alloc"],
    },
    RecordingWay {
        name: "wprp-drop-close-stacks",
        tool: RecordingTool::Profile,
        options: &["--drop-close-stacks"],
    },
    RecordingWay {
        name: "wprp-heap",
        tool: RecordingTool::Profile,
        options: &["--heap-pids", PID],
    },
    RecordingWay { name: "wprp-gdi-user", tool: RecordingTool::Profile, options: &["--gdi-user"] },
    RecordingWay { name: "wprp-clr", tool: RecordingTool::Profile, options: &["--clr"] },
];

impl RecordingWay {
    /// Returns the options for a process id.
    pub fn options(&self, pid: u32) -> Vec<String> {
        self.options
            .iter()
            .map(|word| if *word == PID { pid.to_string() } else { (*word).to_owned() })
            .collect()
    }
}
