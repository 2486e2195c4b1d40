//! Orders events with equal timestamps.
//!
//! The system clock stays the same between two timer ticks, 1 to 16 ms apart, so many events share a timestamp; with
//! other clocks a few do. The file has the events of one processor in order. Across processors it says nothing: the
//! buffer that comes first may hold the close of a handle that is opened in another. What happens to a handle, view or
//! object tells what came first: it is opened before it is used and closed, and closed before it is opened again.
//! Events that share none of these keep the file's order.

use handlescope_model::{Cancel, Cancelled, EventKind, Poll};
use hashbrown::{HashMap, HashSet};

use super::attribution::{NONE, ProcessIndex};
use super::kinds::{Subject, subject};
use super::objects::slot;
use super::owners::{EventOwners, view_pid};
use crate::collect::Collector;

/// Returns the timeline rows in time order, unless cancelled; `None` if that is the row order.
///
/// `order` gives the rows by time if that differs from the row order.
pub fn in_time_order(
    collected: &Collector,
    index: &ProcessIndex,
    owners: &EventOwners,
    order: Option<Vec<u32>>,
    cancel: &Cancel,
) -> Result<Option<Vec<u32>>, Cancelled> {
    let uses = Uses { collected, owners };
    let doubtful = doubtful_keys(&uses, order.as_deref(), cancel)?;
    if doubtful.is_empty() {
        return Ok(order);
    }
    let rows = collected.shared.timeline.len() as u32;
    let mut order = order.unwrap_or_else(|| (0..rows).collect());
    let mut open = OpenKeys::from_start(collected, index, &doubtful);
    let mut looks = MAX_LOOKS.saturating_add(LOOKS_PER_ROW * order.len());
    let mut poll = Poll::new(cancel);
    let mut first = 0;
    while let Some(end) = next_run(&uses, first, |at| order.get(at).copied()) {
        let rows = &mut order[first..end];
        let mut is_doubtful = false;
        for row in rows.iter() {
            poll.round()?;
            is_doubtful |= uses.of(*row).any(|(key, _)| doubtful.contains(&key));
        }
        if is_doubtful && rows.len() > 1 {
            arrange(rows, &uses, &mut open, &mut looks);
        } else if is_doubtful {
            rows.iter().flat_map(|row| uses.of(*row)).for_each(|(key, how)| open.note(key, how));
        }
        first = end;
    }
    Ok(Some(order))
}

/// Returns the end of the rows with the same time as the row at `first`; `None` after the last row.
fn next_run(uses: &Uses<'_>, first: usize, row: impl Fn(usize) -> Option<u32>) -> Option<usize> {
    let times = &uses.collected.shared.timeline.time;
    let time = times[row(first)? as usize];
    let mut end = first + 1;
    while row(end).is_some_and(|row| times[row as usize] == time) {
        end += 1;
    }
    Some(end)
}

/// Finds keys that several processors touched at the same time, with at least one open or close.
fn doubtful_keys(
    uses: &Uses<'_>,
    order: Option<&[u32]>,
    cancel: &Cancel,
) -> Result<HashSet<OpenableKey>, Cancelled> {
    let timeline = &uses.collected.shared.timeline;
    let row = |at: usize| match order {
        Some(order) => order.get(at).copied(),
        None => (at < timeline.len()).then_some(at as u32),
    };
    let mut doubtful = HashSet::new();
    let mut at_once: HashMap<OpenableKey, AtOnce> = HashMap::new();
    let mut poll = Poll::new(cancel);
    let mut first = 0;
    while let Some(end) = next_run(uses, first, row) {
        let rows = || (first..end).filter_map(row);
        let processor = |row: u32| timeline.processor[row as usize];
        let mut processors = rows().filter(|row| uses.is_of_object(*row)).map(processor);
        let is_of_several = end - first > 1
            && processors.next().is_some_and(|first| processors.any(|next| next != first));
        for _ in first..end {
            poll.round()?;
        }
        if is_of_several {
            for row in rows() {
                poll.round()?;
                for (key, how) in uses.of(row) {
                    let known = at_once.entry(key).or_insert(AtOnce::new(processor(row)));
                    known.add(processor(row), how);
                    if known.is_doubtful() {
                        doubtful.insert(key);
                    }
                }
            }
            at_once.clear();
        }
        first = end;
    }
    Ok(doubtful)
}

/// Changes to one key at one time.
struct AtOnce {
    processor: u16,
    is_of_several: bool,
    changes: bool,
}

