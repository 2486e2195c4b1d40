//! Methods of managed code.

use super::declare::table;
use crate::index::{ModuleIdx, ProcessIdx};

table! {
    /// Columns of the methods table: methods of the .NET runtime, compiled at run time or before.
    Methods => Methods,
    /// A method.
    Method {
        /// File name of the assembly, as in `System.Core.dll`; null when nothing told it.
        module: Option<String>,
        /// Namespace and type, as in `System.Collections.Hashtable`; empty for global methods.
        type_name: String,
        /// Name, as in `Insert`.
        name: String,
        /// Signature in the notation of the runtime.
        signature: String,
        /// The native image its code lies in; null when it was compiled at run time.
        image: Option<ModuleIdx>,
        /// Offset of its code in that image.
        ["bytes"] rva: Option<u64>,
        /// The process its code is in; null for code in an image, which processes share.
        process: Option<ProcessIdx>,
        /// First address of code that was compiled at run time.
        address: Option<u64>,
        /// Size of the code.
        ["bytes"] size: u32,
        /// When code that was compiled at run time came; null when it was there before the trace.
        ["ns since session start"] load_ns: Option<i64>,
        /// When it went; null when it stayed.
        ["ns since session start"] unload_ns: Option<i64>,
    }
}
