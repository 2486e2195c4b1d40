//! The answers that a page is made of.

use crate::query::{AllocationsOverview, WhyAnswer};
use crate::trace::{Caveat, CaveatKind};

/// What the page says of a trace.
pub(crate) struct ReportAnswer<'a> {
    /// What leaks.
    pub(crate) why: WhyAnswer<'a>,
    /// What was allocated, if anything was that is asked for.
    pub(crate) allocations: Option<AllocationsOverview<'a>>,
}

impl ReportAnswer<'_> {
    /// What speaks against what is said of allocations and was not said of handles.
    pub(crate) fn own_caveats(&self) -> impl Iterator<Item = &Caveat> {
        let is_loss = |caveat: &Caveat| {
            matches!(caveat.kind, CaveatKind::LostWhileRecording | CaveatKind::MissingInFile)
        };
        let all = self.allocations.iter().flat_map(|own| &own.groups.about.caveats);
        all.filter(move |caveat| !is_loss(caveat))
    }
}
