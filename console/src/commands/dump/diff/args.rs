//! `.dump Diff` as entered.

use std::path::PathBuf;

use crate::{
    commands::shared::fields, filter::Filter, query::DiffCriteria, settings::StackDisplayArgs,
};

/// What the kind is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DiffArgs {
    /// `-From`: a snapshot or a time; none for the start.
    pub(super) from: Option<String>,
    /// `-To`: a snapshot or a time; none for the end.
    pub(super) to: Option<String>,
    /// `-flame`: the file to write.
    pub(super) flame: Option<PathBuf>,
    /// `-Kind`: allocations of such kinds instead of handles.
    pub(super) kind: Option<Filter>,
    pub(super) criteria: DiffCriteria,
}

fields!(DiffArgs { criteria.stacks: StackDisplayArgs });
