//! Answers about a dataset.

mod diff;
mod groups;
mod stack;
mod why;

use serde::Serialize;

pub use self::diff::{FLEET_DIFF_GROUP_MEMBERS, FLEET_DIFF_MEMBERS};
pub use self::groups::{FLEET_GROUP_MEMBERS, FLEET_GROUPS_MEMBERS};
pub use self::why::{FLEET_SUSPECT_MEMBERS, FLEET_WHY_MEMBERS, amount, builds, causes};
pub use self::{
    diff::{fleet_diff, fleet_diff_columns},
    groups::{fleet_group_columns, fleet_groups},
    why::{fleet_why, fleet_why_columns},
};
use crate::json::Document;
use handlescope_fleet::FleetCaveat;

/// A caveat in a document.
#[derive(Serialize)]
struct CaveatJson {
    kind: &'static str,
    text: String,
    traces: usize,
}

/// Adds the caveats of an answer.
fn with_caveats<'a>(document: Document<'a>, caveats: &[FleetCaveat]) -> Document<'a> {
    let caveats = caveats.iter().map(|caveat| {
        let FleetCaveat { kind, text, traces } = caveat.clone();
        CaveatJson { kind, text, traces }
    });
    document.with("caveats", caveats.collect::<Vec<_>>())
}

/// A number of a table of the dataset, none of which is negative.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
