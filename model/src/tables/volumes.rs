//! How paths of the kernel begin, and how programs write that.

use super::declare::table;

table! {
    /// Columns of the volumes table.
    Volumes => Volumes,
    /// A beginning of paths.
    Volume {
        /// As the kernel writes it: \Device\HarddiskVolume3\.
        nt_prefix: String,
        /// As programs write it: C:\; may be empty.
        dos_prefix: String,
    }
}
