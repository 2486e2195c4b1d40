//! Groups within groups.

use std::ops::Range;

use handlescope_model::{AcquisitionIdx, sentinel};
use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;

use super::coder::NumberMap;
use super::cut::{GroupCut, GroupsLeftOut};
use super::leaves::{CodedHandles, Leaf, LeakingStacks, Leaves};
use super::lifetimes::HandleTimes;
use super::nodes::{GroupNode, GroupNodes};
use super::parts::{CountedPart, HandleSums};
use super::ranked;
use super::stats::GroupStats;
use crate::criteria::GroupCriteria;
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::values::TopN;

/// A group: a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(u32);

/// Groups within groups; on each level, those that leak most come first.
#[derive(Default)]
pub struct GroupTree {
    /// Groups of all levels, the innermost last.
    nodes: Vec<GroupNode<GroupStats>>,
    /// Groups of the outer levels while handles are being added.
    outer: GroupNodes<GroupStats>,
    /// The handles of the innermost groups, by parent node plus 1; index 0 is for those without parent.
    leaves: Vec<Leaves>,
    parts: Vec<CodedHandles>,
    levels: usize,
    all: HandleSums,
    /// Number of innermost groups that `-Rows` left out.
    rows_left_out: usize,
    /// Shown groups within each shown group; [`sentinel`] holds the outermost ones.
    children: HashMap<u32, ShownGroups>,
    /// All groups within each group, without the innermost level.
    all_children: HashMap<u32, Vec<NodeIdx>>,
}

/// The shown groups within a group, and what was left out.
#[derive(Debug, Clone, Default)]
struct ShownGroups {
    nodes: Vec<NodeIdx>,
    left_out: GroupsLeftOut,
}

impl NodeIdx {
    /// Returns the node of a row.
    pub fn new(row: usize) -> Self {
        Self(u32::try_from(row).unwrap_or(sentinel()))
    }

    pub fn row(self) -> usize {
        self.0 as usize
    }
}

impl GroupTree {
    pub fn new(levels: usize) -> Self {
        Self { levels, ..Self::default() }
    }

    /// Adds the groups and handles of objects that come after all others.
    pub fn add(&mut self, part: CountedPart) {
        let CountedPart { outer, handles, ends, all } = part;
        let places = self.outer.add_all(&outer, GroupStats::add_all);
        let slots = std::iter::once(0).chain(places.into_iter().map(|node| node + 1));
        let number = self.parts.len() as u32;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        for (slot, (start, end)) in slots.zip(starts.zip(ends.iter().copied())) {
            if start == end {
                continue;
            }
            let slot = slot as usize;
            if self.leaves.len() <= slot {
                self.leaves.resize_with(slot + 1, Leaves::default);
            }
            if let Some(leaves) = self.leaves.get_mut(slot) {
                leaves.push(number, start..end);
            }
        }
        self.parts.push(handles);
        self.all.handles += all.handles;
        self.all.unreleased += all.unreleased;
    }

    /// Orders and cuts the groups of each level as the criteria say. Of the innermost groups, only those shown are
    /// known afterwards.
    ///
    /// Returns the opened handles of all groups if the criteria keep them. With `leaking`, returns only those of the
    /// groups that [`SortedHandles::groups`](super::leaves::SortedHandles::groups) keeps.
    pub fn arrange(
        &mut self,
        criteria: &GroupCriteria,
        top: Option<TopN>,
        times: &HandleTimes,
        leaking: Option<&LeakingStacks<'_>>,
        cancel: &Cancel,
    ) -> Result<Vec<AcquisitionIdx>, Cancelled> {
        self.nodes = std::mem::take(&mut self.outer).into_nodes().0;
        let mut children: HashMap<u32, Vec<NodeIdx>> = HashMap::new();
        for (index, node) in (0..).zip(&self.nodes) {
            children.entry(node.parent).or_default().push(NodeIdx(index));
        }
        let cut = GroupCut { criteria, top };
        let depth = criteria.depth.unwrap_or(self.levels).clamp(1, self.levels.max(1));
        for (parent, nodes) in &children {
            if self.level_within(*parent) < depth {
                let (nodes, left_out) = cut.by_stats(nodes, |node| (self.stats(*node), node.0));
                self.children.insert(*parent, ShownGroups { nodes, left_out });
            }
        }
        self.all_children = children;
        let opened = self.innermost(depth, cut, (times, leaking), cancel)?;
        if let Some(rows) = criteria.rows {
            self.keep_rows(rows);
        }
        Ok(opened)
    }