impl AtOnce {
    fn new(processor: u16) -> Self {
        Self { processor, is_of_several: false, changes: false }
    }

    fn add(&mut self, processor: u16, how: KeyEffect) {
        self.is_of_several |= processor != self.processor;
        self.changes |= matches!(how, KeyEffect::Open | KeyEffect::Close);
    }

    fn is_doubtful(&self) -> bool {
        self.is_of_several && self.changes
    }
}

/// Handle, object or view, which is opened and closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OpenableKey {
    /// Handle of an object.
    Handle { process: u32, handle: u32, object: u64 },
    /// Handle value, whatever the object.
    Value { process: u32, handle: u32 },
    /// Object, by kernel address.
    Object(u64),
    /// View, by its start address.
    View { pid: u32, base: u64 },
}

/// Effect of an event on a handle, view or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyEffect {
    /// The key is open from now on.
    Open,
    /// A handle of the object is opened. A delete at the same time does not wait for this, because it may be of the
    /// previous object.
    Enter,
    /// The key must be open.
    Use,
    /// The key is closed from now on.
    Close,
}

/// Looks up the keys of events by timeline row.
struct Uses<'a> {
    collected: &'a Collector,
    owners: &'a EventOwners,
}

impl Uses<'_> {
    /// Whether an event is about an object.
    fn is_of_object(&self, row: u32) -> bool {
        subject(self.collected.shared.timeline.kind[row as usize]).is_of_object()
    }

    /// Returns all effects of an event; none if the event belongs to no process.
    fn of(&self, row: u32) -> impl Iterator<Item = (OpenableKey, KeyEffect)> + use<> {
        self.effects(row as usize).into_iter().flatten()
    }

    fn effects(&self, row: usize) -> [Option<(OpenableKey, KeyEffect)>; 4] {
        const NOTHING: [Option<(OpenableKey, KeyEffect)>; 4] = [None; 4];
        let Collector { handles, objects, references, views, shared, .. } = self.collected;
        let process = self.owners.process[row];
        if process == NONE {
            return NOTHING;
        }
        let at = shared.timeline.row[row] as usize;
        let of_handle = |how, how_object| {
            let (handle, object) = (slot(handles.handle[at]), handles.object[at]);
            [
                Some((OpenableKey::Handle { process, handle, object }, how)),
                Some((OpenableKey::Value { process, handle }, how)),
                Some((OpenableKey::Object(object), how_object)),
                None,
            ]
        };
        let single = |key, how| [Some((key, how)), None, None, None];
        let view = || OpenableKey::View {
            pid: view_pid(self.collected, row, process),
            base: views.rows[at].base,
        };
        match subject(shared.timeline.kind[row]) {
            Subject::Object(EventKind::HandleCreate) => {
                of_handle(KeyEffect::Open, KeyEffect::Enter)
            }
            Subject::Object(EventKind::HandleClose) => of_handle(KeyEffect::Close, KeyEffect::Use),
            Subject::HandleAtEnd => of_handle(KeyEffect::Use, KeyEffect::Use),
            Subject::Object(EventKind::HandleDuplicate) => self.of_duplicate(at, process),
            Subject::Object(EventKind::ObjectCreate) => {
                single(OpenableKey::Object(objects.object[at]), KeyEffect::Open)
            }
            Subject::Object(EventKind::ObjectDelete) => {
                single(OpenableKey::Object(objects.object[at]), KeyEffect::Close)
            }
            Subject::Object(EventKind::Reference | EventKind::Dereference) => {
                single(OpenableKey::Object(references.object[at]), KeyEffect::Use)
            }
            Subject::Object(EventKind::Map) => single(view(), KeyEffect::Open),
            Subject::Object(EventKind::Unmap) => single(view(), KeyEffect::Close),
            Subject::Heap(_)
            | Subject::Pages(_)
            | Subject::Acquired(_)
            | Subject::Gui(_)
            | Subject::Unknown => NOTHING,
        }
    }

    /// Returns the effects of a duplicate: it opens a handle of its owner, or of the child that inherits it, and uses
    /// its source handle.
    fn of_duplicate(&self, at: usize, target: u32) -> [Option<(OpenableKey, KeyEffect)>; 4] {
        let duplicate = &self.collected.duplicates.rows[at];
        let owners = self.owners.duplicates[at];
        let object = duplicate.object;
        let process = if owners.inherited_by == NONE { target } else { owners.inherited_by };
        let handle = slot(duplicate.target_handle);
        let source = OpenableKey::Handle {
            process: owners.source,
            handle: slot(duplicate.source_handle),
            object,
        };
        [
            Some((OpenableKey::Handle { process, handle, object }, KeyEffect::Open)),
            Some((OpenableKey::Value { process, handle }, KeyEffect::Open)),
            Some((OpenableKey::Object(object), KeyEffect::Enter)),
            (owners.source != NONE).then_some((source, KeyEffect::Use)),
        ]
    }
}

