//! The part of an answer about a trace that is the same for handles and for allocations.

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

/// A trace that was asked, and what is to be said of its answer.
pub struct About<'a> {
    pub trace: &'a Trace,
    /// The file as it was named.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    pub info: Arc<TraceInfo>,
    /// Reasons why the answer is wrong or incomplete.
    pub caveats: Vec<Caveat>,
    /// Reason for an empty answer; `None` when something matches, in this trace or another.
    pub no_match: Option<NoMatch>,
    /// Number of stacks of the trace.
    pub stack_count: usize,
    /// Stacks to show, if they were asked for.
    pub shown_stacks: Option<StackSet>,
    /// Addresses of modules, if they were asked for.
    pub bases: ModuleBases,
    pub cancel: &'a Cancel,
}

impl<'a> About<'a> {
    pub fn of(source: &Source<'a>, cancel: &'a Cancel) -> Result<Self, QueryError> {
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

/// An answer about a trace.
pub trait TraceAnswer<'a> {
    const DOMAIN: Domain;

    fn about(&self) -> &About<'a>;
    fn about_mut(&mut self) -> &mut About<'a>;
    /// The frames of stacks, if they were needed.
    fn frames(&self) -> Option<&Frames<'a>>;
    /// The rest of the stacks that groups have in common, when frames are left out.
    fn trims(&self) -> Option<&TrimmedStacks>;
    /// Sums over handles, and what stacks say of closes at the ends of processes, of an answer about these.
    fn totals(&self) -> Option<(Totals, Option<ExitStacks>)> {
        None
    }
    /// The stacks that the answer refers to; ascending, each once.
    fn stacks(&self) -> Vec<StackIdx> {
        self.about().shown_stacks.iter().flat_map(StackSet::iter).collect()
    }
}
