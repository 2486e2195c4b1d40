//! Groups as nodes of a tree, found by the group they are in and their number.

use std::ops::Range;

use handlescope_model::sentinel;
use hashbrown::HashMap;

use super::stats::Stats;

/// A group.
pub struct Node {
    /// The group it is in, [`sentinel`] for none.
    pub parent: u32,
    /// Number in the column of its level.
    pub code: u32,
    /// The outermost is 0.
    pub level: u32,
    /// Handles of a group of the innermost level, as part of what
    /// [`GroupTree::arrange`](super::tree::GroupTree::arrange) returns.
    pub handles: Range<u32>,
    pub stats: Stats,
}

/// Groups of all levels but the innermost, in the order of their first handles.
#[derive(Default)]
pub struct OuterGroups {
    nodes: Vec<Node>,
    by_key: NodesByKey,
}

impl OuterGroups {
    /// The group of a number within a group, made if there is none.
    pub fn of(&mut self, parent: u32, code: u32, level: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let node = self.by_key.of(parent, code, next);
        if node == next {
            let stats = Stats::default();
            self.nodes.push(Node { parent, code, level, handles: 0..0, stats });
        }
        node
    }

    /// Stats of a group, to be changed.
    pub fn stats_mut(&mut self, node: u32) -> Option<&mut Stats> {
        self.nodes.get_mut(node as usize).map(|node| &mut node.stats)
    }

    /// The groups, each after the one it is in.
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }
}

/// The nodes by the node above them and their number in the column.
#[derive(Default)]
struct NodesByKey {
    /// Nodes with small numbers, by the node above plus 1, and then by number: [`sentinel`] for none.
    near: Vec<Vec<u32>>,
    far: HashMap<(u32, u32), u32>,
}

impl NodesByKey {
    /// Numbers of processes, types and lifetimes are below.
    const DENSE_LIMIT: u32 = 1 << 10;

    /// The node of a key, which is `next` for a new one.
    fn of(&mut self, parent: u32, code: u32, next: u32) -> u32 {
        if code >= Self::DENSE_LIMIT {
            return *self.far.entry((parent, code)).or_insert(next);
        }
        let (slot, code) = (parent.wrapping_add(1) as usize, code as usize);
        if self.near.len() <= slot {
            self.near.resize_with(slot + 1, Vec::new);
        }
        let Some(codes) = self.near.get_mut(slot) else { return next };
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
