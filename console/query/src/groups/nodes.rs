//! Groups as nodes of a tree, found by the group they are in and their numbers.

use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use handlescope_model::sentinel;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A group, with its stats.
pub struct Node<S> {
    /// The group it is in, [`sentinel`] for none.
    pub parent: u32,
    /// Number in the column of its level, the first one if there are several.
    pub code: u32,
    /// The outermost is 0.
    pub level: u32,
    /// Handles of a group of the innermost level, as part of what
    /// [`GroupTree::arrange`](super::tree::GroupTree::arrange) returns.
    pub handles: Range<u32>,
    pub stats: S,
}

/// Groups of several levels, in the order of their first rows.
pub struct Nodes<S> {
    nodes: Vec<Node<S>>,
    /// The numbers of each node: one, or as many as there are columns where these make one level.
    codes: Vec<u32>,
    /// Nodes with one small number, by the node above plus 1, and then by number plus 1: [`sentinel`] for none.
    near: Vec<Vec<u32>>,
    /// The others, each with its hash.
    far: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
}

impl<S> Default for Nodes<S> {
    fn default() -> Self {
        let (near, far, hasher) = (Vec::new(), HashTable::new(), DefaultHashBuilder::default());
        Self { nodes: Vec::new(), codes: Vec::new(), near, far, hasher }
    }
}

impl<S: Default> Nodes<S> {
    /// Numbers of processes, types and lifetimes are below.
    const DENSE_LIMIT: usize = 1 << 10;

    /// The same within groups of which there are many.
    const DENSE_LIMIT_OF_MANY: usize = 1 << 6;

    /// The group of some numbers within a group, made if there is none; all have as many numbers.
    pub fn of(&mut self, parent: u32, codes: &[u32], level: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let node = match self.near(parent, codes) {
            Some(node) if *node == sentinel() => {
                *node = next;
                next
            }
            Some(node) => *node,
            None => self.far(parent, codes, next),
        };
        if node == next {
            let code = codes.first().copied().unwrap_or(sentinel());
            self.nodes.push(Node { parent, code, level, handles: 0..0, stats: S::default() });
            self.codes.extend(codes);
        }
        node
    }

    /// The place of a node with one small number.
    fn near(&mut self, parent: u32, codes: &[u32]) -> Option<&mut u32> {
        let [code] = codes else { return None };
        let (slot, index) = (parent.wrapping_add(1) as usize, code.wrapping_add(1) as usize);
        let is_one_of_many = slot >= Self::DENSE_LIMIT;
        if index >= if is_one_of_many { Self::DENSE_LIMIT_OF_MANY } else { Self::DENSE_LIMIT } {
            return None;
        }
        if self.near.len() <= slot {
            self.near.resize_with(slot + 1, Vec::new);
        }
        let nodes = self.near.get_mut(slot)?;
        if nodes.len() <= index {
            nodes.resize(index + 1, sentinel());
        }
        nodes.get_mut(index)
    }

    /// Another node, which is `next` for a new one.
    fn far(&mut self, parent: u32, codes: &[u32], next: u32) -> u32 {
        let mut hash = self.hasher.build_hasher();
        parent.hash(&mut hash);
        // Single numbers are hashed in registers, a slice in memory.
        codes.iter().for_each(|code| code.hash(&mut hash));
        let hash = std::hash::Hasher::finish(&hash);
        let Self { nodes, codes: known, .. } = self;
        let is_equal = |(known_hash, node): &(u64, u32)| {
            let (node, width) = (*node as usize, codes.len());
            *known_hash == hash
                && nodes.get(node).is_some_and(|node| node.parent == parent)
                && known.get(node * width..(node + 1) * width) == Some(codes)
        };
        self.far.entry(hash, is_equal, |(hash, _)| *hash).or_insert((hash, next)).get().1
    }

    /// Stats of a group, to be changed.
    pub fn stats_mut(&mut self, node: u32) -> Option<&mut S> {
        self.nodes.get_mut(node as usize).map(|node| &mut node.stats)
    }

