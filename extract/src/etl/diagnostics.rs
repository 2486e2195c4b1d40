//! What was lost, damaged or left out: counted by kind, with the place of the first.

use std::collections::BTreeMap;

/// Kinds of damage, loss and omission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningKind {
    /// The last buffer is cut; its complete events were read.
    TruncatedBuffer,
    /// A buffer header that makes no sense; the reader went on at the next buffer.
    BadBuffer,
    /// The rest of a compressed file after a buffer header that makes no sense.
    UnreadableRest,
    /// A buffer of zeros in a file that was not preallocated.
    EmptyBuffer,
    /// A buffer type that holds no events this program reads.
    UnknownBufferType,
    /// A compressed buffer that does not expand as it should; its complete events were read.
    BadCompression,
    /// An event that cannot be framed; the rest of its buffer was left out.
    BadEvent,
    /// An event older than one that was read before it.
    OutOfOrder,
    /// Buffers overlap in time so widely that they could not all be merged.
    MergeOverflow,
    /// Fewer buffers in the file than the session wrote.
    MissingBuffers,
    /// The session was never closed, so its end is unknown.
    NotClosed,
    /// A payload shorter than its event needs.
    ShortPayload,
    /// A buffer marked as having lost events.
    LossFlag,
    /// A record of lost events.
    LossRecord,
    /// Stacks of a key whose frames were never written.
    UnresolvedStackKey,
    /// A stack that belongs to a later event than any in the file.
    StackFromFuture,
    /// Events of pid 0.
    PidZero,
    /// Events of a process that is not known, with no System process to take them.
    UnknownProcess,
    /// A close whose object was never seen.
    CloseWithoutObject,
    /// A delete whose object was never seen or already complete.
    DeleteWithoutObject,
    /// A reference change whose object was never seen or already complete.
    ReferenceWithoutObject,
    /// An unmap without its map.
    UnmapWithoutMap,
    /// Image identity records without their image event.
    IdentityWithoutImage,
}

impl WarningKind {
    /// The kind in words, as it is stored and printed.
    pub fn text(self) -> &'static str {
        match self {
            Self::TruncatedBuffer => "truncated buffer",
            Self::BadBuffer => "bad buffer",
            Self::UnreadableRest => "unreadable rest of file",
            Self::EmptyBuffer => "empty buffer",
            Self::UnknownBufferType => "buffer of unknown type",
            Self::BadCompression => "badly compressed buffer",
            Self::BadEvent => "bad event, rest of buffer left out",
            Self::OutOfOrder => "event out of order",
            Self::MergeOverflow => "too many overlapping buffers",
            Self::MissingBuffers => "missing buffers",
            Self::NotClosed => "session was not closed",
            Self::ShortPayload => "undecodable event",
            Self::LossFlag => "buffer marked with loss",
            Self::LossRecord => "record of lost events",
            Self::UnresolvedStackKey => "stack key without frames",
            Self::StackFromFuture => "stack of an unknown event",
            Self::PidZero => "handle event of pid 0",
            Self::UnknownProcess => "handle event of an unknown process",
            Self::CloseWithoutObject => "close of a handle opened before the trace",
            Self::DeleteWithoutObject => "delete of an unknown object",
            Self::ReferenceWithoutObject => "reference change of an unknown object",
            Self::UnmapWithoutMap => "unmap of a view mapped before the trace",
            Self::IdentityWithoutImage => "image identity without image",
        }
    }
}

/// How often something happened, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// File offset of the first, where it has one.
    pub first_offset: Option<u64>,
}

/// Everything worth a warning in one trace.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    findings: BTreeMap<WarningKind, Finding>,
}

impl Diagnostics {
    /// Counts one more.
    pub fn count(&mut self, kind: WarningKind, offset: Option<u64>) {
        self.add(kind, 1, offset);
    }

    /// Counts several at once; zero is not a finding.
    pub fn add(&mut self, kind: WarningKind, count: u64, offset: Option<u64>) {
        if count == 0 {
            return;
        }
        let finding =
            self.findings.entry(kind).or_insert(Finding { count: 0, first_offset: offset });
        finding.count += count;
        finding.first_offset = match (finding.first_offset, offset) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Takes over what another collection found.
    pub fn merge(&mut self, other: &Self) {
        for (kind, finding) in other.iter() {
            self.add(kind, finding.count, finding.first_offset);
        }
    }

    /// The findings, in a fixed order of kinds.
    pub fn iter(&self) -> impl Iterator<Item = (WarningKind, Finding)> + '_ {
        self.findings.iter().map(|(kind, finding)| (*kind, *finding))
    }

    /// How often a kind was found.
    pub fn of(&self, kind: WarningKind) -> u64 {
        self.findings.get(&kind).map_or(0, |finding| finding.count)
    }
}
