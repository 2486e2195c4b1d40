//! One member of an extract, read as a stream.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::de::DeserializeSeed;
use serde_json::error::Category;

use super::super::held::TOO_MUCH;
use super::super::record::{Fill, Record};
use super::error::ImportError;
use super::guard::Guard;
use super::limits::ImportLimits;
use super::repair::Repair;
use crate::text::{Progress, utf8};

/// Bytes that are read at once.
const BUFFER: usize = 128 << 10;

/// Longest text about an error; the parser quotes what it did not expect.
const LONGEST_REASON: usize = 200;

/// A member, in a file of its own: the one of the plain form, or an unnamed temporary one.
pub(super) struct Document {
    /// The extract it belongs to.
    pub(super) path: PathBuf,
    pub(super) member: String,
    pub(super) file: File,
}

impl Document {
    /// Fills a record from the document; a document that is `null` leaves it as it is.
    pub(super) fn read(
        self,
        record: &mut impl Record,
        limits: ImportLimits,
        progress: &Rc<Progress<'_>>,
    ) -> Result<(), ImportError> {
        let Self { path, member, file } = self;
        let text = utf8(file, Rc::clone(progress)).map_err(|source| ImportError::Read {
            path: path.clone(),
            member: member.clone(),
            reason: source.to_string(),
        })?;
        let text = Repair::new(text, Rc::clone(progress));
        let guard = Guard::new(text, limits, Rc::clone(progress));
        let mut json =
            serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, guard));
        let result = Fill(record).deserialize(&mut json).and_then(|()| json.end());
        result.map_err(|error| {
            progress.cancel.check().err().map_or_else(|| said(&path, member, &error), Into::into)
        })
    }
}

/// What the parser says, in our words.
fn said(path: &Path, member: String, error: &serde_json::Error) -> ImportError {
    let path = path.to_path_buf();
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let reason: String =
        text.strip_suffix(&place).unwrap_or(&text).chars().take(LONGEST_REASON).collect();
    match error.classify() {
        Category::Data if reason == TOO_MUCH => ImportError::TooMuch { path, member },
        Category::Io => ImportError::Read { path, member, reason },
        _ => ImportError::Json { path, member, line, column, reason },
    }
}
