//! What Windows takes.

/// Places of the kernel's filter of object types (etwcontroller).
pub(crate) const MOST_TYPES: usize = 4;

/// The size of a buffer in KiB (learn, `EVENT_TRACE_PROPERTIES`); before Windows 8 the most is 1024.
pub(crate) const LEAST_KIB: u32 = 4;
pub(crate) const MOST_KIB: u32 = 16384;

/// Windows takes two buffers for each processor (learn, `EVENT_TRACE_PROPERTIES`), however few are asked for.
pub(crate) const LEAST_BUFFERS: u32 = 2;
