//! The methods of managed code that occur in stacks.

use handlescope_model::tables::{Method, Methods};
use handlescope_model::{ArchiveError, TableRows, Trace};

/// Placeholder for the assembly of a method when the trace does not name it.
pub(crate) const UNKNOWN_ASSEMBLY: &str = "<UnknownModule>";

#[derive(Debug)]
pub(crate) struct ManagedMethod {
    /// File name of the assembly, if the trace names it.
    pub(crate) module: Option<String>,
    /// `Namespace.Type.Method`.
    pub(crate) function: String,
    /// Start of its code: an offset in a native image, or an address.
    start: u64,
}

impl ManagedMethod {
    /// The methods of a trace by row.
    pub(crate) fn load_all(trace: &Trace) -> Result<Vec<ManagedMethod>, ArchiveError> {
        let method = |method: Method| ManagedMethod {
            module: method.module,
            function: match method.type_name.as_str() {
                "" => method.name,
                of_type => format!("{of_type}.{}", method.name),
            },
            start: method.rva.or(method.address).unwrap_or_default(),
        };
        Ok(Methods::read(trace)?.rows().map(method).collect())
    }

    /// The assembly as it is shown.
    pub(crate) fn module_name(&self) -> &str {
        self.module.as_deref().unwrap_or(UNKNOWN_ASSEMBLY)
    }

    /// Distance of a place from the start of the method; `place` is an offset in its native image, or an address.
    pub(crate) fn offset(&self, place: u64) -> u64 {
        place.saturating_sub(self.start)
    }
}
