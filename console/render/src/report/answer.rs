//! The answers that a page is made of.

use handlescope_query::{AllocationsOverview, WhyAnswer};
use handlescope_session::trace::{Caveat, CaveatKind};

/// The answers for a trace on the page.
pub struct ReportAnswer<'a> {
    /// Suspects and their causes.
    pub why: WhyAnswer<'a>,
    /// Allocations, if the criteria select any.
    pub allocations: Option<AllocationsOverview<'a>>,
}

impl ReportAnswer<'_> {
    /// Returns the caveats about allocations that were not given for handles.
    pub fn allocation_caveats(&self) -> impl Iterator<Item = &Caveat> {
        let groups = self.allocations.iter().map(|allocations| &allocations.groups);
        groups.flat_map(|groups| &groups.about.caveats).filter(|caveat| {
            !matches!(caveat.kind, CaveatKind::LostWhileRecording | CaveatKind::MissingInFile)
        })
    }
}