/// Doubtful handles, views and objects that are open.
struct OpenKeys<'a> {
    doubtful: &'a HashSet<OpenableKey>,
    open: HashSet<OpenableKey>,
}

impl<'a> OpenKeys<'a> {
    /// Returns the keys listed by the start rundown.
    fn from_start(
        collected: &Collector,
        index: &ProcessIndex,
        doubtful: &'a HashSet<OpenableKey>,
    ) -> Self {
        let handles = collected.handles.start.iter().filter_map(|start| {
            let process = index.find(start.pid, start.time)?;
            Some(OpenableKey::Handle { process, handle: slot(start.handle), object: start.object })
        });
        let open = handles.filter(|key| doubtful.contains(key)).collect();
        Self { doubtful, open }
    }

    fn is_doubtful(&self, key: &OpenableKey) -> bool {
        self.doubtful.contains(key)
    }

    fn note(&mut self, key: OpenableKey, how: KeyEffect) {
        if !self.doubtful.contains(&key) {
            return;
        }
        match how {
            KeyEffect::Close => self.open.remove(&key),
            KeyEffect::Open | KeyEffect::Enter | KeyEffect::Use => self.open.insert(key),
        };
    }

    /// Restores the state of keys.
    fn restore(&mut self, states: Vec<(OpenableKey, bool)>) {
        for (key, is_open) in states {
            if is_open {
                self.open.insert(key);
            } else {
                self.open.remove(&key);
            }
        }
    }

    fn contains(&self, key: &OpenableKey) -> bool {
        self.open.contains(key)
    }
}

/// Events about objects at one time.
struct SameTimeRun<'a, 'd> {
    uses: &'a Uses<'a>,
    /// Doubtful keys that are open.
    open: &'a mut OpenKeys<'d>,
    /// Checks left.
    looks: &'a mut usize,
    /// Events of each processor in order. Processors are ordered by their first event.
    queues: Vec<Queue>,
    /// Events still to come, by key.
    ahead: HashMap<OpenableKey, Ahead>,
}

/// Remaining events of a processor.
#[derive(Default)]
struct Queue {
    rows: Vec<u32>,
    next: usize,
}

/// Number of events still to come for a key, by effect.
#[derive(Default)]
struct Ahead {
    total: [u32; 4],
    by_queue: HashMap<usize, [u32; 4]>,
}

/// Why an event must not come next, ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TakeWait {
    /// Nothing speaks against it.
    No,
    /// It would use a closed key, or close a key that is still used.
    ForUse,
    /// It would close a closed key, or open an open key.
    ForChange,
}

/// Choice that may be undone.
struct UndoStep {
    queue: usize,
    row: u32,
    /// Keys with their state before the event.
    before: Vec<(OpenableKey, bool)>,
}

/// Maximum number of choices tried to order one run.
const MAX_STEPS: usize = 1 << 16;

/// Maximum number of looks at a processor's next event, over all runs of a trace, on top of [`LOOKS_PER_ROW`]. When
/// they are used up no event waits any more, so a trace made only of events without a right order takes seconds.
const MAX_LOOKS: usize = 1 << 24;

/// Looks added per event: more than needed if the processors are nearly in order.
const LOOKS_PER_ROW: usize = 4;

/// Orders the rows of one time; `looks` is the number left.
fn arrange(rows: &mut [u32], uses: &Uses<'_>, open: &mut OpenKeys<'_>, looks: &mut usize) {
    let mut run = SameTimeRun::new(rows, uses, open, looks);
    let before = run.states(run.ahead.keys().copied());
    let (mut order, was_stuck) = run.first_order();
    if was_stuck {
        let after = run.states(run.ahead.keys().copied());
        open.restore(before);
        match SameTimeRun::new(rows, uses, open, looks).right_order() {
            Some(right) => order = right,
            None => open.restore(after),
        }
    }
    let slots = rows.iter_mut().filter(|row| uses.is_of_object(**row));
    slots.zip(order).for_each(|(slot, row)| *slot = row);
}

