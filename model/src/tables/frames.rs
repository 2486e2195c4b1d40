use super::declare::table;
use crate::index::{MethodIdx, ModuleIdx};

table! {
    /// Columns of the frames table: every distinct code location once.
    Frames => Frames,
    /// A code location: a place in a module, or an address outside of all modules.
    Frame {
        /// The module; null when the address lies in none.
        module: Option<ModuleIdx>,
        /// Offset from the module's base (relative virtual address); null where the source has only a name.
        ["bytes"] rva: Option<u64>,
        /// The raw address, where there is no module, and where text of !htrace has it.
        address: Option<u64>,
        /// The managed method, in or outside of a module; null for native code.
        method: Option<MethodIdx>,
    }
}
