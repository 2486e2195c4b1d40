//! Groups within groups.

use std::cmp::Reverse;

use handlescope_model::sentinel;
use hashbrown::HashMap;

use super::figures::Figures;
use super::lives::Life;
use crate::query::criteria::GroupCriteria;
use crate::values::TopN;

/// A group: a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(u32);

struct Node {
    parent: u32,
    code: u32,
    level: u32,
    figures: Figures,
}

/// Groups of groups: on each level those that lose most first.
pub struct GroupTree {
    nodes: Vec<Node>,
    by_key: HashMap<(u32, u32), u32>,
    levels: usize,
    /// The numbers and groups of the last handle, from the outermost level on.
    last: Vec<(u32, u32)>,
    /// For each group that is shown those within it that are shown; first those that are in none.
    children: HashMap<u32, Shown>,
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

impl GroupTree {
    pub(super) fn new(levels: usize) -> Self {
        Self {
            nodes: Vec::new(),
            by_key: HashMap::new(),
            levels,
            last: Vec::new(),
            children: HashMap::new(),
        }
    }

    /// Counts a handle in its groups on all levels; returns the innermost of them.
    pub(super) fn add(&mut self, codes: &[u32], life: &Life) -> NodeIdx {
        let same = self.last.iter().zip(codes).take_while(|(last, code)| last.0 == **code).count();
        self.last.truncate(same);
        for (level, &code) in codes.iter().enumerate().skip(same) {
            let parent = self.last.last().map_or(sentinel(), |(_, node)| *node);
            let next = self.nodes.len() as u32;
            let node = *self.by_key.entry((parent, code)).or_insert(next);
            if node == next {
                let (level, figures) = (level as u32, Figures::default());
                self.nodes.push(Node { parent, code, level, figures });
            }
            self.last.push((code, node));
        }
        for (_, node) in &self.last {
            if let Some(node) = self.nodes.get_mut(*node as usize) {
                node.figures.add(life);
            }
        }
        NodeIdx(self.last.last().map_or(sentinel(), |(_, node)| *node))
    }

    /// Orders the groups of each level and cuts them as the criteria say.
    pub(super) fn arrange(&mut self, criteria: &GroupCriteria, top: Option<TopN>) {
        let mut children: HashMap<u32, Vec<NodeIdx>> = HashMap::new();
        for (index, node) in (0..).zip(&self.nodes) {
            children.entry(node.parent).or_default().push(NodeIdx(index));
        }
        let depth = criteria.depth.unwrap_or(self.levels).clamp(1, self.levels.max(1));
        self.children = children
            .into_iter()
            .filter(|(parent, _)| self.level_within(*parent) < depth)
            .map(|(parent, nodes)| (parent, self.cut(nodes, criteria, top)))
            .collect();
        self.levels = depth;
        self.by_key = HashMap::new();
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

    /// The level of a group, the outermost being 0.
    pub(super) fn level(&self, node: NodeIdx) -> usize {
        self.place(node).0
    }

    /// The level of a group, the outermost being 0, and its number in the column of that level.
    pub(super) fn place(&self, node: NodeIdx) -> (usize, u32) {
        let known = self.nodes.get(node.0 as usize);
        known.map_or((0, sentinel()), |node| (node.level as usize, node.code))
    }
}
