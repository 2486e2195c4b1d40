//! What only this program writes into an extract, so that nothing is lost on the way back.
//!
//! Each part but that of the handles has one member more, named [`OWN`], with the rows of those
//! tables of which the format has less than they hold. A row has the names of the columns, as in
//! newline-delimited JSON. The records of events have some members more instead.
//!
//! ETWAnalyzer passes over members that it does not know, and leaves them out when it writes a file
//! again; then the file is read as one of its own.

use handlescope_model::{ProcessIdx, TypeId};
use serde::{Deserialize, Serialize};

/// The member of a part that holds our tables.
pub(super) const OWN: &str = "Handlescope";

/// A handle that was open when the trace began, with its name in place of a row number.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OwnStartHandle {
    pub(super) pointer: u64,
    pub(super) process: Option<ProcessIdx>,
    pub(super) pid: u32,
    pub(super) handle: u64,
    pub(super) type_id: TypeId,
    pub(super) name: Option<String>,
    pub(super) closed: Option<bool>,
}
