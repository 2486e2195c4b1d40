//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Successors of each node.
pub(super) type Graph = BTreeMap<usize, BTreeSet<usize>>;

/// A group of nodes that all lead to each other.
#[derive(Debug)]
pub(super) struct Circle {
    /// A shortest circle in the group.
    pub(super) nodes: Vec<usize>,
    pub(super) group: BTreeSet<usize>,
}

/// The groups of nodes that all lead to each other.
pub(super) fn circles(graph: &Graph) -> Vec<Circle> {
    let mut grouped: BTreeSet<usize> = BTreeSet::new();
    let mut found = Vec::new();
    for &node in graph.keys() {
        if grouped.contains(&node) {
            continue;
        }
        let forward = reachable(graph, node);
        // Nodes that lead back, among those it leads to.
        let group: BTreeSet<usize> = forward
            .iter()
            .copied()
            .filter(|&other| reachable(graph, other).contains(&node))
            .collect();
        grouped.extend(group.iter().copied());
        let circles = group.iter().filter_map(|&start| shortest(graph, start));
        if let Some(nodes) = circles.min_by_key(Vec::len) {
            found.push(Circle { nodes, group });
        }
    }
    found
}

/// The nodes that a node leads to, in one step or more.
fn reachable(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &next in graph.get(&node).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// The shortest way from a node back to itself; the node stands at its start only.
fn shortest(graph: &Graph, start: usize) -> Option<Vec<usize>> {
    let mut previous = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for &next in graph.get(&node).into_iter().flatten() {
            if next == start {
                let mut way = vec![node];
                while let Some(&before) = way.last().and_then(|node| previous.get(node)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            previous.entry(next).or_insert_with(|| {
                open.push_back(next);
                node
            });
        }
    }
    None
}