impl<'a, 'd> SameTimeRun<'a, 'd> {
    /// Builds the run of these rows.
    fn new(
        rows: &[u32],
        uses: &'a Uses<'a>,
        open: &'a mut OpenKeys<'d>,
        looks: &'a mut usize,
    ) -> Self {
        let mut run = Self { uses, open, looks, queues: Vec::new(), ahead: HashMap::new() };
        let mut queues: HashMap<u16, usize> = HashMap::new();
        for row in rows.iter().filter(|row| uses.is_of_object(**row)) {
            let processor = uses.collected.shared.timeline.processor[*row as usize];
            let queue = *queues.entry(processor).or_insert_with(|| {
                run.queues.push(Queue::default());
                run.queues.len() - 1
            });
            run.queues[queue].rows.push(*row);
            run.count_all(*row, queue, 1);
        }
        run
    }

    /// Returns an order, and whether it got stuck. Each next event is from the first processor with a next event that
    /// need not wait for others. If all must wait, the least wrong one is taken. That happens because the earlier state
    /// is unknown, an event was lost or an earlier choice was wrong. Without looks left, no event waits.
    fn first_order(&mut self) -> (Vec<u32>, bool) {
        let (mut order, mut was_stuck) = (Vec::new(), false);
        loop {
            let may_wait = self.spend();
            let mut least: Option<(TakeWait, usize)> = None;
            let mut is_stuck = true;
            for queue in 0..self.queues.len() {
                while let Some(row) = self.queues[queue].head() {
                    let wait = self.wait(row, queue);
                    if may_wait && wait != TakeWait::No {
                        least = [least, Some((wait, queue))].into_iter().flatten().min();
                        break;
                    }
                    was_stuck |= self.opens_twice(row);
                    self.take(row, queue);
                    order.push(row);
                    is_stuck = false;
                }
            }
            let Some((_, queue)) = least else { return (order, was_stuck) };
            if let Some(row) = self.queues[queue].head().filter(|_| is_stuck) {
                self.take(row, queue);
                order.push(row);
                was_stuck = true;
            }
        }
    }

    /// Returns an order in which no event must wait, if there is one and it is found soon.
    fn right_order(&mut self) -> Option<Vec<u32>> {
        let mut steps: Vec<UndoStep> = Vec::new();
        let mut tried: HashSet<Vec<usize>> = HashSet::new();
        let mut from = 0;
        for _ in 0..MAX_STEPS {
            if !self.spend() {
                return None;
            }
            match (from..self.queues.len()).find(|queue| {
                let row = self.queues[*queue].head();
                row.is_some_and(|row| self.may_be_next(row, *queue))
            }) {
                Some(queue) => {
                    let row = self.queues[queue].head()?;
                    let before = self.states(self.uses.of(row).map(|(key, _)| key));
                    self.take(row, queue);
                    steps.push(UndoStep { queue, row, before });
                    from = 0;
                    if self.queues.iter().all(|queue| queue.head().is_none()) {
                        return Some(steps.iter().map(|step| step.row).collect());
                    }
                    if !tried.insert(self.queues.iter().map(|queue| queue.next).collect()) {
                        from = self.queues.len();
                    }
                }
                None => {
                    let UndoStep { queue, row, before } = steps.pop()?;
                    self.queues[queue].next -= 1;
                    self.count_all(row, queue, 1);
                    self.open.restore(before);
                    from = queue + 1;
                }
            }
        }
        None
    }

    /// Whether an event may come next, given everything still to come.
    fn may_be_next(&self, row: u32, queue: usize) -> bool {
        !self.opens_twice(row) && self.wait(row, queue) == TakeWait::No
    }

    /// Whether an event opens a key that is open and still to be closed, even if by the same processor.
    fn opens_twice(&self, row: u32) -> bool {
        self.uses.of(row).any(|(key, how)| {
            how == KeyEffect::Open
                && self.open.contains(&key)
                && self
                    .ahead
                    .get(&key)
                    .is_some_and(|ahead| ahead.total[KeyEffect::Close as usize] > 0)
        })
    }

    /// Returns the state of each doubtful key.
    fn states(&self, keys: impl Iterator<Item = OpenableKey>) -> Vec<(OpenableKey, bool)> {
        keys.filter(|key| self.open.is_doubtful(key))
            .map(|key| (key, self.open.contains(&key)))
            .collect()
    }

    fn take(&mut self, row: u32, queue: usize) {
        self.count_all(row, queue, -1);
        self.uses.of(row).for_each(|(key, how)| self.open.note(key, how));
        self.queues[queue].next += 1;
    }