    /// Adds the groups of rows that come after all others; returns the place of each.
    pub fn add_all(&mut self, part: &Self, add: impl Fn(&mut S, &S)) -> Vec<u32> {
        let mut places: Vec<u32> = Vec::with_capacity(part.nodes.len());
        let width = part.codes.len() / part.nodes.len().max(1);
        for (node, codes) in part.nodes.iter().zip(part.codes.chunks(width.max(1))) {
            let parent = places.get(node.parent as usize).copied().unwrap_or(sentinel());
            let place = self.of(parent, codes, node.level);
            if let Some(stats) = self.stats_mut(place) {
                add(stats, &node.stats);
            }
            places.push(place);
        }
        places
    }

    /// The groups, each after the one it is in, and the numbers of all of them.
    pub fn into_nodes(self) -> (Vec<Node<S>>, Vec<u32>) {
        (self.nodes, self.codes)
    }
}

/// The numbers and groups of the last row, from the outermost level on.
#[derive(Default)]
pub struct Path {
    codes: Vec<u32>,
    nodes: Vec<u32>,
}

impl Path {
    /// Goes to the groups of a row by what it has in the columns of each level; returns the innermost one.
    pub fn follow<'c, S: Default>(
        &mut self,
        levels: impl Iterator<Item = &'c [Vec<u32>]>,
        at: usize,
        nodes: &mut Nodes<S>,
    ) -> Option<u32> {
        let code = |codes: &Vec<u32>| codes.get(at).copied().unwrap_or(sentinel());
        let mut start = 0;
        for (level, columns) in levels.enumerate() {
            let end = start + columns.len();
            let last = self.codes.get(start..end).unwrap_or_default();
            if level >= self.nodes.len() || !columns.iter().map(code).eq(last.iter().copied()) {
                self.codes.truncate(start);
                self.nodes.truncate(level);
                self.codes.extend(columns.iter().map(code));
                let parent = self.nodes.last().copied().unwrap_or(sentinel());
                let codes = self.codes.get(start..).unwrap_or_default();
                self.nodes.push(nodes.of(parent, codes, level as u32));
            }
            start = end;
        }
        self.nodes.last().copied()
    }

    /// The groups, from the outermost level on.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of rows of each group of two levels, in the order of the groups.
    fn counted(rows: &[[u32; 2]], columns_of_level: usize) -> Nodes<usize> {
        let columns = [0, 1].map(|column| rows.iter().map(|row| row[column]).collect::<Vec<_>>());
        let (mut nodes, mut path) = (Nodes::default(), Path::default());
        for at in 0..rows.len() {
            path.follow(columns.chunks(columns_of_level), at, &mut nodes);
            for node in path.nodes() {
                *nodes.stats_mut(node).expect("a group") += 1;
            }
        }
        nodes
    }

    #[test]
    fn groups_of_parts_are_those_of_all_rows_whether_numbers_are_small_or_large() {
        let numbers = [sentinel(), 0, 1, 62, 63, 64, 1022, 1023, 1024, 70_000];
        // More groups than have a place for each number within.
        let many = (0..3000).map(|row| [row * 7 % 2500, numbers[row as usize % numbers.len()]]);
        let rows: Vec<[u32; 2]> = many.clone().chain(many.rev()).collect();
        let mut pairs = rows.clone();
        pairs.sort_unstable();
        pairs.dedup();
        for (columns_of_level, groups) in [(1, 2500 + pairs.len()), (2, pairs.len())] {
            let whole = counted(&rows, columns_of_level).into_nodes();
            assert_eq!(whole.0.len(), groups);
            for cut in [0, 1, 2999, rows.len()] {
                let (first, rest) = rows.split_at(cut);
                let mut sum = counted(first, columns_of_level);
                sum.add_all(&counted(rest, columns_of_level), |sum, count| *sum += count);
                let (nodes, codes) = sum.into_nodes();
                let facts = |node: &Node<usize>| (node.parent, node.code, node.level, node.stats);
                assert!(nodes.iter().map(facts).eq(whole.0.iter().map(facts)), "cut at {cut}");
                assert_eq!(codes, whole.1);
            }
        }
    }
}
