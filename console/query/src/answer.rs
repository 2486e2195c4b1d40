//! The part of an answer that is the same for handles and allocations.

use std::path::Path;
use std::sync::Arc;

use handlescope_model::tables::TraceInfo;
use handlescope_model::{StackIdx, Table, Trace};

use super::context::Source;
use super::error::QueryError;
use super::exit_stacks::ExitStacks;
use super::frame_names::Frames;
use super::frame_view::ModuleBases;
use super::no_match::NoMatch;
use super::stacks::StackSet;
use super::totals::Totals;
use super::trimmed_stacks::TrimmedStacks;
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::Caveat;

/// A queried trace and what there is to say about its answer.
pub struct About<'a> {
    pub trace: &'a Trace,
    /// The file as the user named it.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    pub info: Arc<TraceInfo>,
    /// Reasons why the answer may be wrong or incomplete.
    pub caveats: Vec<Caveat>,
    /// Reason for an empty answer; `None` if something matches in this trace or another.
    pub no_match: Option<NoMatch>,
    /// Number of stacks of the trace.
    pub stack_count: usize,
    /// Stacks to show, if requested.
    pub shown_stacks: Option<StackSet>,
    /// Addresses of modules, if requested.
    pub bases: ModuleBases,
    pub cancel: &'a Cancel,
}

impl<'a> About<'a> {
    pub fn new(source: &Source<'a>, cancel: &'a Cancel) -> Result<Self, QueryError> {
        let trace = source.trace;
        Ok(Self {
            trace,
            path: source.path,
            index: source.index,
            info: trace.info()?,
            caveats: Vec::new(),
            no_match: None,
            stack_count: trace.height(Table::Stacks)?,
            shown_stacks: None,
            bases: ModuleBases::default(),
            cancel,
        })
    }
}

/// The subject of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    Handles,
    Allocations,
}

impl Domain {
    /// Returns the plural noun for the acquisitions in messages and ids.
    pub fn label(self) -> &'static str {
        match self {
            Self::Handles => "handles",
            Self::Allocations => "allocations",
        }
    }
}

/// An answer about a trace.
pub trait TraceAnswer<'a> {
    const DOMAIN: Domain;

    fn about(&self) -> &About<'a>;
    fn about_mut(&mut self) -> &mut About<'a>;
    /// Returns the frames of stacks, if they were needed.
    fn frames(&self) -> Option<&Frames<'a>>;
    /// Returns the trimmed stacks of groups, if frames are left out.
    fn trims(&self) -> Option<&TrimmedStacks>;
    /// Returns sums over handles and the evidence from closes at process exit, for an answer about handles.
    fn totals(&self) -> Option<(Totals, Option<ExitStacks>)> {
        None
    }
    /// Returns the stacks that the answer refers to, ascending, each once.
    fn stacks(&self) -> Vec<StackIdx> {
        self.about().shown_stacks.iter().flat_map(StackSet::iter).collect()
    }
}
