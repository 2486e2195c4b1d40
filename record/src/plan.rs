//! The session that records: the arguments of `StartTrace` and `TraceSetInformation`.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::{
    dot_net::ProviderSession,
    family::{Guid, Mask, StackEvent},
    object_type::ObjectTypes,
    options::{RecordOptions, StopCondition, Target},
};

/// learn, `NT Kernel Logger Constants`.
const KERNEL_LOGGER: &str = "NT Kernel Logger";
const SYSTEM_TRACE_CONTROL: Guid = Guid(0x9e814aad_3204_11d2_9a82_006008a86939);

/// `Wnode.ClientContext`: times are ticks of the performance counter (learn, `WNODE_HEADER`).
const PERFORMANCE_COUNTER: u32 = 1;

/// Seconds after which even a partly filled buffer is written, so that events can be counted while they are recorded.
const FLUSH_SECONDS: u32 = 1;

/// learn, `Logging Mode Constants`.
const FILE: (&str, u32) = ("EVENT_TRACE_FILE_MODE_SEQUENTIAL", 0x1);
const REAL_TIME: (&str, u32) = ("EVENT_TRACE_REAL_TIME_MODE", 0x100);
const BUFFERING: (&str, u32) = ("EVENT_TRACE_BUFFERING_MODE", 0x400);

/// The configuration of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionPlan {
    /// The name of the session. Only one session has the kernel logger's name.
    pub logger: &'static str,
    pub logger_guid: Guid,
    /// The file to write, for a ring only at the end; `None` in real time.
    #[serde(serialize_with = "path_as_text")]
    pub log_file: Option<PathBuf>,
    /// `LogFileMode`
    pub log_file_mode: NamedBits,
    /// `Wnode.ClientContext`
    pub clock: u32,
    /// `BufferSize`, KiB.
    pub buffer_kib: u32,
    /// `MinimumBuffers`; Windows raises it to two per processor.
    pub minimum_buffers: u32,
    /// `MaximumBuffers`
    pub maximum_buffers: u32,
    /// `FlushTimer`, seconds; 0 for none.
    pub flush_seconds: u32,
    /// `EnableFlags`
    pub enable_flags: NamedBits,
    /// `TraceSystemTraceEnableFlagsInfo`, for `TraceSetInformation`. It includes the enable flags, because it replaces
    /// them.
    pub group_mask: GroupMask,
    /// `TraceStackTracingInfo`, for `TraceSetInformation`.
    pub stack_events: Vec<StackEvent>,
    /// `EventTraceObjectTypeFilterInformation`, for `NtSetSystemInformation` (ntwmi.h, etwcontroller); if empty, no
    /// filter is set.
    pub object_types: ObjectTypes,
    /// Sessions of providers that run beside it.
    pub provider_sessions: Vec<ProviderSession>,
    /// The session ends after this many seconds; `None` for no limit.
    pub duration_seconds: Option<f64>,
    /// The session ends when one of these holds.
    pub stop_when: Vec<StopCondition>,
}

/// Bits and their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NamedBits {
    /// All bits together.
    #[serde(serialize_with = "as_hex")]
    pub value: u32,
    /// The names of the bits that are set.
    pub names: Vec<&'static str>,
}

/// The eight masks of a `PERFINFO_GROUPMASK` (ntwmi.h).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GroupMask {
    #[serde(serialize_with = "each_as_hex")]
    pub masks: [u32; 8],
    /// The names of the groups that are set besides the enable flags.
    pub names: Vec<&'static str>,
}