    /// Shows only some innermost groups and the groups they are in.
    fn keep_rows(&mut self, rows: TopN) {
        let leaves: Vec<NodeIdx> = self.leaves().collect();
        let kept = leaves.get(rows.range(leaves.len())).unwrap_or_default();
        self.rows_left_out = leaves.len() - kept.len();
        let kept: HashSet<NodeIdx> =
            kept.iter().flat_map(|leaf| self.with_parents(*leaf)).collect();
        let is_kept = |node: &NodeIdx| kept.contains(node);
        let mut children = std::mem::take(&mut self.children);
        children.retain(|parent, _| *parent == sentinel() || is_kept(&NodeIdx(*parent)));
        for ShownGroups { nodes, left_out } in children.values_mut() {
            for node in nodes.extract_if(.., |node| !is_kept(node)) {
                left_out.groups += 1;
                left_out.handles += u64::from(self.stats(node).handles);
            }
        }
        self.children = children;
    }

    /// Makes the groups of the innermost level.
    fn innermost(
        &mut self,
        depth: usize,
        cut: GroupCut<'_>,
        (times, leaking): (&HandleTimes, Option<&LeakingStacks<'_>>),
        cancel: &Cancel,
    ) -> Result<Vec<AcquisitionIdx>, Cancelled> {
        let keeps_handles = cut.criteria.keeps_members();
        let mut is_shown = vec![false; self.leaves.len()];
        if depth == self.levels {
            let parents = self
                .shown()
                .filter(|node| self.level_and_code(*node).0 + 2 == depth)
                .map(|node| node.0 as usize + 1)
                .chain((depth == 1).then_some(0));
            for slot in parents {
                if let Some(is_shown) = is_shown.get_mut(slot) {
                    *is_shown = true;
                }
            }
        }
        let level = depth.saturating_sub(1) as u32;
        let (leaves, parts) = (std::mem::take(&mut self.leaves), std::mem::take(&mut self.parts));
        let leaves = leaves.into_par_iter().zip(is_shown);
        let innermost = leaves.map_init(NumberMap::default, |slots, (leaves, is_shown)| {
            cancel.check()?;
            let mut innermost = Innermost::default();
            if keeps_handles || (is_shown && cut.criteria.order.is_some()) {
                let (groups, opened) = leaves.sorted(&parts).groups(times, leaking);
                if keeps_handles {
                    innermost.opened = opened;
                }
                if is_shown {
                    innermost.shown = Some(cut.by_stats(&groups, |leaf| (leaf.stats, leaf.code)));
                }
            } else if is_shown {
                innermost.shown = Some(ranked::shown(&leaves, &parts, cut, times, slots));
            }
            Ok(innermost)
        });
        let innermost: Vec<Innermost> = innermost.collect::<Result<_, _>>()?;
        let mut opened = Vec::new();
        for (slot, innermost) in innermost.into_iter().enumerate() {
            let start = opened.len() as u32;
            opened.extend(innermost.opened);
            let parent = slot.checked_sub(1).map_or(sentinel(), |node| node as u32);
            if let Some(node) = self.nodes.get_mut(parent as usize) {
                node.handles = start..opened.len() as u32;
            }
            let Some((leaves, left_out)) = innermost.shown else { continue };
            let first = self.nodes.len() as u32;
            self.nodes.extend(leaves.into_iter().map(|Leaf { code, opened, stats }| {
                let handles = start + opened.start..start + opened.end;
                GroupNode { parent, code, level, handles, stats }
            }));
            let nodes = (first..self.nodes.len() as u32).map(NodeIdx).collect();
            self.children.insert(parent, ShownGroups { nodes, left_out });
        }
        self.levels = depth;
        Ok(opened)
    }

    /// Returns the handles of a group, as ranges of their order.
    pub fn handles(&self, node: NodeIdx) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut ahead = vec![node];
        while let Some(node) = ahead.pop() {
            match (self.all_children.get(&node.0), self.nodes.get(node.0 as usize)) {
                (Some(children), _) => ahead.extend(children.iter().rev()),
                (None, Some(leaf)) => {
                    ranges.push(leaf.handles.start as usize..leaf.handles.end as usize);
                }
                (None, None) => {}
            }
        }
        ranges
    }

