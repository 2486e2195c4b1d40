//! Settings of a scenario.

use crate::header::HeaderKind;

/// How the stacks of events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackMode {
    /// Kernel frames shortly after the event, user frames later, on the same processor.
    #[default]
    Fragments,
    /// Like `Fragments`, with the user frames on another processor.
    UserOn(u16),
    /// All frames in one stack walk event.
    Single,
    /// Both parts as keys.
    Keys,
    /// The kernel part as a key, the user part as frames.
    KernelKey,
}

/// Settings for the events added after them, or for the whole file.
#[derive(Debug, Clone)]
pub struct ScenarioConfig {
    pub header: HeaderKind,
    pub stack_mode: StackMode,
    pub user_stack_delay: i64,
    /// Kernel frames of closes at process exit, if events have stacks.
    pub sweep_stack: Vec<u64>,
    pub key_slots: usize,
    pub context_switches: bool,
    pub identities: bool,
    pub start_rundown: bool,
    pub end_rundown: bool,
    pub process_version: u8,
    pub image_version: u8,
    pub thread_names: bool,
    pub end: Option<i64>,
    pub noise: (usize, u64),
    pub build_string: String,
    pub product: String,
    pub computer: Option<String>,
    /// Pairs of NT prefix and DOS prefix.
    pub prefixes: Vec<(String, String)>,
}

impl Default for ScenarioConfig {
    fn default() -> Self {
        let prefixes = [
            (r"\??\", ""),
            (r"\Device\HarddiskVolume3\", r"C:\"),
            (r"\SystemRoot\", r"C:\Windows\"),
            (r"\Device\Mup\", r"\\"),
        ];
        Self {
            header: HeaderKind::Compact,
            stack_mode: StackMode::Fragments,
            user_stack_delay: 5_000,
            sweep_stack: vec![0xffff_f800_0000_5500, 0xffff_f800_0000_5600, 0xffff_f800_0000_5700],
            key_slots: 1024,
            context_switches: false,
            identities: true,
            start_rundown: false,
            end_rundown: true,
            process_version: 4,
            image_version: 3,
            thread_names: true,
            end: None,
            noise: (0, 0),
            build_string: "26100.4652.amd64fre.ge_release.240331-1435".into(),
            product: "Windows 11 Pro".into(),
            computer: None,
            prefixes: prefixes.map(|(nt, dos)| (nt.into(), dos.into())).into(),
        }
    }
}
