//! The process of a dump and the system it ran on, as far as the dump has them.

use handlescope_extract::etl::Diagnostics;
use minidump_common::format::{
    MINIDUMP_MEMORY_DESCRIPTOR, MINIDUMP_MEMORY_DESCRIPTOR64, MINIDUMP_MISC_INFO,
    MINIDUMP_MISC_INFO_3, MINIDUMP_MISC_INFO_4, MINIDUMP_STREAM_TYPE, MINIDUMP_SYSTEM_INFO,
    MINIDUMP_THREAD, MiscInfoFlags, PlatformId, ProcessorArchitecture,
};
use scroll::{LE, Pread};

use super::container::{Minidump, utf16};

/// Ranges of memory that are looked through. A process of some gigabytes has some thousand.
const MAX_RANGES: usize = 1 << 20;

/// Bytes of MINIDUMP_THREAD, MINIDUMP_MEMORY_DESCRIPTOR and MINIDUMP_MEMORY_DESCRIPTOR64.
const THREAD_BYTES: usize = 48;
const RANGE_BYTES: usize = 16;

/// Characters of a command line: Windows cuts those in its events, too.
const MAX_COMMAND_LINE: usize = 1024;

/// Properties of the process and of the system.
#[derive(Debug, Default)]
pub struct ProcessFacts {
    pub pid: Option<u32>,
    /// Empty where the dump has not the memory that it lies in.
    pub command_line: String,
    /// Empty where the dump does not say.
    pub os_version: String,
    /// 0 where the dump does not say.
    pub os_build: u32,
    /// The system, if it is not Windows.
    pub other_system: Option<&'static str>,
    pub os_build_string: Option<String>,
    pub cpu_count: u32,
    /// Bytes; 0 where it is not known.
    pub pointer_size: u32,
    /// UTC = local time + bias.
    pub tz_bias_minutes: i32,
    /// Local time minus UTC when the dump was written.
    pub utc_offset_minutes: i32,
    /// Whether the dump has these two.
    pub has_zone: bool,
}

/// Systems of `MINIDUMP_SYSTEM_INFO::PlatformId` beside those of Windows, as Breakpad defines them.
const OTHER_SYSTEMS: [(PlatformId, &str); 6] = [
    (PlatformId::Unix, "Unix"),
    (PlatformId::MacOs, "macOS"),
    (PlatformId::Ios, "iOS"),
    (PlatformId::Linux, "Linux"),
    (PlatformId::Solaris, "Solaris"),
    (PlatformId::Android, "Android"),
];

impl ProcessFacts {
    pub fn new(dump: &Minidump<'_>, findings: &mut Diagnostics) -> Self {
        let mut facts = Self::default();
        facts.add_system(dump, findings);
        facts.add_misc(dump, findings);
        facts.command_line = command_line(dump, facts.pointer_size).unwrap_or_default();
        facts
    }

    /// The bits of its addresses and handles: some writers extend those of 32-bit processes by their sign.
    pub fn mask(&self) -> u64 {
        if self.pointer_size == 4 { u32::MAX.into() } else { u64::MAX }
    }

    fn add_system(&mut self, dump: &Minidump<'_>, findings: &mut Diagnostics) {
        let stream = dump.stream(MINIDUMP_STREAM_TYPE::SystemInfoStream, findings);
        let info = stream.and_then(|stream| stream.read::<MINIDUMP_SYSTEM_INFO>(0));
        let Some(info) = info else { return };
        let mut others = OTHER_SYSTEMS.iter();
        let other = others.find(|(platform, _)| info.platform_id == *platform as u32);
        self.other_system = other.map(|(_, name)| *name);
        // Writers of other systems leave these at 0, and their name and version in a text.
        if info.major_version != 0 || info.minor_version != 0 {
            self.os_version = format!("{}.{}", info.major_version, info.minor_version);
        }
        self.os_build = info.build_number;
        self.cpu_count = info.number_of_processors.into();
        let is = |architecture: ProcessorArchitecture| {
            info.processor_architecture == architecture as u16
        };
        self.pointer_size = if is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_AMD64)
            || is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_ARM64)
            || is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_IA64)
        {
            8
        } else if is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_INTEL)
            || is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_ARM)
            || is(ProcessorArchitecture::PROCESSOR_ARCHITECTURE_IA32_ON_WIN64)
        {
            4
        } else {
            0
        };
    }

    fn add_misc(&mut self, dump: &Minidump<'_>, findings: &mut Diagnostics) {
        let stream = dump.stream(MINIDUMP_STREAM_TYPE::MiscInfoStream, findings);
        let info = stream.and_then(|stream| Some((stream, stream.read::<MINIDUMP_MISC_INFO>(0)?)));
        let Some((stream, info)) = info else { return };
        let has = |flag: MiscInfoFlags| info.flags1 & flag.bits() != 0;
        if has(MiscInfoFlags::MINIDUMP_MISC1_PROCESS_ID) {
            self.pid = Some(info.process_id);
        }
        let zone = stream.read::<MINIDUMP_MISC_INFO_3>(0);
        if let Some(info) = zone.filter(|_| has(MiscInfoFlags::MINIDUMP_MISC3_TIMEZONE)) {
            let seasonal = match info.time_zone_id {
                1 => info.time_zone.standard_bias,
                2 => info.time_zone.daylight_bias,
                _ => 0,
            };
            self.has_zone = true;
            self.tz_bias_minutes = info.time_zone.bias;
            self.utc_offset_minutes = info.time_zone.bias.saturating_add(seasonal).saturating_neg();
        }
        let build = stream.read::<MINIDUMP_MISC_INFO_4>(0);
        if let Some(info) = build.filter(|_| has(MiscInfoFlags::MINIDUMP_MISC4_BUILDSTRING)) {
            let units = info.build_string.into_iter().take_while(|unit| *unit != 0);
            let text = String::from_utf16_lossy(&units.collect::<Vec<_>>());
            self.os_build_string = Some(text).filter(|text| !text.is_empty());
        }
    }
}

