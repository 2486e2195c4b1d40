//! Sums, whose members are named as their fields.

use serde::Serialize;

use crate::query::{ExitStacks, FrameFigures, Totals};

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct TotalsJson(#[serde(with = "TotalsMembers")] pub(super) Totals);

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct ExitStacksJson(#[serde(with = "ExitStacksMembers")] pub(super) ExitStacks);

#[derive(Serialize)]
#[serde(remote = "Totals")]
struct TotalsMembers {
    objects_created: u64,
    objects_destroyed: u64,
    handles_created: u64,
    handles_closed: u64,
    handles_duplicated: u64,
    ref_changes: u64,
    map_count: u64,
    unmap_count: u64,
    map_size: u64,
    unmap_size: u64,
    leaked_handles: u64,
    leaked_views: u64,
    closed_at_exit: u64,
    closed_unseen: u64,
}

#[derive(Serialize)]
#[serde(remote = "ExitStacks")]
struct ExitStacksMembers {
    closes: u64,
    confirmed: u64,
    doubtful: u64,
}

#[derive(Serialize)]
#[serde(remote = "FrameFigures")]
pub(super) struct FrameFiguresJson {
    frames_total: u64,
    frames_in_modules: u64,
    frames_managed: u64,
    frames_unknown: u64,
}
