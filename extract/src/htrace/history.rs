//! One history out of several listings, which may print the same event more than once.
//!
//! Every listing ends now: of each handle value it has the last events up to the time it was printed, and may
//! lack older ones, because tracing forgets them, or because `-diff` prints only the last open. So the events that
//! a listing and the history have in common are, for each handle value, the longest end of the history that
//! the listing starts with; or all of the history, when the listing goes further back. An event
//! is recognized by handle, operation, thread, process and return addresses.

use std::collections::HashMap;

use super::grammar::Operation;

/// What `!htrace` printed of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) handle: u64,
    pub(super) operation: Operation,
    /// 0 when it is not known.
    pub(super) thread: u32,
    /// Row of the process.
    pub(super) process: u32,
    /// Row of the stack.
    pub(super) stack: Option<u32>,
    /// Number of the addresses of the stack. Their names depend on the symbols that the debugger had found when
    /// it printed them.
    pub(super) addresses: u32,
}

/// The events of all listings in the order they happened.
#[derive(Default)]
pub(super) struct History {
    /// A list whose order is that of `next`, because older events may come later.
    nodes: Vec<Node>,
    first: Option<u32>,
    last: Option<u32>,
    of_handles: HashMap<HandleKey, Vec<u32>>,
    snapshots: Vec<Snapshot>,
}

/// An event, by its number among those that were read.
pub(super) type NodeId = u32;

/// A snapshot of the debugger, between events.
struct Snapshot {
    /// So many events had been read: they came before it.
    known: NodeId,
    /// The first of the events that the debugger says came after it.
    behind: Option<NodeId>,
}

struct Node {
    entry: Entry,
    before: Option<u32>,
    next: Option<u32>,
}

/// Process and handle value; references to invalid handles stand apart, as `-diff` does not print them.
type HandleKey = (u32, u64, bool);

fn key(entry: &Entry) -> HandleKey {
    (entry.process, entry.handle, entry.operation == Operation::BadReference)
}

/// Whether two entries print the same event, of one handle.
fn is_same(left: &Entry, right: &Entry) -> bool {
    (left.operation, left.thread, left.addresses)
        == (right.operation, right.thread, right.addresses)
}

impl History {
    /// Takes a listing, the oldest entry first, and returns the event of that.
    pub(super) fn merge(
        &mut self,
        listing: impl ExactSizeIterator<Item = Entry>,
    ) -> Option<NodeId> {
        let listing: Vec<Entry> = listing.collect();
        let mut of_handles: HashMap<HandleKey, Vec<usize>> = HashMap::new();
        for (at, entry) in listing.iter().enumerate() {
            of_handles.entry(key(entry)).or_default().push(at);
        }
        // For each entry the node of its event, if that is known.
        let mut nodes: Vec<Option<u32>> = vec![None; listing.len()];
        for (key, places) in &of_handles {
            let Some(known) = self.of_handles.get(key) else { continue };
            let Overlap { start, count } = self.overlap(known, &listing, places);
            let common = known.iter().skip(known.len() - count);
            for (node, at) in common.zip(places.iter().skip(start)) {
                if let Some(place) = nodes.get_mut(*at) {
                    *place = Some(*node);
                }
            }
        }
        let known_nodes = self.nodes.len() as u32;
        // A listing that has everything knows the order, which listings of single handles do not.
        let has_all = nodes.iter().flatten().count() == self.nodes.len();
        if has_all {
            (self.first, self.last) = (None, None);
        }
        // From the newest on, each in front of what follows it in the listing.
        let mut behind = None;
        for (node, entry) in nodes.iter_mut().zip(&listing).rev() {
            let is_known = node.is_some();
            let row = node.unwrap_or(self.nodes.len() as u32);
            match self.node_mut(*node) {
                // Later listings know more names of functions.
                Some(known) => known.entry.stack = entry.stack,
                None => self.nodes.push(Node { entry: *entry, before: None, next: None }),
            }
            if has_all || !is_known {
                self.link(row, behind);
            }
            *node = Some(row);
            behind = *node;
        }
        for (key, places) in of_handles {
            let printed: Vec<u32> = places.iter().filter_map(|at| *nodes.get(*at)?).collect();
            let is_new = |node: &u32| *node >= known_nodes;
            let known = self.of_handles.entry(key).or_default();
            match printed.iter().filter(|node| !is_new(node)).count() {
                // The listing has all that is known, and perhaps older events.
                common if common == known.len() => *known = printed,
                _ => known.extend(printed.into_iter().filter(is_new)),
            }
        }
        nodes.first().copied().flatten()
    }

