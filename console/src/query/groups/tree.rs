//! Groups within groups.

use std::cmp::Reverse;
use std::ops::Range;

use handlescope_model::sentinel;
use hashbrown::HashMap;
use rayon::prelude::*;

use super::counted::{Counted, Opened};
use super::figures::Figures;
use super::leaves::{Leaf, Leaves};
use crate::cancel::{Cancel, Cancelled};
use crate::query::criteria::GroupCriteria;
use crate::values::TopN;

/// A group: a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(u32);

struct Node {
    parent: u32,
    code: u32,
    level: u32,
    /// The handles of a group of the innermost level, as part of what [`GroupTree::arrange`] returns.
    handles: Range<u32>,
    figures: Figures,
}

/// Groups of groups: on each level those that lose most first.
///
pub struct GroupTree {
    /// Those of the innermost level are the last.
    nodes: Vec<Node>,
    /// The handles of the groups of the innermost level, by the node above them and 1; those that have none
    /// first.
    leaves: Vec<Leaves>,
    by_key: NodesByKey,
    levels: usize,
    /// The numbers and groups of the last handle, from the outermost level on.
    last: Vec<(u32, u32)>,
    /// For each group that is shown those within it that are shown; first those that are in none.
    children: HashMap<u32, Shown>,
    /// For each group all those within it, without those of the innermost level.
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
            leaves: Vec::new(),
            by_key: NodesByKey::default(),
            levels,
            last: Vec::new(),
            children: HashMap::new(),
            all_children: HashMap::new(),
        }
    }

    /// Counts a handle in its groups on all levels but the innermost, and keeps it for that one.
    pub(super) fn add(&mut self, codes: &[u32], handle: Counted) {
        let none: u32 = sentinel();
        let (innermost, outer) = codes.split_last().unwrap_or((&none, &[]));
        let same = self.last.iter().zip(outer).take_while(|(last, code)| last.0 == **code).count();
        self.last.truncate(same);
        for (level, &code) in outer.iter().enumerate().skip(same) {
            let parent = self.last.last().map_or(sentinel(), |(_, node)| *node);
            let next = self.nodes.len() as u32;
            let node = self.by_key.of(parent, code, next);
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
        let place = self.last.last().map_or(0, |(_, node)| *node as usize + 1);
        if self.leaves.len() <= place {
            self.leaves.resize_with(place + 1, Leaves::default);
        }
        if let Some(leaves) = self.leaves.get_mut(place) {
            leaves.push(*innermost, handle);
        }
    }

    /// Orders the groups of each level and cuts them as the criteria say; only of those of the innermost
    /// level that are shown anything is known afterwards.
    ///
    /// Returns the handles of all groups that an event opened, if the criteria keep them.
    pub(super) fn arrange(
        &mut self,
        criteria: &GroupCriteria,
        top: Option<TopN>,
        cancel: &Cancel,
    ) -> Result<Vec<Opened>, Cancelled> {
        self.by_key = NodesByKey::default();
        let mut children: HashMap<u32, Vec<NodeIdx>> = HashMap::new();
        for (index, node) in (0..).zip(&self.nodes) {
            children.entry(node.parent).or_default().push(NodeIdx(index));
        }
        let cut = Cut { criteria, top };
        let depth = criteria.depth.unwrap_or(self.levels).clamp(1, self.levels.max(1));
        for (parent, nodes) in &children {
            if self.level_within(*parent) < depth {
                let (nodes, left_out) = cut.of(nodes, |node| self.figures(*node));
                self.children.insert(*parent, Shown { nodes, left_out });
            }
        }
        self.all_children = children;
        self.innermost(depth, cut, cancel)
    }

    /// Makes the groups of the innermost level.
    fn innermost(
        &mut self,
        depth: usize,
        cut: Cut<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<Opened>, Cancelled> {
        let keeps_handles = cut.criteria.keeps_handles();
        let mut is_shown = vec![false; self.leaves.len()];
        if depth == self.levels {
            let parents = self.shown().filter(|node| self.place(*node).0 + 2 == depth);
            let parents = parents.map(|node| node.0 as usize + 1).chain((depth == 1).then_some(0));
            for place in parents {
                if let Some(is_shown) = is_shown.get_mut(place) {
                    *is_shown = true;
                }
            }
        }
        let level = depth.saturating_sub(1) as u32;
        let all = std::mem::take(&mut self.leaves);
        let made = all.into_par_iter().zip(is_shown).map(|(leaves, is_shown)| {
            cancel.check()?;
            let is_needed = is_shown || keeps_handles;
            let sorted = is_needed.then(|| leaves.sorted());
            let opened = sorted.as_ref().filter(|_| keeps_handles).map(|sorted| sorted.opened());
            let shown = sorted.as_ref().filter(|_| is_shown);
            Ok(Made {
                opened: opened.into_iter().flatten().collect(),
                shown: shown
                    .map(|all| cut.of(&all.groups().collect::<Vec<_>>(), |leaf| leaf.figures)),
            })
        });
        let made: Vec<Made> = made.collect::<Result<_, _>>()?;
        let mut opened = Vec::new();
        for (place, made) in made.into_iter().enumerate() {
            let start = opened.len() as u32;
            opened.extend(made.opened);
            let parent = place.checked_sub(1).map_or(sentinel(), |node| node as u32);
            if let Some(node) = self.nodes.get_mut(parent as usize) {
                node.handles = start..opened.len() as u32;
            }
            let Some((leaves, left_out)) = made.shown else { continue };
            let first = self.nodes.len() as u32;
            self.nodes.extend(leaves.into_iter().map(|Leaf { code, opened, figures }| {
                let handles = start + opened.start..start + opened.end;
                Node { parent, code, level, handles, figures }
            }));
            let nodes = (first..self.nodes.len() as u32).map(NodeIdx).collect();
            self.children.insert(parent, Shown { nodes, left_out });
        }
        self.levels = depth;
        Ok(opened)
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

/// The nodes by the node above them and their number in the column.
#[derive(Default)]
struct NodesByKey {
    /// Of small numbers, by the node above and 1, and then by number: [`sentinel`] for none.
    near: Vec<Vec<u32>>,
    far: HashMap<(u32, u32), u32>,
}

impl NodesByKey {
    /// Numbers of processes, types and lifetimes are below.
    const NEAR: u32 = 1 << 10;

    /// The node of a key, which is `next` for a new one.
    fn of(&mut self, parent: u32, code: u32, next: u32) -> u32 {
        if code >= Self::NEAR {
            return *self.far.entry((parent, code)).or_insert(next);
        }
        let (place, code) = (parent.wrapping_add(1) as usize, code as usize);
        if self.near.len() <= place {
            self.near.resize_with(place + 1, Vec::new);
        }
        let Some(codes) = self.near.get_mut(place) else { return next };
        if codes.len() <= code {
            codes.resize(code + 1, sentinel());
        }
        match codes.get_mut(code) {
            Some(node) if *node == sentinel() => {
                *node = next;
                next
            }
            node => node.map_or(next, |node| *node),
        }
    }
}

/// The groups of the innermost level that are within one of the level above.
struct Made {
    /// Their handles that an event opened, if they are kept.
    opened: Vec<Opened>,
    /// Those that are shown, if any are, and what is left out.
    shown: Option<(Vec<Leaf>, GroupsLeftOut)>,
}

/// Which groups of a level are shown, and in which order.
#[derive(Clone, Copy)]
struct Cut<'a> {
    criteria: &'a GroupCriteria,
    top: Option<TopN>,
}

impl Cut<'_> {
    /// Those of some groups that are shown, and what is left out.
    fn of<T: Clone>(
        self,
        groups: &[T],
        figures: impl Fn(&T) -> Figures,
    ) -> (Vec<T>, GroupsLeftOut) {
        let mut before = 0;
        let mut order = Vec::with_capacity(groups.len());
        for (at, group) in groups.iter().enumerate() {
            let figures = figures(group);
            before += u64::from(figures.handles);
            if u64::from(figures.handles) >= self.criteria.min_count {
                let first = self.criteria.order.and_then(|figure| figures.get(figure));
                let lost = (figures.lost(), figures.open_at_end, figures.handles);
                order.push((Reverse((first, lost)), at));
            }
        }
        let TopN { take, skip } = self.top.unwrap_or(TopN { take: usize::MAX, skip: 0 });
        let end = skip.saturating_add(take).min(order.len());
        if end < order.len() {
            // The others need not be sorted.
            order.select_nth_unstable(end);
            order.truncate(end);
        }
        order.sort_unstable();
        let shown = order.iter().skip(skip).filter_map(|(_, at)| groups.get(*at));
        let shown: Vec<T> = shown.cloned().collect();
        let handles: u64 = shown.iter().map(|group| u64::from(figures(group).handles)).sum();
        let left_out =
            GroupsLeftOut { groups: groups.len() - shown.len(), handles: before - handles };
        (shown, left_out)
    }
}
