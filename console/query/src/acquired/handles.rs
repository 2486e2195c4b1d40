//! The handles and views of a trace in groups of one process, type and create stack.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use handlescope_model::ProcessIdx;

use super::group::AcquisitionGroup;
use super::list::AcquisitionGroups;
use crate::answer::Domain;
use crate::context::FileContext;
use crate::criteria::{GroupColumn, ProcessCriteria};
use crate::groups::Groups;

impl<'a> AcquisitionGroups<'a> {
    /// Collects the handles of the requested owners from groups of create stacks with times; `None` if the groups lack
    /// times. With `at_end`, everything open at the end counts, whatever opened it.
    pub fn from_handles(
        file: &'a FileContext<'a>,
        groups: Option<&'a Groups>,
        asked: &ProcessCriteria,
        is_plain: bool,
        at_end: bool,
    ) -> Option<Self> {
        let groups = groups?;
        let timed = groups.timed.as_ref()?;
        let mut acquired = Self {
            subject: Domain::Handles,
            table: Arc::clone(&timed.table),
            groups: Vec::new(),
            members: Cow::Borrowed(&timed.rows),
            selected_count: timed.rows.len(),
            frames: file.frames.as_ref(),
            stacks: groups.stacks.clone(),
            functions: groups.functions.clone(),
            processes: &file.processes,
            asked: asked.clone(),
            is_plain,
            is_of_one_moment: at_end,
            window: groups.window,
            extent: groups.extent,
            cancel: file.cancel,
        };
        let labels = if at_end { labels(file) } else { HashMap::new() };
        for node in groups.tree.leaves() {
            let stats = groups.tree.stats(node);
            // An innermost group has its handles in one range.
            let members = groups.tree.handles(node).pop().unwrap_or_default();
            let first = timed.rows.get(members.start).filter(|_| !members.is_empty());
            let owner = if at_end {
                let label = groups.key_in(node, GroupColumn::Process).text();
                label.and_then(|label| labels.get(label).copied())
            } else {
                first.and_then(|row| timed.table.owner(*row))
            };
            let process = file.processes.known_or_invalid(owner);
            let is_empty = if at_end { stats.open_at_end == 0 } else { members.is_empty() };
            if is_empty || !acquired.matches_process(process) {
                continue;
            }
            let create_stack = groups.key_in(node, GroupColumn::CreateStack).stack();
            let pattern = groups.key_in(node, GroupColumn::NamePattern).text();
            acquired.groups.push(AcquisitionGroup {
                process: Cow::Borrowed(process),
                type_name: groups.key_in(node, GroupColumn::Type).text().unwrap_or_default(),
                allocator: pattern.filter(|_| create_stack.is_none()),
                kind: None,
                create_stack,
                leaks: at_end || stats.unreleased() > 0,
                members,
                owner: (owner, owner.map(|_| process.pid)),
                open_at_end: stats.open_at_end.into(),
                heaps: None,
            });
        }
        Some(acquired)
    }
}

/// Maps labels to processes, with and without better names: handles that are only listed have no events that name their
/// owners.
fn labels(file: &FileContext<'_>) -> HashMap<String, ProcessIdx> {
    (0..)
        .zip(file.processes.rows())
        .flat_map(|(row, process)| {
            [false, true].map(|is_plain| (process.shown_label(is_plain), ProcessIdx(row)))
        })
        .collect()
}
