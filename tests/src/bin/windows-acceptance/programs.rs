//! The programs that take part.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_tests::acceptance::{Check, Expected, compare, observe};
use leaky_program::truth::parse;

/// The programs that take part.
pub(crate) struct Programs {
    pub(crate) handlescope: PathBuf,
    pub(crate) leaky: PathBuf,
    /// Where the PDB of leaky-program is looked for.
    pub(crate) symbols: Option<String>,
}

impl Programs {
    /// Compares a recording with a truth.
    ///
    /// # Errors
    /// When the truth cannot be read, or handlescope cannot read the recording.
    pub(crate) fn checks(&self, truth: &Path, trace: &Path) -> Result<Vec<Check>, String> {
        let text = fs::read_to_string(truth);
        let text = text.map_err(|error| format!("{}: {error}", truth.display()))?;
        let lines = parse(&text)
            .map_err(|(line, error)| format!("{}: line {line}: {error}", truth.display()))?;
        let observed = observe(&self.handlescope, trace, self.symbols.as_deref())?;
        Ok(compare(&Expected::of(&lines), &observed))
    }
}