    /// Returns the level of what is in a group.
    fn level_within(&self, parent: u32) -> usize {
        self.nodes.get(parent as usize).map_or(0, |node| node.level as usize + 1)
    }

    /// Returns the shown groups within a group, or the outermost ones.
    pub fn children(&self, parent: Option<NodeIdx>) -> &[NodeIdx] {
        let shown = self.children.get(&parent.map_or(sentinel(), |node| node.0));
        shown.map_or(&[], |shown| shown.nodes.as_slice())
    }

    /// Returns what is left out within a group.
    pub fn left_out(&self, parent: Option<NodeIdx>) -> GroupsLeftOut {
        let shown = self.children.get(&parent.map_or(sentinel(), |node| node.0));
        shown.map_or_else(GroupsLeftOut::default, |shown| shown.left_out)
    }

    /// Returns the number of innermost groups that `-Rows` left out.
    pub fn rows_left_out(&self) -> usize {
        self.rows_left_out
    }

    /// Returns every shown group, each before those within it.
    pub fn shown(&self) -> impl Iterator<Item = NodeIdx> {
        let mut ahead: Vec<NodeIdx> = self.children(None).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let node = ahead.pop()?;
            ahead.extend(self.children(Some(node)).iter().rev());
            Some(node)
        })
    }

    /// Returns the shown groups of the innermost level.
    pub fn leaves(&self) -> impl Iterator<Item = NodeIdx> {
        self.shown().filter(|node| self.level_and_code(*node).0 + 1 == self.levels)
    }

    /// Returns a group and its ancestors, innermost first.
    pub fn with_parents(&self, node: NodeIdx) -> impl Iterator<Item = NodeIdx> {
        std::iter::successors(Some(node), |node| {
            let parent = self.nodes.get(node.0 as usize)?.parent;
            (parent != sentinel()).then_some(NodeIdx(parent))
        })
    }

    /// Returns the sums over the handles in all groups.
    pub fn all(&self) -> HandleSums {
        self.all
    }

    /// Returns the stats of a group.
    pub fn stats(&self, node: NodeIdx) -> GroupStats {
        self.nodes.get(node.0 as usize).map_or_else(GroupStats::default, |node| node.stats)
    }

    /// Returns the level of a group (outermost is 0) and its code in the column of that level.
    pub fn level_and_code(&self, node: NodeIdx) -> (usize, u32) {
        let node = self.nodes.get(node.0 as usize);
        node.map_or((0, sentinel()), |node| (node.level as usize, node.code))
    }
}

/// The innermost groups within one group of the level above.
#[derive(Default)]
struct Innermost {
    /// Opened handles of the groups, if they are kept.
    opened: Vec<AcquisitionIdx>,
    /// Shown groups and what is left out, if any are shown.
    shown: Option<(Vec<Leaf>, GroupsLeftOut)>,
}
