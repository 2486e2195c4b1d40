//! `.dump ObjectRef -GroupBy`: groups handles and views into a tree.
//!
//! [`lifetimes`] follows each handle and view from opening to close, [`columns`] gives it a code in each column,
//! [`parts`] counts parts of the objects in parallel, and [`tree`] merges them. [`coder`] makes codes for texts.
//! Also for allocations, [`nodes`] makes and merges groups, and [`timed`] reads the times of their members.
//!
//! These are loops over slices instead of expressions over frames, because the counts depend on the order of rows:
//! objects of a group are distinct, and one pass makes the groups of all levels.

mod coder;
mod columns;
mod counted;
mod cut;
mod leaves;
mod lifetimes;
mod nodes;
mod parts;
mod process_stacks;
mod ranked;
mod stats;
mod timed;
mod tree;

pub use self::columns::name_pattern;
pub use self::cut::GroupsLeftOut;
pub use self::leaves::counting_sort;
pub use self::nodes::{GroupNodes, Path};
pub use self::stats::GroupStats;
pub use self::timed::{TimedGroup, TimedMembers};
pub use self::tree::{GroupTree, NodeIdx};

use std::sync::Arc;

use handlescope_model::{StackIdx, sentinel};

use self::columns::{HandleKeys, lifetime_text};
use self::leaves::LeakingStacks;
use self::lifetimes::LifeTables;
use self::parts::HandleCounter;
use self::process_stacks::{NumberedStacks, ProcessStacks};
use super::acquisition_table::{AcquisitionTable, NeededColumns};
use super::context::FileContext;
use super::criteria::{AcquisitionCriteria, GroupColumn, GroupKey, KeyKind};
use super::error::QueryError;
use super::growth::{Growth, Lifetime, TimeWindow};
use super::info::recorded;
use super::program_frames::AcquiringFunctions;
use super::selection::Selection;
use super::stacks::StackSet;
use super::trimmed_stacks::TrimmedStacks;

/// The groups of the objects of one trace that passed.
pub struct Groups {
    /// Columns the objects are grouped by, outermost first.
    pub by: Vec<GroupColumn>,
    /// All groups of all levels, cut as the criteria say.
    pub tree: GroupTree,
    /// Texts for the codes of each column, if it has any.
    texts: Vec<Vec<String>>,
    /// The rows of stacks that belong to a single process.
    numbered_stacks: NumberedStacks,
    pub stacks: Option<Arc<TrimmedStacks>>,
    /// The functions that open handles, for groups that leak.
    pub functions: Option<Arc<AcquiringFunctions>>,
    /// The handles of all groups, if they are kept.
    pub timed: Option<TimedMembers>,
    /// The time range of the trace, if it has a clock.
    pub window: Option<TimeWindow>,
    /// The time range of all events; only an order in a trace without a clock.
    pub extent: TimeWindow,
}

impl Groups {
    /// Groups the handles and views of the objects that passed. `beside` holds handles closed only by process exit, if
    /// the criteria leave them out; only these closes are counted.
    pub fn new(
        file: &FileContext<'_>,
        selection: &Selection,
        beside: Option<&Selection>,
        criteria: &AcquisitionCriteria,
    ) -> Result<Self, QueryError> {
        let selections = || [Some(selection), beside].into_iter().flatten();
        let (needs, trims) = (criteria.groups.needs_stacks(), &criteria.groups.trims);
        let stacks = TrimmedStacks::needed(file, selections(), needs, trims)?;
        let process_stacks =
            ProcessStacks::number(file.trace, file.frames.as_ref(), stacks.as_ref(), file.cancel)?;
        let has_partial = selections().any(|selection| selection.events.is_partial());
        let mut counter = HandleCounter {
            lifetimes: LifeTables::load(file)?,
            keys: HandleKeys::load(
                file,
                criteria,
                stacks.as_ref(),
                process_stacks.as_ref(),
                has_partial,
            )?,
            cancel: file.cancel,
        };
        let mut by = criteria.groups.by.clone().unwrap_or_default();
        let mut tree = GroupTree::new(by.len());
        for (selection, is_beside) in selections().zip([false, true]) {
            counter.count(selection, is_beside, |part| tree.add(part))?;
        }
        let HandleCounter { lifetimes, keys, .. } = counter;
        let texts = keys.into_texts();
        let numbered_stacks = process_stacks.map(|stacks| stacks.rows).unwrap_or_default();
        by.truncate(criteria.groups.depth.unwrap_or(usize::MAX).max(1));
        let of_functions = criteria.groups.leaking && by.last() == Some(&GroupColumn::CreateStack);
        let functions = file
            .frames
            .as_ref()
            .zip(stacks.as_ref())
            .filter(|_| of_functions)
            .map(|(frames, stacks)| AcquiringFunctions::new(frames, stacks));
        let leaking = criteria
            .groups
            .leaking
            .then_some(LeakingStacks { functions: functions.as_ref(), numbers: &numbered_stacks });
        let handles = tree.arrange(
            &criteria.groups,
            criteria.top,
            &lifetimes.times,
            leaking.as_ref(),
            file.cancel,
        )?;
        let info = file.trace.info()?;
        let (mut timed, mut last_ns) = (None, None);
        if criteria.groups.keeps_members() {
            let table = AcquisitionTable::load(file.trace, NeededColumns::HANDLES)?;
            timed = Some(TimedMembers { rows: handles, table });
            last_ns = file.trace.event_times()?.last_ns();
        }
        let extent = recorded(&info, last_ns.unwrap_or_default());
        let window = info.has_clock().then_some(extent);
        let stacks = stacks.map(Arc::new);
        let functions = functions.map(Arc::new);
        Ok(Self { by, tree, texts, numbered_stacks, stacks, functions, timed, window, extent })
    }

