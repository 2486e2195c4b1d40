//! What several commands share: options that are declared once, and the search for names of frames.

pub(crate) mod caveats;
pub(crate) mod choice;
pub(crate) mod display;
pub(crate) mod files;
pub(crate) mod groups;
pub(crate) mod names;
pub(crate) mod notes;
pub(crate) mod options;
pub(crate) mod stack_display;
pub(crate) mod symbols;