impl NamedBits {
    fn new(flags: &[(&'static str, u32)]) -> NamedBits {
        let value = flags.iter().fold(0, |bits, (_, value)| bits | value);
        NamedBits { value, names: flags.iter().map(|(name, _)| *name).collect() }
    }
}

impl GroupMask {
    fn add(&mut self, mask: Mask) {
        if let Some(word) = self.masks.get_mut(mask.index()) {
            *word |= mask.bits();
        }
    }
}

impl SessionPlan {
    /// Plans the session for these options.
    pub fn new(options: &RecordOptions) -> SessionPlan {
        let (mode, log_file) = match &options.target {
            // Also in real time, so that events are counted while they are recorded.
            Target::File(path) => (&[FILE, REAL_TIME][..], Some(path)),
            Target::Ring(path) => (&[BUFFERING][..], Some(path)),
            Target::RealTime => (&[REAL_TIME][..], None),
        };
        let (mut enable_flags, mut group_mask) = (NamedBits::default(), GroupMask::default());
        for &mask in options.events.families().flat_map(|family| family.masks) {
            group_mask.add(mask);
            match mask.index() {
                0 => {
                    enable_flags.value |= mask.bits();
                    enable_flags.names.push(mask.name);
                }
                _ => group_mask.names.push(mask.name),
            }
        }
        SessionPlan {
            logger: KERNEL_LOGGER,
            logger_guid: SYSTEM_TRACE_CONTROL,
            log_file: log_file.cloned(),
            log_file_mode: NamedBits::new(mode),
            clock: PERFORMANCE_COUNTER,
            buffer_kib: options.buffer_size.kib(),
            minimum_buffers: options.buffers.get(),
            maximum_buffers: options.buffers.get(),
            // A ring is written only once, at the end.
            flush_seconds: if mode == [BUFFERING] { 0 } else { FLUSH_SECONDS },
            enable_flags,
            group_mask,
            stack_events: options.events.stacks().collect(),
            object_types: options.types.clone(),
            provider_sessions: if options.dot_net {
                ProviderSession::dot_net(mode == [BUFFERING]).cloned().collect()
            } else {
                Vec::new()
            },
            duration_seconds: options.duration.map(|duration| duration.as_secs_f64()),
            stop_when: options.stop_when.clone(),
        }
    }
}

impl SessionPlan {
    /// Whether events stay in memory and are written when the session ends.
    pub fn is_ring(&self) -> bool {
        self.log_file_mode.value == BUFFERING.1
    }
}

fn path_as_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn as_hex<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:#010x}"))
}

fn each_as_hex<S: Serializer>(masks: &[u32; 8], serializer: S) -> Result<S::Ok, S::Error> {
    masks.map(|mask| format!("{mask:#010x}")).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::{BufferCount, BufferSize, Events};

    fn options(events: Events) -> RecordOptions {
        RecordOptions {
            events,
            types: ObjectTypes::default(),
            dot_net: false,
            buffer_size: BufferSize::default(),
            buffers: BufferCount::default(),
            target: Target::File("a.etl".into()),
            duration: None,
            stop_when: Vec::new(),
        }
    }

    fn plan(events: Events) -> SessionPlan {
        SessionPlan::new(&options(events))
    }

    fn stacks(plan: &SessionPlan) -> Vec<(String, u8)> {
        plan.stack_events.iter().map(|event| (event.class.to_string(), event.opcode)).collect()
    }

    const OBJECT: &str = "89497f50-effe-4440-8cf2-ce6b1cdcaca7";

    #[test]
    fn handles_need_a_group_and_processes_and_images_are_flags() {
        let plan = plan(Events::default());
        assert_eq!(plan.enable_flags.value, 0x7);
        assert_eq!(plan.group_mask.masks, [0x7, 0, 0, 0, 0x40, 0, 0, 0]);
        assert_eq!(plan.group_mask.names, ["PERF_OB_HANDLE"]);
        let expected = [32, 33, 34].map(|opcode| (OBJECT.to_owned(), opcode));
        assert_eq!(stacks(&plan), expected);
    }

    #[test]
    fn each_further_family_adds_its_flag_or_group_and_its_stacks() {
        for (events, flags, group, added) in [
            (
                Events { references: true, ..Events::default() },
                0x7,
                0xC0,
                vec![(OBJECT, 48), (OBJECT, 49), (OBJECT, 50), (OBJECT, 51)],
            ),
            (
                Events { mappings: true, ..Events::default() },
                0x8007,
                0x40,
                [37, 38].map(|opcode| ("90cbdc39-4a3e-11d1-84f4-0000f80464e3", opcode)).to_vec(),
            ),
            (
                Events { virtual_alloc: true, ..Events::default() },
                0x4007,
                0x40,
                [98, 99].map(|opcode| ("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c", opcode)).to_vec(),
            ),
        ] {
            let plan = plan(events);
            assert_eq!(plan.enable_flags.value, flags, "{events:?}");
            assert_eq!(plan.group_mask.masks, [flags, 0, 0, 0, group, 0, 0, 0], "{events:?}");
            let added: Vec<_> =
                added.into_iter().map(|(class, id)| (class.to_owned(), id)).collect();
            assert_eq!(stacks(&plan)[3..], added, "{events:?}");
        }
    }

    #[test]
    fn without_stacks_of_closes_the_closes_are_recorded_all_the_same() {
        let plan = plan(Events { drop_close_stacks: true, ..Events::default() });
        assert_eq!(stacks(&plan), [32, 34].map(|opcode| (OBJECT.to_owned(), opcode)));
        assert_eq!(plan.group_mask.masks[4], 0x40);
    }

    #[test]
    fn a_file_a_ring_and_a_program_have_their_modes() {
        for (target, mode, file, flush) in [
            (Target::File("a.etl".into()), 0x101, Some("a.etl"), 1),
            (Target::Ring("a.etl".into()), 0x400, Some("a.etl"), 0),
            (Target::RealTime, 0x100, None, 1),
        ] {
            let plan = SessionPlan::new(&RecordOptions { target, ..options(Events::default()) });
            let mode_and_file = (plan.log_file_mode.value, plan.log_file, plan.flush_seconds);
            assert_eq!(mode_and_file, (mode, file.map(PathBuf::from), flush));
        }
    }

    #[test]
    fn names_of_dot_net_have_separate_sessions() {
        let options = RecordOptions { dot_net: true, ..options(Events::default()) };
        let sessions = SessionPlan::new(&options).provider_sessions;
        let providers: Vec<_> = sessions
            .iter()
            .map(|session| {
                (session.provider.name, session.provider.level, session.provider.keywords.value)
            })
            .collect();
        let expected = [
            ("Microsoft-Windows-DotNETRuntime", 5, 0x18),
            ("Microsoft-Windows-DotNETRuntimeRundown", 5, 0x138),
        ];
        assert_eq!(providers, expected);
        let ring = RecordOptions { target: Target::Ring("a.etl".into()), ..options };
        assert_eq!(SessionPlan::new(&ring).provider_sessions, sessions[1..]);
        assert!(plan(Events::default()).provider_sessions.is_empty());
    }

    #[test]
    fn buffers_types_and_ends_are_as_requested() {
        let stop = StopCondition { processes: "leaky".to_owned(), handles_above: 5000 };
        let plan = SessionPlan::new(&RecordOptions {
            types: ObjectTypes::parse("Event;Key").expect("types"),
            buffer_size: BufferSize::new(64 << 10).expect("a size"),
            buffers: BufferCount::new(300).expect("a number"),
            duration: Some(Duration::from_millis(1500)),
            stop_when: vec![stop.clone()],
            ..options(Events::default())
        });
        assert_eq!((plan.buffer_kib, plan.minimum_buffers, plan.maximum_buffers), (64, 300, 300));
        let filters: Vec<u32> = plan.object_types.iter().map(|kind| kind.filter()).collect();
        assert_eq!(filters, [0x6E65_7645, 0x2079_654B]);
        assert_eq!((plan.duration_seconds, plan.stop_when), (Some(1.5), vec![stop]));
    }
}
