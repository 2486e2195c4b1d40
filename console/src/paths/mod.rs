//! Paths: names, folders and patterns to files, and files that are written whole or not at all.

mod error;
mod expand;
mod missing;
mod names;
mod overwrite;
mod pattern;
mod roots;
mod same;
#[cfg(test)]
mod tests;
mod walk;
mod write;
mod written;

pub(crate) use error::ExpandError;
pub(crate) use expand::expand;
pub(crate) use missing::missing;
pub(crate) use names::{
    EXTRACT_EXTENSION, EXTRACT_FOLDER, PLAIN_EXTENSION, TRACE_EXTENSIONS, has_extension,
    is_extract, is_plain_extract, shortened, with_home,
};
pub(crate) use overwrite::{Output, Overwrite, OverwriteError, is_null_device};
pub(crate) use pattern::{Pattern, verdict};
pub(crate) use roots::{RootError, Roots};
pub(crate) use same::{SameTrace, is_same_file, names_apart, shown, stem};
pub(crate) use walk::{Walk, folders_in};
pub(crate) use write::{Aside, append_whole, write_aside, write_whole};
pub(crate) use written::alone;
