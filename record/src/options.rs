//! Options of a recording.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::{
    error::{MAX_KIB, MIN_BUFFERS, MIN_KIB, OptionError},
    family::{
        Family, HANDLE_CLOSE, HANDLES, IMAGES, MAPPINGS, PROCESSES, REFERENCES, StackEvent,
        VIRTUAL_ALLOC,
    },
    object_type::ObjectTypes,
};

/// The events to record; processes, images and handles are always recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// Also record every change of a reference count.
    pub references: bool,
    /// Also record file mappings.
    pub mappings: bool,
    /// Also record VirtualAlloc and VirtualFree.
    pub virtual_alloc: bool,
    /// Leave out the stacks of closes.
    pub drop_close_stacks: bool,
}

impl Events {
    /// Iterates over the families in the order in which they are written everywhere.
    pub fn families(self) -> impl Iterator<Item = &'static Family> {
        let families = [
            (true, &PROCESSES),
            (true, &IMAGES),
            (true, &HANDLES),
            (self.references, &REFERENCES),
            (self.mappings, &MAPPINGS),
            (self.virtual_alloc, &VIRTUAL_ALLOC),
        ];
        families.into_iter().filter_map(|(is_recorded, family)| is_recorded.then_some(family))
    }

    /// Iterates over the events whose stacks are recorded.
    pub fn stacks(self) -> impl Iterator<Item = StackEvent> {
        let stacks = self.families().flat_map(|family| family.stacks.iter().copied());
        stacks.filter(move |event| !self.drop_close_stacks || *event != HANDLE_CLOSE)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSize {
    kib: u32,
}

impl BufferSize {
    /// Creates a size from bytes.
    ///
    /// # Errors
    /// If it is less than 4 KiB, more than 16 MiB, or not a whole number of KiB.
    pub fn new(bytes: u64) -> Result<BufferSize, OptionError> {
        let kib = u32::try_from(bytes / 1024).ok().filter(|_| bytes.is_multiple_of(1024));
        let kib = kib.filter(|kib| (MIN_KIB..=MAX_KIB).contains(kib));
        kib.map(|kib| BufferSize { kib }).ok_or(OptionError::BufferSize { bytes })
    }

    /// Returns the size in KiB.
    pub fn kib(self) -> u32 {
        self.kib
    }
}

impl Default for BufferSize {
    /// The buffer size that MSO uses for kernel events.
    fn default() -> BufferSize {
        BufferSize { kib: 1024 }
    }
}

/// The number of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferCount(u32);

impl BufferCount {
    /// Number of buffers of a kernel session (MSO, `Handles.wprp`).
    pub const KERNEL: BufferCount = BufferCount(256);

    /// Creates a buffer count.
    ///
    /// # Errors
    /// If it is less than two.
    pub fn new(count: u32) -> Result<BufferCount, OptionError> {
        match count {
            MIN_BUFFERS.. => Ok(BufferCount(count)),
            _ => Err(OptionError::BufferCount { count }),
        }
    }

    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for BufferCount {
    fn default() -> BufferCount {
        BufferCount::KERNEL
    }
}

/// Where the events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file that grows until the recording ends.
    File(PathBuf),
    /// Buffers in memory, the oldest of which is overwritten; they are written to a file when the recording ends.
    Ring(PathBuf),
    /// A program that reads the events as they come.
    RealTime,
}

impl Target {
    /// Returns the resulting file; for events read in real time, one that other tools could write.
    pub fn file(&self) -> &Path {
        match self {
            Target::File(path) | Target::Ring(path) => path,
            Target::RealTime => Path::new("handles.etl"),
        }
    }
}

/// A condition that ends a recording automatically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopCondition {
    /// The processes to watch, in the filter language.
    pub processes: String,
    /// The recording ends when one of the processes has more outstanding handles than this.
    pub handles_above: u64,
}

/// A whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordOptions {
    pub events: Events,
    /// The object types whose handles are recorded; empty for all types.
    pub types: ObjectTypes,
    /// Whether to record the names of .NET methods, too.
    pub dot_net: bool,
    pub buffer_size: BufferSize,
    pub buffers: BufferCount,
    pub target: Target,
    /// How long to record; `None` for no limit.
    pub duration: Option<Duration>,
    /// The recording ends when one of these holds.
    pub stop_when: Vec<StopCondition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_4_kib_to_16_mib_in_whole_kib() {
        for (bytes, expected) in [
            (4 << 10, Some(4)),
            (1 << 20, Some(1024)),
            (16 << 20, Some(16384)),
            (0, None),
            (4095, None),
            (3 << 10, None),
            (5000, None),
            ((16 << 20) + 1024, None),
            (u64::MAX, None),
        ] {
            let expected = expected.ok_or(OptionError::BufferSize { bytes });
            assert_eq!(BufferSize::new(bytes).map(BufferSize::kib), expected, "{bytes}");
        }
    }

    #[test]
    fn there_are_two_buffers_at_least() {
        assert_eq!(BufferCount::new(1), Err(OptionError::BufferCount { count: 1 }));
        assert_eq!(BufferCount::new(2).map(BufferCount::get), Ok(2));
    }
}
