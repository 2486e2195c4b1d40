//! The functions, calls and identities of the sample's modules, as `rebuild.sh` lists them.

use std::collections::HashMap;

use crate::bytes::Guid;

/// A module with the PDB it was linked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedModule {
    /// File name.
    pub file: String,
    pub pdb: String,
    pub guid: Guid,
    pub age: u32,
    /// Mapped size, in bytes.
    pub size: u64,
    /// Time stamp of the file.
    pub timestamp: u32,
}

/// Content of `functions.txt`.
#[derive(Debug, Default, Clone)]
pub struct FunctionTable {
    modules: Vec<LinkedModule>,
    /// Return RVAs of calls in code order, by module, caller and callee.
    calls: HashMap<(String, String, String), Vec<u64>>,
}

impl FunctionTable {
    /// Reads the text.
    ///
    /// # Errors
    /// The line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut functions = Self::default();
        for (index, line) in text.lines().enumerate() {
            functions
                .line(line)
                .ok_or_else(|| format!("line {}: cannot read {line:?}", index + 1))?;
        }
        Ok(functions)
    }

    /// Finds a module by its file name.
    #[must_use]
    pub fn module(&self, file: &str) -> Option<&LinkedModule> {
        self.modules.iter().find(|module| module.file == file)
    }

    /// Returns the return RVA of the `nth` call (from 0) to `callee` in a function.
    #[must_use]
    pub fn return_rva(&self, module: &str, caller: &str, callee: &str, nth: usize) -> Option<u64> {
        let key = (module.to_owned(), caller.to_owned(), callee.to_owned());
        self.calls.get(&key)?.get(nth).copied()
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["module", file, pdb, guid, age, size, timestamp] => self.modules.push(LinkedModule {
                file: file.to_owned(),
                pdb: pdb.to_owned(),
                guid: Guid::new(u128::from_str_radix(guid, 16).ok()?),
                age: age.parse().ok()?,
                size: hex(size)?,
                timestamp: hex(timestamp)?.try_into().ok()?,
            }),
            ["call", module, caller, callee, rva] => {
                let key = (module.to_owned(), caller.to_owned(), callee.to_owned());
                self.calls.entry(key).or_default().push(hex(rva)?);
            }
            ["function", ..] | ["#", ..] => {}
            _ => return None,
        }
        Some(())
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_calls_are_distinguished_by_their_number() {
        let text = "# c\ncall a.exe f g 0x10\ncall a.exe f g 0x20\nfunction a.exe f 0x0 48";
        let functions = FunctionTable::parse(text).unwrap();
        assert_eq!(functions.return_rva("a.exe", "f", "g", 1), Some(0x20));
        assert_eq!(functions.return_rva("a.exe", "f", "h", 0), None);
    }

    #[test]
    fn an_error_names_the_line() {
        assert!(FunctionTable::parse("# c\nmodule x").unwrap_err().starts_with("line 2"));
    }
}