    /// Notes that a snapshot is taken, after all that is known.
    pub(super) fn take_snapshot(&mut self) {
        self.snapshots.push(Snapshot { known: self.nodes.len() as NodeId, behind: None });
    }

    /// Notes the first event of what the debugger says was opened since the last snapshot.
    pub(super) fn opened_since_snapshot(&mut self, first: Option<NodeId>) {
        if let Some(last) = self.snapshots.last_mut() {
            last.behind = last.behind.or(first);
        }
    }

    /// How many events came before each snapshot. Events that were read later, and of which the debugger does
    /// not say when they were, came before it when they came before what was opened since.
    pub(super) fn snapshots(&self) -> Vec<u32> {
        if self.snapshots.is_empty() {
            return Vec::new();
        }
        let mut places = vec![0_u32; self.nodes.len()];
        let mut next = self.first;
        for place in 0.. {
            let Some(node) = next.and_then(|row| self.nodes.get(row as usize)) else { break };
            if let Some(own) = next.and_then(|row| places.get_mut(row as usize)) {
                *own = place;
            }
            next = node.next;
        }
        // So many events are there up to the last of the first ones that were read.
        let mut last = 0;
        let until: Vec<u32> = places
            .iter()
            .map(|place| {
                last = last.max(place + 1);
                last
            })
            .collect();
        let point = |own: &Snapshot| {
            let before = own.known.checked_sub(1).and_then(|row| until.get(row as usize));
            let behind = own.behind.and_then(|row| places.get(row as usize));
            before.max(behind).copied().unwrap_or_default()
        };
        self.snapshots.iter().map(point).collect()
    }

    /// What is known of a handle and what a listing prints of it have in common.
    fn overlap(&self, known: &[u32], listing: &[Entry], places: &[usize]) -> Overlap {
        // More of it than the listing prints cannot be common.
        let last = known.iter().skip(known.len().saturating_sub(places.len() + 1));
        let node = |node: &u32| self.nodes.get(*node as usize).map(|node| &node.entry);
        let last: Vec<&Entry> = last.filter_map(node).collect();
        let printed: Vec<&Entry> = places.iter().filter_map(|at| listing.get(*at)).collect();
        overlap(&last, &printed)
    }

    fn node_mut(&mut self, row: Option<u32>) -> Option<&mut Node> {
        self.nodes.get_mut(row? as usize)
    }

    /// Puts a node in front of another one, or to the end.
    fn link(&mut self, row: u32, behind: Option<u32>) {
        let before = match self.node_mut(behind) {
            Some(behind) => behind.before.replace(row),
            None => self.last.replace(row),
        };
        match self.node_mut(before) {
            Some(before) => before.next = Some(row),
            None => self.first = Some(row),
        }
        if let Some(node) = self.node_mut(Some(row)) {
            (node.before, node.next) = (before, behind);
        }
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The events in the order they happened.
    pub(super) fn events(&self) -> impl Iterator<Item = &Entry> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next? as usize)?;
            next = node.next;
            Some(&node.entry)
        })
    }
}

/// What two sequences have in common.
#[derive(Debug, PartialEq, Eq)]
struct Overlap {
    /// Where it starts in what was printed.
    start: usize,
    /// How many events it has, which are the last of what is known.
    count: usize,
}

/// The events that `known` and `printed` have in common. `known` may be cut to one more than `printed` has.
fn overlap(known: &[&Entry], printed: &[&Entry]) -> Overlap {
    let (_, ends_with) = find(printed, known);
    if !known.is_empty() && known.len() <= printed.len() {
        let (found, _) = find(known, printed);
        if let Some(start) = found.filter(|_| known.len() > ends_with) {
            return Overlap { start, count: known.len() };
        }
    }
    Overlap { start: 0, count: ends_with }
}

