//! Groups within groups.

use std::cmp::Reverse;
use std::ops::Range;

use handlescope_model::sentinel;
use hashbrown::HashMap;

use super::counted::Counted;
use super::figures::Figures;
use crate::query::criteria::GroupCriteria;
use crate::values::TopN;

/// A group: a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(u32);

struct Node {
    parent: u32,
    code: u32,
    level: u32,
    /// The handles of a group of the innermost level, in the order of [`GroupTree::finish`].
    handles: Range<u32>,
    figures: Figures,
}

/// Groups of groups: on each level those that lose most first.
///
/// The groups of the innermost level may be millions, so they are made of sorted handles, and only the
/// others are searched for each handle.
pub struct GroupTree {
    /// Those of the innermost level are the last.
    nodes: Vec<Node>,
    by_key: HashMap<(u32, u32), u32>,
    levels: usize,
    /// The numbers and groups of the last handle, from the outermost level on.
    last: Vec<(u32, u32)>,
    /// For each group that is shown those within it that are shown; first those that are in none.
    children: HashMap<u32, Shown>,
    /// For each group of an inner level all those within it.
    all_children: HashMap<u32, Vec<NodeIdx>>,
}

/// The groups within a group that are shown, and what was left out of them.
#[derive(Debug, Clone, Default)]
struct Shown {
    nodes: Vec<NodeIdx>,
    left_out: GroupsLeftOut,
}

/// Groups that are not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupsLeftOut {
    /// How many.
    pub groups: usize,
    /// Handles and views in them.
    pub handles: u64,
}

impl Node {
    fn new(parent: u32, code: u32, level: usize) -> Self {
        Self { parent, code, level: level as u32, handles: 0..0, figures: Figures::default() }
    }
}

impl GroupTree {
    pub(super) fn new(levels: usize) -> Self {
        Self {
            nodes: Vec::new(),
            by_key: HashMap::new(),
            levels,
            last: Vec::new(),
            children: HashMap::new(),
            all_children: HashMap::new(),
        }
    }

    /// Counts a handle in its groups on all levels but the innermost; returns what it is to be sorted by
    /// for that one.
    pub(super) fn add(&mut self, codes: &[u32], handle: Counted) -> u64 {
        let none: u32 = sentinel();
        let (innermost, outer) = codes.split_last().unwrap_or((&none, &[]));
        let same = self.last.iter().zip(outer).take_while(|(last, code)| last.0 == **code).count();
        self.last.truncate(same);
        for (level, &code) in outer.iter().enumerate().skip(same) {
            let parent = self.last.last().map_or(sentinel(), |(_, node)| *node);
            let next = self.nodes.len() as u32;
            let node = *self.by_key.entry((parent, code)).or_insert(next);
            if node == next {
                self.nodes.push(Node::new(parent, code, level));
            }
            self.last.push((code, node));
        }
        for (_, node) in &self.last {
            if let Some(node) = self.nodes.get_mut(*node as usize) {
                node.figures.add(handle);
            }
        }
        let parent: u32 = self.last.last().map_or(sentinel(), |(_, node)| *node);
        u64::from(parent) << u32::BITS | u64::from(*innermost)
    }

    /// Makes the groups of the innermost level, of handles given with what [`GroupTree::add`] said of them
    /// and sorted by it.
    pub(super) fn finish(&mut self, sorted: &[(u64, u32)], handles: &[Counted]) {
        let mut opened = 0;
        for group in sorted.chunk_by(|one, other| one.0 == other.0) {
            let Some((key, _)) = group.first() else { continue };
            let (parent, code) = ((key >> u32::BITS) as u32, *key as u32);
            let mut node = Node::new(parent, code, self.levels.saturating_sub(1));
            node.handles.start = opened;
            for handle in group.iter().filter_map(|(_, row)| handles.get(*row as usize)) {
                node.figures.add(*handle);
                opened += u32::from(handle.is_opened());
            }
            node.handles.end = opened;
            self.nodes.push(node);
        }
    }

