//! What a payload consists of, for a copy of a trace without texts.

/// A stretch of a payload, and whether it may hold text of the recording machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// So many bytes of numbers.
    Bytes(usize),
    /// So many pointers, or integers as wide.
    Pointers(usize),
    /// Addresses, up to a value that is none: an event whose size is damaged reaches into the next one.
    Addresses,
    /// So many bytes that the reader does not need.
    Unread(usize),
    /// The user of a process (TOKEN_USER).
    User,
    /// 8-bit text up to its terminator.
    Ansi,
    /// UTF-16 text up to its terminator.
    Utf16,
    /// UTF-16 text that is part of Windows, and says nothing of the machine.
    Public,
}
