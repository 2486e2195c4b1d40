//! The answers that a page is made of.

use crate::query::{AllocationsOverview, WhyAnswer};
use crate::trace::{Caveat, CaveatKind};

/// The answers for a trace on the page.
pub(crate) struct ReportAnswer<'a> {
    /// Suspects and their causes.
    pub(crate) why: WhyAnswer<'a>,
    /// Allocations, if the criteria select any.
    pub(crate) allocations: Option<AllocationsOverview<'a>>,
}

impl ReportAnswer<'_> {
    /// Returns the caveats about allocations that were not given for handles.
    pub(crate) fn allocation_caveats(&self) -> impl Iterator<Item = &Caveat> {
        let groups = self.allocations.iter().map(|allocations| &allocations.groups);
        groups.flat_map(|groups| &groups.about.caveats).filter(|caveat| {
            !matches!(caveat.kind, CaveatKind::LostWhileRecording | CaveatKind::MissingInFile)
        })
    }
}
