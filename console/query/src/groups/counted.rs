//! A handle or view for counting; kept small because there may be tens of millions.

use handlescope_model::{AcquisitionIdx, EventIdx, ObjectIdx};

/// Compact form of a handle or view, 12 bytes.
#[derive(Debug, Clone, Copy)]
pub struct CompactHandle {
    /// Object of the handle.
    pub object: ObjectIdx,
    /// Its row; for an object without handles, the event that created it or `AcquisitionIdx::NONE`.
    pub row: AcquisitionIdx,
    pub flags: u16,
}

impl CompactHandle {
    pub const CREATED: u16 = 1;
    pub const DUPLICATED: u16 = 1 << 1;
    pub const MAPPED: u16 = 1 << 2;
    pub const CLOSED: u16 = 1 << 3;
    pub const UNMAPPED: u16 = 1 << 4;
    pub const LEAKED: u16 = 1 << 5;
    pub const AT_EXIT: u16 = 1 << 6;
    pub const OPEN_AT_END: u16 = 1 << 7;
    pub const BARE: u16 = 1 << 8;
    /// Only its close by process exit counts.
    pub const BESIDE: u16 = 1 << 9;
    /// The trace lost its close.
    pub const UNSEEN: u16 = 1 << 10;
    /// A remaining event opened it.
    const OPENED: u16 = Self::CREATED | Self::DUPLICATED | Self::MAPPED;
    /// A remaining event closed it.
    const ENDED: u16 = Self::CLOSED | Self::UNMAPPED;

    /// Makes a placeholder for an object without handles and views.
    pub fn bare(object: ObjectIdx, created: Option<EventIdx>) -> Self {
        let row = created.map_or(AcquisitionIdx::NONE, |event| AcquisitionIdx(event.0));
        Self { object, row, flags: Self::BARE }
    }

    /// Makes a handle without events.
    #[cfg(test)]
    pub fn with_flags(object: u32, flags: u16) -> Self {
        Self { object: ObjectIdx(object), row: AcquisitionIdx::NONE, flags }
    }

    /// Whether any of these flags is set.
    pub fn has(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Whether a remaining event opened it and it counts.
    pub fn is_opened(self) -> bool {
        self.has(Self::OPENED) && !self.has(Self::BESIDE)
    }

    /// Whether it is a placeholder for an object without handles and views.
    pub fn is_bare(self) -> bool {
        self.has(Self::BARE)
    }

    /// Whether nothing closed it, or only process exit did.
    pub fn is_unreleased(self) -> bool {
        self.has(Self::LEAKED | Self::AT_EXIT)
    }

    /// Whether its opening and its close are events that count.
    pub fn events(self) -> (bool, bool) {
        (self.has(Self::OPENED), self.has(Self::ENDED))
    }
}
