//! The answers that a page is made of.

use crate::query::{AllocationsOverview, WhyAnswer};
use crate::trace::{Caveat, CaveatKind};

/// The answers for a trace on the page.
pub(crate) struct ReportAnswer<'a> {
    /// Suspects and their causes.
    pub(crate) why: WhyAnswer<'a>,
    /// Allocations, if there are any among those that are asked for.
    pub(crate) allocations: Option<AllocationsOverview<'a>>,
}

impl ReportAnswer<'_> {
    /// Returns the caveats about allocations that were not given for handles.
    pub(crate) fn own_caveats(&self) -> impl Iterator<Item = &Caveat> {
        let is_loss = |caveat: &Caveat| {
            matches!(caveat.kind, CaveatKind::LostWhileRecording | CaveatKind::MissingInFile)
        };
        let all = self.allocations.iter().flat_map(|allocations| &allocations.groups.about.caveats);
        all.filter(move |caveat| !is_loss(caveat))
    }
}
