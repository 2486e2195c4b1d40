//! Manifest of a trace: what was written for it, by which damage is noticed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::DatasetError;
use super::layout::{Dataset, manifest_name};
use super::origin::Given;
use super::tables::SCHEMA_VERSION;

/// Bytes that are hashed at once.
const BUFFER_BYTES: usize = 1 << 16;

/// What was written for a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) schema_version: i32,
    /// Version of the program.
    pub(crate) extractor: String,
    /// What was given for the trace, which holds when its rows are made again.
    pub(crate) given: Given,
    pub(crate) tables: BTreeMap<String, TableSummary>,
}

/// Rows and content of a table of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableSummary {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl Manifest {
    pub(super) fn new(given: Given, tables: BTreeMap<String, TableSummary>) -> Self {
        let extractor = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema_version: SCHEMA_VERSION, extractor, given, tables }
    }
}

impl TableSummary {
    /// Summarizes a file with a number of rows.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of(path: &Path, rows: u64) -> Result<Self, DatasetError> {
        let mut file = File::open(path).map_err(DatasetError::io(path))?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = file.read(&mut buffer).map_err(DatasetError::io(path))?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
        }
        let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { rows, bytes, sha256: digits })
    }
}

impl Dataset {
    /// The manifest of a trace.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn manifest(&self, trace: &str) -> Result<Manifest, DatasetError> {
        let name = manifest_name(trace);
        let path = self.store.path(&name);
        let missing = || DatasetError::Damaged { path: path.clone(), reason: "missing".to_owned() };
        let text = self.store.read(&name)?.ok_or_else(missing)?;
        serde_json::from_slice(&text)
            .map_err(|error| DatasetError::Damaged { path, reason: error.to_string() })
    }

    pub(super) fn write_manifest(
        &self,
        trace: &str,
        manifest: &Manifest,
    ) -> Result<(), DatasetError> {
        let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
        self.store.write(&manifest_name(trace), &mut text.as_slice())
    }
}
