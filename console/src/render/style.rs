//! How answers are written, as far as that is not the same for all of them.

use crate::query::{ObjectCriteria, ResourceFigures};

/// How the answer to `.dump ObjectRef` is written.
#[derive(Clone, Copy)]
pub struct ObjectRefStyle<'a> {
    pub criteria: &'a ObjectCriteria,
    /// The command line as typed.
    pub text: &'a str,
    /// `-NoCSVSeparator`: no `sep = ;` line in front.
    pub no_csv_separator: bool,
    /// `-NoCmdLine`: an empty command line column in the CSV file.
    pub no_command_line: bool,
}

/// A column of figures: its name, its title if text has it, and the figure.
pub(super) type CountColumn = (&'static str, Option<&'static str>, fn(&ResourceFigures) -> u64);
/// The same of bytes.
pub(super) type ByteColumn = (&'static str, Option<&'static str>, fn(&ResourceFigures) -> i64);

/// What is counted of a group, with its bytes.
pub(super) const RESOURCE_FIGURES: [(CountColumn, Option<ByteColumn>); 8] = [
    (
        ("allocs", Some("Allocs"), |own| own.allocs),
        Some(("alloc_bytes", Some("Allocated"), |own| own.alloc_bytes)),
    ),
    (("frees", Some("Frees"), |own| own.frees), Some(("freed_bytes", None, |own| own.freed_bytes))),
    (
        ("replaced", None, |own| own.replaced),
        Some(("replaced_bytes", None, |own| own.replaced_bytes)),
    ),
    (
        ("destroyed", None, |own| own.destroyed),
        Some(("destroyed_bytes", None, |own| own.destroyed_bytes)),
    ),
    (
        ("orphan_frees", Some("Orphan frees"), |own| own.orphan_frees),
        Some(("orphan_bytes", None, |own| own.orphan_bytes)),
    ),
    (("ignored", None, |own| own.ignored), None),
    (
        ("at_exit", Some("At exit"), |own| own.at_exit),
        Some(("at_exit_bytes", Some("Bytes at exit"), |own| own.at_exit_bytes)),
    ),
    (
        ("outstanding", Some("Outstanding"), |own| own.outstanding),
        Some(("outstanding_bytes", Some("Bytes outstanding"), |own| own.outstanding_bytes)),
    ),
];
