//! Open handles by process, type and the stack that opened them.

use super::context::Source;
use super::criteria::GroupColumn;
use super::criteria::{AcquisitionCriteria, GroupCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::groups::{Groups, NodeIdx};
use super::growth::Growth;
use super::object_ref::{FileAnswer, object_ref};
use handlescope_session::cancel::Cancel;

/// Handles of one process and one type, opened by one stack.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenGroup {
    /// The owner, `name.exe(pid)`.
    pub process: String,
    pub type_name: String,
    /// The first frame of the stack outside the system; `None` without a stack.
    pub function: Option<String>,
    /// Handles and views that nothing closed.
    pub open: u32,
    /// Handles and views that were opened.
    pub opened: u32,
    /// How the group grows, if times are known.
    pub growth: Option<Growth>,
}

/// Returns the groups with anything open, largest first.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn open_groups(
    sources: &[Source<'_>],
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<OpenGroup>, QueryError> {
    let criteria = AcquisitionCriteria {
        groups: GroupCriteria::for_create_stacks(),
        ..AcquisitionCriteria::default()
    };
    let files = object_ref(sources, &criteria, names, cancel)?.files;
    let mut open = Vec::new();
    for file in &files {
        if let Some(groups) = &file.groups {
            open.extend(groups.tree.leaves().filter_map(|leaf| open_group(file, groups, leaf)));
        }
    }
    open.sort_by_key(|group| std::cmp::Reverse(group.open));
    Ok(open)
}

fn open_group(file: &FileAnswer<'_>, groups: &Groups, leaf: NodeIdx) -> Option<OpenGroup> {
    let stats = groups.tree.stats(leaf);
    if stats.leaked == 0 {
        return None;
    }
    let key = |column| groups.key_in(leaf, column);
    Some(OpenGroup {
        process: key(GroupColumn::Process).text()?.to_owned(),
        type_name: key(GroupColumn::Type).text().unwrap_or_default().to_owned(),
        function: groups.function(&file.file, key(GroupColumn::CreateStack).stack()),
        open: stats.leaked,
        opened: stats.opened(),
        growth: groups.growth(leaf),
    })
}