/// Places in structures of a process, which depend on its pointers.
struct ProcessLayout {
    pointer: usize,
    /// ProcessEnvironmentBlock in TEB.
    peb: u64,
    /// ProcessParameters in PEB.
    parameters: u64,
    /// CommandLine in RTL_USER_PROCESS_PARAMETERS.
    command_line: u64,
}

const LAYOUT_32: ProcessLayout =
    ProcessLayout { pointer: 4, peb: 0x30, parameters: 0x10, command_line: 0x40 };
const LAYOUT_64: ProcessLayout =
    ProcessLayout { pointer: 8, peb: 0x60, parameters: 0x20, command_line: 0x70 };

/// The command line, by way of the first thread's environment block: thread → process → its parameters.
fn command_line(dump: &Minidump<'_>, pointer_size: u32) -> Option<String> {
    let layout = if pointer_size == 4 { LAYOUT_32 } else { LAYOUT_64 };
    let threads =
        dump.stream(MINIDUMP_STREAM_TYPE::ThreadListStream, &mut Diagnostics::default())?;
    let (first, _) = threads.list(THREAD_BYTES)?;
    let thread: MINIDUMP_THREAD = threads.read(first)?;
    let memory = ProcessMemory::new(dump)?;
    let pointer = |address: u64| memory.pointer(address, layout.pointer);
    let process = pointer(thread.teb.checked_add(layout.peb)?)?;
    let parameters = pointer(process.checked_add(layout.parameters)?)?;
    let text = parameters.checked_add(layout.command_line)?;
    let length = memory.at(text, 2)?.pread_with::<u16>(0, LE).ok()?;
    let buffer = pointer(text.checked_add(layout.pointer as u64)?)?;
    let text = utf16(memory.at(buffer, length.into())?);
    Some(text.chars().take(MAX_COMMAND_LINE).collect())
}

/// The memory of the process, of which only the ranges are read.
struct ProcessMemory<'d> {
    dump: &'d Minidump<'d>,
    /// First address, bytes, and place in the file, ascending.
    ranges: Vec<(u64, u64, u64)>,
}

impl<'d> ProcessMemory<'d> {
    fn new(dump: &'d Minidump<'d>) -> Option<Self> {
        let mut ranges = Vec::new();
        let mut unused = Diagnostics::default();
        let full = dump.stream(MINIDUMP_STREAM_TYPE::Memory64ListStream, &mut unused);
        if let Some(stream) = full {
            let mut place = stream.read::<u64>(8)?;
            let entries = stream.bytes.get(16..)?.chunks_exact(RANGE_BYTES).take(MAX_RANGES);
            for entry in entries {
                let range: MINIDUMP_MEMORY_DESCRIPTOR64 = entry.pread_with(0, LE).ok()?;
                ranges.push((range.start_of_memory_range, range.data_size, place));
                place = place.checked_add(range.data_size)?;
            }
        } else {
            let stream = dump.stream(MINIDUMP_STREAM_TYPE::MemoryListStream, &mut unused)?;
            let (start, _) = stream.list(RANGE_BYTES)?;
            for entry in stream.bytes.get(start..)?.chunks_exact(RANGE_BYTES).take(MAX_RANGES) {
                let range: MINIDUMP_MEMORY_DESCRIPTOR = entry.pread_with(0, LE).ok()?;
                let memory = range.memory;
                let (size, place) = (memory.data_size.into(), memory.rva.into());
                ranges.push((range.start_of_memory_range, size, place));
            }
        }
        ranges.sort_unstable();
        Some(Self { dump, ranges })
    }

    /// Some bytes at an address, if one range has them.
    fn at(&self, address: u64, length: u64) -> Option<&'d [u8]> {
        let below = self.ranges.partition_point(|(start, ..)| *start <= address);
        let (start, size, place) = *self.ranges.get(..below)?.last()?;
        let offset = address - start;
        (offset.checked_add(length)? <= size)
            .then(|| self.dump.slice(place.checked_add(offset)?, length))?
    }

    fn pointer(&self, address: u64, size: usize) -> Option<u64> {
        let bytes = self.at(address, size as u64)?;
        let pointer = match size {
            4 => u64::from(bytes.pread_with::<u32>(0, LE).ok()?),
            _ => bytes.pread_with::<u64>(0, LE).ok()?,
        };
        (pointer != 0).then_some(pointer)
    }
}
