//! The methods of managed code that occur in stacks.

use handlescope_model::tables::Methods;
use handlescope_model::{ArchiveError, TableRows, Trace};

/// Placeholder for the assembly of a method when the trace does not name it.
pub const UNKNOWN_ASSEMBLY: &str = "<UnknownModule>";

#[derive(Debug)]
pub struct ManagedMethod {
    /// File name of the assembly, if the trace names it.
    pub module: Option<String>,
    /// `Namespace.Type.Method`.
    pub function: String,
    /// Start of its code: an offset in a native image, or an address.
    start: u64,
}

impl ManagedMethod {
    /// The methods of a trace by row.
    pub fn load_all(trace: &Trace) -> Result<Vec<ManagedMethod>, ArchiveError> {
        let methods = Methods::read(trace)?;
        let methods = methods.rows().map(|method| ManagedMethod {
            module: method.module,
            function: match method.type_name.as_str() {
                "" => method.name,
                type_name => format!("{type_name}.{}", method.name),
            },
            start: method.rva.or(method.address).unwrap_or_default(),
        });
        Ok(methods.collect())
    }

    /// The assembly as it is shown.
    pub fn module_name(&self) -> &str {
        self.module.as_deref().unwrap_or(UNKNOWN_ASSEMBLY)
    }

    /// Distance of an address from the start of the method; `address` may be an offset in its native image.
    pub fn offset(&self, address: u64) -> u64 {
        address.saturating_sub(self.start)
    }
}
