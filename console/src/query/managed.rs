//! The methods of managed code that occur in stacks.

use handlescope_model::{ArchiveError, Table, Trace};

use crate::trace::columns::{Texts, U64s};

/// What stands for the assembly of a method when nothing in the trace told it.
pub(crate) const UNKNOWN_ASSEMBLY: &str = "<UnknownModule>";

/// A managed method.
#[derive(Debug)]
pub(crate) struct ManagedMethod {
    /// File name of the assembly, if the trace tells it.
    pub(crate) module: Option<String>,
    /// `Namespace.Type.Method`.
    pub(crate) function: String,
    /// Where its code starts: an offset in a native image, or an address.
    start: u64,
}

impl ManagedMethod {
    /// The methods of a trace by row.
    pub(crate) fn load_all(trace: &Trace) -> Result<Vec<ManagedMethod>, ArchiveError> {
        let texts = |name| Texts::load(trace, Table::Methods, name);
        let (module, types, names) = (texts("module")?, texts("type_name")?, texts("name")?);
        let rva = U64s::load(trace, Table::Methods, "rva")?;
        let address = U64s::load(trace, Table::Methods, "address")?;
        let method = |row| ManagedMethod {
            module: module.get(row).map(str::to_owned),
            function: match types.text(row) {
                "" => names.text(row).to_owned(),
                of_type => format!("{of_type}.{}", names.text(row)),
            },
            start: rva.get(row).or(address.get(row)).unwrap_or_default(),
        };
        Ok((0..names.len()).map(method).collect())
    }

    /// The assembly as it is shown.
    pub(crate) fn module_name(&self) -> &str {
        self.module.as_deref().unwrap_or(UNKNOWN_ASSEMBLY)
    }

    /// How far a place is behind the start of the method; `place` is an offset in its native image,
    /// or an address.
    pub(crate) fn offset(&self, place: u64) -> u64 {
        place.saturating_sub(self.start)
    }
}
