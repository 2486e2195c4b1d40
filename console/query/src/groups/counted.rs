//! A handle or view as it counts: small, because there may be tens of millions.

use handlescope_model::{AcquisitionIdx, EventIdx, ObjectIdx};

/// Compact form of a handle or view, 12 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    /// Object of the handle.
    pub object: ObjectIdx,
    /// Its row; of an object without any the event that created it, or that of no row.
    pub row: AcquisitionIdx,
    pub flags: u16,
}

impl Handle {
    pub const CREATED: u16 = 1;
    pub const DUPLICATED: u16 = 1 << 1;
    pub const MAPPED: u16 = 1 << 2;
    pub const CLOSED: u16 = 1 << 3;
    pub const UNMAPPED: u16 = 1 << 4;
    pub const LEAKED: u16 = 1 << 5;
    pub const AT_EXIT: u16 = 1 << 6;
    pub const OPEN_AT_END: u16 = 1 << 7;
    pub const BARE: u16 = 1 << 8;
    /// Flag of a handle of which only its close by the end of the process counts.
    pub const BESIDE: u16 = 1 << 9;
    /// The trace lost its close.
    pub const UNSEEN: u16 = 1 << 10;
    /// An event that is left opened it.
    const OPENED: u16 = Self::CREATED | Self::DUPLICATED | Self::MAPPED;
    /// An event that is left closed it.
    const ENDED: u16 = Self::CLOSED | Self::UNMAPPED;

    /// An object without handles and views.
    pub fn bare(object: ObjectIdx, created: Option<EventIdx>) -> Self {
        let row = created.map_or(AcquisitionIdx::NONE, |event| AcquisitionIdx(event.0));
        Self { object, row, flags: Self::BARE }
    }

    /// One without events.
    #[cfg(test)]
    pub fn with_flags(object: u32, flags: u16) -> Self {
        Self { object: ObjectIdx(object), row: AcquisitionIdx::NONE, flags }
    }

    /// Whether any of these flags is set.
    pub fn has(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Whether an event that is left opened it, and it counts.
    pub fn is_opened(self) -> bool {
        self.has(Self::OPENED) && !self.has(Self::BESIDE)
    }

    /// Whether it is not a handle or view, but an object without any.
    pub fn is_bare(self) -> bool {
        self.has(Self::BARE)
    }

    /// Whether nothing closed it, or only the end of its process.
    pub fn is_unreleased(self) -> bool {
        self.has(Self::LEAKED | Self::AT_EXIT)
    }

    /// Whether its opening and its close are events that count.
    pub fn events(self) -> (bool, bool) {
        (self.has(Self::OPENED), self.has(Self::ENDED))
    }
}
