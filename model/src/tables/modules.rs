//! Modules (executables, DLLs, drivers), where they were mapped, and the path prefixes of the kernel with the form that
//! programs use.

use super::declare::table;
use crate::index::{ModuleIdx, ProcessIdx};

table! {
    /// Columns of the modules table: one row per file identity.
    Modules => Modules,
    /// One file that was mapped as an image.
    Module {
        /// Last part of the path.
        name: String,
        /// Path as the trace has it, mostly an NT path.
        path: String,
        /// Size of the mapping.
        ["bytes"] size: u64,
        /// PE time stamp; null if no event has it.
        ["s since 1970"] timestamp: Option<u32>,
        /// PE checksum.
        checksum: u32,
        /// PDB file name from the RSDS record.
        pdb_name: Option<String>,
        /// PDB GUID, lower case with dashes.
        pdb_guid: Option<String>,
        /// PDB age.
        pdb_age: Option<u32>,
        /// File version from the version resource.
        file_version: Option<String>,
        /// Original file name from the version resource.
        original_name: Option<String>,
        /// Product from the version resource.
        product_name: Option<String>,
        /// Description of the file, from the version resource.
        description: Option<String>,
        /// Company from the version resource.
        company: Option<String>,
    }
}

table! {
    /// Columns of the module loads table.
    ModuleLoads => ModuleLoads,
    /// One module mapped into one process for some time.
    ModuleLoad {
        /// The module.
        module: ModuleIdx,
        /// Process id as in the event; 0 for kernel modules, which every process has.
        pid: u32,
        /// The process.
        process: Option<ProcessIdx>,
        /// First address; null if the source lacks it.
        ["hex"] base: Option<u64>,
        /// Load; null if it was loaded before the trace.
        ["ns since session start"] load_ns: Option<i64>,
        /// Unload; null if it stayed loaded.
        ["ns since session start"] unload_ns: Option<i64>,
    }
}

table! {
    /// Columns of the volumes table.
    Volumes => Volumes,
    /// A beginning of paths.
    Volume {
        /// Prefix as written by the kernel: \Device\HarddiskVolume3\.
        nt_prefix: String,
        /// Prefix as written by programs: C:\; may be empty.
        dos_prefix: String,
    }
}