/// Where a pattern is first found in a text, and the length of the longest end of the text that the pattern
/// starts with (Knuth, Morris and Pratt).
fn find(pattern: &[&Entry], text: &[&Entry]) -> (Option<usize>, usize) {
    let is_at = |at: usize, entry: &Entry| pattern.get(at).is_some_and(|own| is_same(own, entry));
    // For each start of the pattern, the length of its longest own end that the pattern starts with.
    let mut shorter = vec![0; pattern.len() + 1];
    let advance = |mut length: usize, entry: &Entry, shorter: &[usize]| {
        while length > 0 && !is_at(length, entry) {
            length = shorter.get(length).copied().unwrap_or_default();
        }
        length + usize::from(is_at(length, entry))
    };
    let mut length = 0;
    for (at, entry) in pattern.iter().enumerate().skip(1) {
        length = advance(length, entry, &shorter);
        if let Some(shorter) = shorter.get_mut(at + 1) {
            *shorter = length;
        }
    }
    let (mut found, mut length) = (None, 0);
    for (at, entry) in text.iter().enumerate() {
        length = advance(length, entry, &shorter);
        if length == pattern.len() && length > 0 && found.is_none() {
            found = Some(at + 1 - length);
        }
    }
    (found, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries as in `o1 c1 o2 x1`: opens, closes and bad references of handles. A letter after is another
    /// stack.
    fn entries(text: &str) -> Vec<Entry> {
        let entry = |word: &str| {
            let mut characters = word.chars();
            let operation = match characters.next() {
                Some('o') => Operation::Open,
                Some('c') => Operation::Close,
                _ => Operation::BadReference,
            };
            let handle = characters.next().and_then(|digit| digit.to_digit(10)).unwrap();
            let addresses = characters.next().map_or(0, u32::from);
            Entry {
                handle: handle.into(),
                operation,
                thread: 7,
                process: 0,
                stack: None,
                addresses,
            }
        };
        text.split_whitespace().map(entry).collect()
    }

    /// The history that comes of listings, the oldest entry first in each.
    fn merged(listings: &[&str]) -> Vec<Entry> {
        let mut history = History::default();
        for listing in listings {
            let _ = history.merge(entries(listing).into_iter());
        }
        history.events().copied().collect()
    }

    #[test]
    fn what_listings_have_in_common_counts_once() {
        for (listings, expected) in [
            (&["o1 c1 o2", "o1 c1 o2 c2 o3"][..], "o1 c1 o2 c2 o3"),
            (&["o1 o2", "o1 o2"], "o1 o2"),
            // Tracing has forgotten the first two.
            (&["o1 o2 c1 o1", "c1 o1 c2"], "o1 o2 c1 o1 c2"),
            // The last open of `-diff`, and then all.
            (&["o2", "o1 c1 o2 c2 o3"], "o1 c1 o2 c2 o3"),
            (&["o1 c1 o2", "o2 o3", "o3"], "o1 c1 o2 o3"),
            // Opened again by other and by the same code.
            (&["o1 c1", "o1b"], "o1 c1 o1b"),
            (&["o1 c1", "o1"], "o1 c1 o1"),
            (&["o1 c1 o1", "o1 c1 o1 c1 o1"], "o1 c1 o1 c1 o1"),
            // One handle after the other, and then all.
            (&["o2 c2", "o1", "o1 o2 c2 o3"], "o1 o2 c2 o3"),
            (&["o1 x1", "o1", "o1 x1 x1"], "o1 x1 x1"),
            (&["", "o1", ""], "o1"),
        ] {
            assert_eq!(merged(listings), entries(expected), "{listings:?}");
        }
    }

    #[test]
    fn a_listing_that_contradicts_the_others_still_counts_each_entry_once() {
        let events = merged(&["o1 o2 o3", "o3 o2 o1", "o2 o3 o1"]);
        assert_eq!(events.len(), 3);
    }

    #[test]
    fn many_listings_take_no_quadratic_time() {
        let mut history = History::default();
        for _ in 0..20_000 {
            history.merge(entries("o1 c1 o2b").into_iter());
            history.merge(entries("o1 o2").into_iter());
        }
        assert!(history.len() > 20_000);
    }
}
