//! Paths: names, folders and patterns to files, and files that are written whole or not at all.

mod expand;
mod names;
mod overwrite;
mod roots;
#[cfg(test)]
mod tests;
mod written;

pub use expand::{ExpandError, Pattern, Walk, expand, folders_in, missing, verdict};
pub use names::{
    EXTRACT_EXTENSION, EXTRACT_FOLDER, PLAIN_EXTENSION, SameTrace, TRACE_EXTENSIONS, has_extension,
    is_extract, is_plain_extract, is_same_file, names_apart, shortened, shown, stem, with_home,
};
pub use overwrite::{
    Aside, Output, Overwrite, OverwriteError, append_whole, is_null_device, write_aside,
    write_whole,
};
pub use roots::Access;
pub use roots::{RootError, Roots};
pub use written::exclusive_lock;
