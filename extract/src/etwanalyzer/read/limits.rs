//! How much of a file from elsewhere is believed.

use handlescope_model::ContainerLimits;

/// Largest member that is read. ETWAnalyzer itself cannot write 2 GiB.
const MEMBER_BYTES: u64 = 4 << 30;

/// What an extract may not exceed, so that a hostile one costs neither all memory nor all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportLimits {
    /// Sizes of members, and what unpacking them may cost.
    pub container: ContainerLimits,
    /// What the lists of records in memory may have, bytes, beside [`Self::record_bytes_per_byte`].
    pub record_bytes: u64,
    /// The same for each byte of the file.
    pub record_bytes_per_byte: u64,
    /// Longest string in a member, bytes.
    pub string_bytes: u64,
    /// Objects and lists within each other. ETWAnalyzer's have less than ten.
    pub depth: u32,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            container: ContainerLimits::for_members_of(MEMBER_BYTES),
            record_bytes: 128 << 20,
            record_bytes_per_byte: 32,
            string_bytes: 16 << 20,
            depth: 64,
        }
    }
}
