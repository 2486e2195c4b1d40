//! Groups as nodes of a tree, found by parent and codes.

use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use handlescope_model::sentinel;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A group with its stats.
pub struct GroupNode<S> {
    /// The parent group; [`sentinel`] for none.
    pub parent: u32,
    /// Code in the column of its level; the first one if there are several columns.
    pub code: u32,
    /// Level; the outermost is 0.
    pub level: u32,
    /// Handles of an innermost group, as a range of what [`GroupTree::arrange`](super::tree::GroupTree::arrange)
    /// returns.
    pub handles: Range<u32>,
    pub stats: S,
}

/// Groups of several levels, in the order of their first rows.
pub struct GroupNodes<S> {
    nodes: Vec<GroupNode<S>>,
    /// The codes of each node: one, or several if several columns make one level.
    codes: Vec<u32>,
    /// Nodes with one small code, by parent plus 1 and then code plus 1; [`sentinel`] for none.
    near: Vec<Vec<u32>>,
    /// All other nodes with their hashes.
    far: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
}

impl<S> Default for GroupNodes<S> {
    fn default() -> Self {
        let (near, far, hasher) = (Vec::new(), HashTable::new(), DefaultHashBuilder::default());
        Self { nodes: Vec::new(), codes: Vec::new(), near, far, hasher }
    }
}

impl<S: Default> GroupNodes<S> {
    /// Codes below this are small, such as codes of processes, types and lifetimes.
    const DENSE_LIMIT: usize = 1 << 10;

    /// The same limit within a group that is one of many.
    const DENSE_LIMIT_OF_MANY: usize = 1 << 6;

    /// Returns the group with these codes within `parent`; adds it if there is none. All groups have equally many
    /// codes.
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
            self.nodes.push(GroupNode { parent, code, level, handles: 0..0, stats: S::default() });
            self.codes.extend(codes);
        }
        node
    }

    /// Returns the slot of a node with one small code.
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

    /// Returns any other node; `next` if it is new.
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

    /// Returns the stats of a group for changing.
    pub fn stats_mut(&mut self, node: u32) -> Option<&mut S> {
        self.nodes.get_mut(node as usize).map(|node| &mut node.stats)
    }

    /// Adds the groups of rows that come after all others; returns the index of each.
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

    /// Returns the groups, each after its parent, and the codes of all groups.
    pub fn into_nodes(self) -> (Vec<GroupNode<S>>, Vec<u32>) {
        (self.nodes, self.codes)
    }
}

/// The codes and groups of the last row, from the outermost level on.
#[derive(Default)]
pub struct Path {
    codes: Vec<u32>,
    nodes: Vec<u32>,
}

impl Path {
    /// Moves to the groups of a row by its codes in the columns of each level; returns the innermost group.
    pub fn follow<'c, S: Default>(
        &mut self,
        levels: impl Iterator<Item = &'c [Vec<u32>]>,
        at: usize,
        nodes: &mut GroupNodes<S>,
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

    /// Returns the groups, from the outermost level on.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the rows of each group on two levels.
    fn counted(rows: &[[u32; 2]], columns_of_level: usize) -> GroupNodes<usize> {
        let columns = [0, 1].map(|column| rows.iter().map(|row| row[column]).collect::<Vec<_>>());
        let (mut nodes, mut path) = (GroupNodes::default(), Path::default());
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
        // More groups than have a slot for each code within.
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
                let facts =
                    |node: &GroupNode<usize>| (node.parent, node.code, node.level, node.stats);
                assert!(nodes.iter().map(facts).eq(whole.0.iter().map(facts)), "cut at {cut}");
                assert_eq!(codes, whole.1);
            }
        }
    }
}