    /// Adds or removes the effects of a processor's event from those still to come.
    fn count_all(&mut self, row: u32, queue: usize, by: i32) {
        for (key, how) in self.uses.of(row).filter(|(key, _)| self.open.is_doubtful(key)) {
            let Ahead { total, by_queue } = self.ahead.entry(key).or_default();
            for counts in [total, by_queue.entry(queue).or_default()] {
                let count = &mut counts[how as usize];
                *count = count.saturating_add_signed(by);
            }
        }
    }

    /// Spends a look at each processor; returns whether enough were left.
    fn spend(&mut self) -> bool {
        let left = self.looks.checked_sub(self.queues.len());
        *self.looks = left.unwrap_or_default();
        left.is_some()
    }

    /// Whether an event has to wait for events of other processors.
    fn wait(&self, row: u32, queue: usize) -> TakeWait {
        let of_doubtful = self.uses.of(row).filter(|(key, _)| self.open.is_doubtful(key));
        let waits = of_doubtful.map(|(key, how)| {
            let elsewhere = |how: KeyEffect| {
                self.ahead.get(&key).is_some_and(|Ahead { total, by_queue }| {
                    let here = by_queue.get(&queue).map_or(0, |counts| counts[how as usize]);
                    total[how as usize] > here
                })
            };
            let is_open = self.open.contains(&key);
            match (how, key) {
                // Another object's handle with the same value has to be closed first.
                (KeyEffect::Open, OpenableKey::Value { .. })
                    if is_open && elsewhere(KeyEffect::Close) =>
                {
                    TakeWait::ForUse
                }
                (_, OpenableKey::Value { .. }) => TakeWait::No,
                (KeyEffect::Open, _) if is_open && elsewhere(KeyEffect::Close) => {
                    TakeWait::ForChange
                }
                (KeyEffect::Close, _) if !is_open && elsewhere(KeyEffect::Open) => {
                    TakeWait::ForChange
                }
                (KeyEffect::Close, _) if elsewhere(KeyEffect::Use) => TakeWait::ForUse,
                (KeyEffect::Use, _) if !is_open && elsewhere(KeyEffect::Open) => TakeWait::ForUse,
                (KeyEffect::Enter, _) if elsewhere(KeyEffect::Open) => TakeWait::ForUse,
                _ => TakeWait::No,
            }
        });
        waits.max().unwrap_or(TakeWait::No)
    }
}

impl Queue {
    fn head(&self) -> Option<u32> {
        self.rows.get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::{Event, EventId};

    /// Two processors that each delete an object before they use it, so neither may be first. Before that, both create
    /// other objects, in any order.
    fn deadlocked() -> Collector {
        let [create, delete, reference] = [0x1130, 0x1131, 0x1132].map(EventId::Hook);
        let mut collected = Collector::default();
        for processor in 0..2 {
            let creates = (1..=20).map(|number| (create, 0x100 * u64::from(processor) + number));
            for (id, object) in creates.chain([(delete, 0x1000), (reference, 0x1000)]) {
                let payload = [object.to_le_bytes(), [0; 8]].concat();
                let event = Event { id, processor, payload: &payload, ..Event::default() };
                collected.event(&event);
            }
        }
        collected
    }

    #[test]
    fn searches_for_an_order_share_the_looks_of_a_trace() {
        let collected = deadlocked();
        let rows: Vec<u32> = (0..collected.shared.timeline.len() as u32).collect();
        let owners = EventOwners {
            process: vec![0; rows.len()],
            duplicates: Vec::new(),
            failed: HashMap::new(),
            failed_closes: HashSet::new(),
            doubtful: HashSet::new(),
            foreign: HashSet::new(),
            attribution: Default::default(),
        };
        let uses = Uses { collected: &collected, owners: &owners };
        let doubtful = doubtful_keys(&uses, None, &Cancel::default()).unwrap();
        let index = ProcessIndex::new(&[]);
        let searched = |looks: &mut usize| {
            let mut open = OpenKeys::from_start(&collected, &index, &doubtful);
            let mut order = rows.clone();
            arrange(&mut order, &uses, &mut open, looks);
            order
        };
        let mut looks = MAX_LOOKS;
        let first_order = searched(&mut looks);
        let whole = MAX_LOOKS - looks;
        // Every position of one processor is tried with every position of the other.
        assert!(whole > 20 * 20, "{whole}");
        looks = whole + whole / 2;
        assert_eq!([(); 2].map(|()| searched(&mut looks)), [first_order.clone(), first_order]);
        assert_eq!((searched(&mut looks), looks), (rows.clone(), 0));
    }
}