    /// Returns the open handles of a group at the ends of `buckets` equal parts of the trace, if requested and known.
    pub fn outstanding(&self, node: NodeIdx, buckets: usize) -> Option<Vec<u32>> {
        let open = self.members(node)?.outstanding(false, self.window?, buckets).into_iter();
        Some(open.map(|open| u32::try_from(open).unwrap_or(u32::MAX)).collect())
    }

    /// Returns the handles of a group, if they are kept.
    pub fn members(&self, node: NodeIdx) -> Option<TimedGroup<'_>> {
        Some(self.timed.as_ref()?.group(self.tree.handles(node)))
    }

    /// Returns how a group grows over the trace, if known.
    pub fn growth(&self, node: NodeIdx) -> Option<Growth> {
        let timed = self.timed.as_ref()?;
        let times: Vec<Lifetime> = self
            .members(node)?
            .rows()
            .filter(|row| timed.table.is_in_time(*row))
            .filter_map(|row| timed.table.program_time(row))
            .collect();
        Some(Growth::new(&times, self.window?))
    }

    /// Returns a group's share of all leaks, 0 to 1; its share of the handles if nothing leaks.
    pub fn share(&self, node: NodeIdx) -> f64 {
        let (stats, sums) = (self.tree.stats(node), self.tree.all());
        let (handles, total) = match sums.unreleased {
            0 => (stats.handles, sums.handles),
            unreleased => (stats.unreleased(), unreleased),
        };
        if total == 0 { 0.0 } else { f64::from(handles) / total as f64 }
    }

    /// Returns the stacks that are keys of shown groups.
    pub fn shown_stacks(&self, height: usize) -> StackSet {
        let mut stacks = StackSet::new(height);
        for node in self.tree.shown() {
            stacks.add(self.key(node).stack());
        }
        stacks
    }

    /// Whether the innermost level groups by name pattern, as in
    /// [`for_dumps`](super::criteria::GroupCriteria::for_dumps).
    pub fn has_name_patterns(&self) -> bool {
        self.by.last() == Some(&GroupColumn::NamePattern)
    }

    /// Returns the text of a stack's representative frame, as stack filters see it.
    pub fn function(&self, file: &FileContext<'_>, stack: Option<StackIdx>) -> Option<String> {
        Some(self.stacks.as_ref()?.function(file.frames.as_ref()?, stack?))
    }

    /// Returns the value that the handles of a group share in a column, if they are grouped by it.
    pub fn key_in(&self, node: NodeIdx, column: GroupColumn) -> GroupKey<&str> {
        let is_of_column =
            |node: &NodeIdx| self.by.get(self.tree.level_and_code(*node).0) == Some(&column);
        let node = self.tree.with_parents(node).find(is_of_column);
        node.map_or(GroupKey::None, |node| self.key(node))
    }

    /// Returns the value that the handles of a group share in its own column.
    pub fn key(&self, node: NodeIdx) -> GroupKey<&str> {
        let (level, code) = self.tree.level_and_code(node);
        let Some(column) = self.by.get(level).filter(|_| code != sentinel()) else {
            return GroupKey::None;
        };
        match column.kind() {
            KeyKind::Stack => GroupKey::Stack(self.numbered_stacks.row(code)),
            KeyKind::Number | KeyKind::Bytes => GroupKey::Number(code.into()),
            KeyKind::Text if *column == GroupColumn::Lifetime => {
                GroupKey::Text(lifetime_text(code))
            }
            KeyKind::Text => {
                let text = self.texts.get(level).and_then(|texts| texts.get(code as usize));
                text.map_or(GroupKey::None, |text| GroupKey::Text(text))
            }
        }
    }
}
