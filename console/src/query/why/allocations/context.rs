//! What the suspects of a trace are made of.

use super::causes::SiteCauses;
use super::filters::SiteFilters;
use crate::query::resources::Sites;

/// The sites of a trace, why they lose something, and what chooses each.
pub(super) struct SiteContext<'a> {
    pub(super) sites: &'a Sites,
    pub(super) causes: &'a SiteCauses<'a>,
    pub(super) filters: &'a SiteFilters,
}