    /// Orders the groups of each level and cuts them as the criteria say.
    pub(super) fn arrange(&mut self, criteria: &GroupCriteria, top: Option<TopN>) {
        let mut children: HashMap<u32, Vec<NodeIdx>> = HashMap::new();
        for (index, node) in (0..).zip(&self.nodes) {
            children.entry(node.parent).or_default().push(NodeIdx(index));
        }
        let depth = criteria.depth.unwrap_or(self.levels).clamp(1, self.levels.max(1));
        let parents = children.iter().filter(|(parent, _)| self.level_within(**parent) < depth);
        self.children = parents
            .map(|(parent, nodes)| (*parent, self.cut(nodes.clone(), criteria, top)))
            .collect();
        self.levels = depth;
        self.by_key = HashMap::new();
        self.all_children = children;
    }

    /// The handles of a group, as parts of their order.
    pub(super) fn handles(&self, node: NodeIdx) -> Vec<Range<usize>> {
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

    /// The level of what is in a group.
    fn level_within(&self, parent: u32) -> usize {
        self.nodes.get(parent as usize).map_or(0, |node| node.level as usize + 1)
    }

    fn cut(&self, mut nodes: Vec<NodeIdx>, criteria: &GroupCriteria, top: Option<TopN>) -> Shown {
        nodes.sort_by_cached_key(|node| {
            let figures = self.figures(*node);
            let first = criteria.order.and_then(|figure| figures.get(figure));
            let lost = (figures.lost(), figures.open_at_end, figures.handles);
            Reverse((first, lost, Reverse(*node)))
        });
        let all = nodes.len();
        let handles = |nodes: &[NodeIdx]| -> u64 {
            nodes.iter().map(|node| u64::from(self.figures(*node).handles)).sum()
        };
        let before = handles(&nodes);
        nodes.retain(|node| u64::from(self.figures(*node).handles) >= criteria.min_count);
        if let Some(TopN { take, skip }) = top {
            nodes = nodes.into_iter().skip(skip).take(take).collect();
        }
        let left_out =
            GroupsLeftOut { groups: all - nodes.len(), handles: before - handles(&nodes) };
        Shown { nodes, left_out }
    }

    /// The groups within a group that are shown, or the outermost ones.
    pub fn children(&self, parent: Option<NodeIdx>) -> &[NodeIdx] {
        let shown = self.children.get(&parent.map_or(sentinel(), |node| node.0));
        shown.map_or(&[], |shown| shown.nodes.as_slice())
    }

    /// What is left out of the groups within a group.
    pub fn left_out(&self, parent: Option<NodeIdx>) -> GroupsLeftOut {
        let shown = self.children.get(&parent.map_or(sentinel(), |node| node.0));
        shown.map_or_else(GroupsLeftOut::default, |shown| shown.left_out)
    }

    /// Every group that is shown, each before those within it.
    pub fn shown(&self) -> impl Iterator<Item = NodeIdx> {
        let mut ahead: Vec<NodeIdx> = self.children(None).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let node = ahead.pop()?;
            ahead.extend(self.children(Some(node)).iter().rev());
            Some(node)
        })
    }

    /// The groups of the innermost level that are shown.
    pub fn leaves(&self) -> impl Iterator<Item = NodeIdx> {
        self.shown().filter(|node| self.place(*node).0 + 1 == self.levels)
    }

    /// A group and those it is in, from the inside out.
    pub fn with_parents(&self, node: NodeIdx) -> impl Iterator<Item = NodeIdx> {
        let parent = |node: &NodeIdx| {
            let parent = self.nodes.get(node.0 as usize)?.parent;
            (parent != sentinel()).then_some(NodeIdx(parent))
        };
        std::iter::successors(Some(node), parent)
    }

    /// What is counted of a group.
    pub fn figures(&self, node: NodeIdx) -> Figures {
        self.nodes.get(node.0 as usize).map_or_else(Figures::default, |node| node.figures)
    }

    /// The level of a group, the outermost being 0, and its number in the column of that level.
    pub(super) fn place(&self, node: NodeIdx) -> (usize, u32) {
        let known = self.nodes.get(node.0 as usize);
        known.map_or((0, sentinel()), |node| (node.level as usize, node.code))
    }
}
