//! How much was acquired and how much of it leaked.

/// A number of allocations and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Allocations, each counted once however many parts it has.
    pub count: u64,
    /// Bytes of all parts.
    pub bytes: i64,
}

impl Amount {
    /// Adds another amount.
    pub fn add(&mut self, amount: Self) {
        self.count += amount.count;
        self.bytes = self.bytes.saturating_add(amount.bytes);
    }
}

/// Numbers of handles or allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number that nothing closed or freed.
    pub leaked: u64,
    /// Number that only process exit closed or freed.
    pub closed_at_exit: u64,
    /// Number opened or allocated.
    pub opened: u64,
}

/// Bytes of allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ByteAmounts {
    /// Bytes that were never freed.
    pub unreleased: i64,
    /// Bytes that were allocated, including those freed since.
    pub allocated: i64,
    /// Bytes leaked per minute, for a suspect that grows steadily.
    pub per_minute: Option<f64>,
}

impl ByteAmounts {
    /// Adds the bytes of another process.
    pub fn add(&mut self, bytes: Self) {
        self.unreleased = self.unreleased.saturating_add(bytes.unreleased);
        self.allocated = self.allocated.saturating_add(bytes.allocated);
    }
}

impl Counts {
    /// Adds the counts of another process.
    pub fn add(&mut self, counts: Self) {
        self.leaked += counts.leaked;
        self.closed_at_exit += counts.closed_at_exit;
        self.opened += counts.opened;
    }

    /// Returns the number that the program did not close or free.
    pub fn unreleased(&self) -> u64 {
        self.leaked + self.closed_at_exit
    }
}
