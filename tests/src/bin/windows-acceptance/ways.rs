//! Ways to record, each as a user would.

/// A way to record.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The name, also used in file names.
    pub name: &'static str,
    pub tool: Tool,
    /// Options of the tool.
    pub options: &'static [&'static str],
}

/// Program that records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
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
pub const WAYS: [Way; 13] = [
    Way { name: "record", tool: Tool::Record, options: &[] },
    Way {
        name: "record-mappings-virtual-alloc",
        tool: Tool::Record,
        options: &["--mappings", "--virtual-alloc"],
    },
    Way { name: "record-ring", tool: Tool::Record, options: &["--ring"] },
    Way { name: "record-types", tool: Tool::Record, options: &["--type", "Event;File;Key;Thread"] },
    Way { name: "wpr-handle", tool: Tool::Wpr, options: &["Handle"] },
    Way { name: "wprp", tool: Tool::Profile, options: &[] },
    Way { name: "wprp-references", tool: Tool::Profile, options: &["--references"] },
    Way { name: "wprp-mappings", tool: Tool::Profile, options: &["--mappings"] },
    Way { name: "wprp-virtual-alloc", tool: Tool::Profile, options: &["--virtual-alloc"] },
    Way { name: "wprp-drop-close-stacks", tool: Tool::Profile, options: &["--drop-close-stacks"] },
    Way { name: "wprp-heap", tool: Tool::Profile, options: &["--heap-pids", PID] },
    Way { name: "wprp-gdi-user", tool: Tool::Profile, options: &["--gdi-user"] },
    Way { name: "wprp-clr", tool: Tool::Profile, options: &["--clr"] },
];

impl Way {
    /// Returns the options for a process id.
    pub fn options(&self, pid: u32) -> Vec<String> {
        self.options
            .iter()
            .map(|word| if *word == PID { pid.to_string() } else { (*word).to_owned() })
            .collect()
    }
}
