//! How much of a file from elsewhere is believed.

/// What an extract may not exceed, so that a hostile one costs neither all memory nor all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportLimits {
    /// Size of one member, unpacked, bytes. ETWAnalyzer itself cannot write 2 GiB.
    pub member_bytes: u64,
    /// Bytes that may have to be unpacked in all, those of members nobody wants included.
    pub total_bytes: u64,
    /// Memory a decoder of the archive may ask for, bytes.
    pub decoder_bytes: u64,
    /// Longest string in a member, bytes.
    pub string_bytes: u64,
    /// Objects and lists within each other. ETWAnalyzer's have less than ten.
    pub depth: u32,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            member_bytes: 4 << 30,
            total_bytes: 16 << 30,
            decoder_bytes: 2 << 30,
            string_bytes: 16 << 20,
            depth: 64,
        }
    }
}
