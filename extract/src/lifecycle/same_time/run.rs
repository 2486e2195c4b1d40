//! Events of one time, put into an order.

use hashbrown::{HashMap, HashSet};

use super::open_keys::OpenKeys;
use super::uses::{How, Key, Uses};

/// Events of one time that are about objects.
struct Run {
    /// Those of each processor in their order, processors by their first event.
    queues: Vec<Queue>,
    /// What is still to come.
    ahead: HashMap<Key, Ahead>,
}

/// What is left of the events of a processor.
#[derive(Default)]
struct Queue {
    rows: Vec<u32>,
    next: usize,
}

/// How often events that are still to come do what to something.
#[derive(Default)]
struct Ahead {
    all: [u32; 4],
    by_queue: HashMap<usize, [u32; 4]>,
}

/// Why an event must not be the next one, by how wrong it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// It may.
    No,
    /// It would use what is not there, or end what is still used.
    ForUse,
    /// It would close what is not open, or open what is.
    ForChange,
}

/// A choice that may be taken back.
struct Step {
    queue: usize,
    row: u32,
    /// What was there before.
    before: Vec<(Key, bool)>,
}

/// Choices that are tried for an order of a run at most.
const MOST_STEPS: usize = 1 << 16;

/// Looks at the next event of a processor, in all runs of a trace, beside [`LOOKS_PER_ROW`]. When none are left no event
/// waits any more, so that a trace of nothing but events without a right order takes seconds.
pub(super) const MOST_LOOKS: usize = 1 << 24;

/// Looks that an event adds: more than it takes where the processors are in order but for some events.
pub(super) const LOOKS_PER_ROW: usize = 4;

/// Spends a look at each of so many processors; returns whether they were left.
fn spend(looks: &mut usize, queues: usize) -> bool {
    let left = looks.checked_sub(queues);
    *looks = left.unwrap_or_default();
    left.is_some()
}

/// Puts rows of one time in order; `looks` are those that are left.
pub(super) fn arrange(
    rows: &mut [u32],
    uses: &Uses<'_>,
    open: &mut OpenKeys<'_>,
    looks: &mut usize,
) {
    let mut run = Run::new(rows, uses, open);
    let before = run.states(run.ahead.keys().copied(), open);
    let (mut order, was_stuck) = run.first_order(uses, open, looks);
    if was_stuck {
        let after = run.states(run.ahead.keys().copied(), open);
        open.restore(before);
        match Run::new(rows, uses, open).right_order(uses, open, looks) {
            Some(right) => order = right,
            None => open.restore(after),
        }
    }
    let places = rows.iter_mut().filter(|row| uses.is_of_object(**row));
    places.zip(order).for_each(|(place, row)| *place = row);
}

impl Run {
    /// The run of these rows.
    fn new(rows: &[u32], uses: &Uses<'_>, open: &OpenKeys<'_>) -> Self {
        let mut run = Self { queues: Vec::new(), ahead: HashMap::new() };
        let mut places: HashMap<u16, usize> = HashMap::new();
        for row in rows.iter().filter(|row| uses.is_of_object(**row)) {
            let processor = uses.collected.shared.timeline.processor[*row as usize];
            let queue = *places.entry(processor).or_insert_with(|| {
                run.queues.push(Queue::default());
                run.queues.len() - 1
            });
            run.queues[queue].rows.push(*row);
            for (key, how) in uses.of(*row).filter(|(key, _)| open.is_doubtful(key)) {
                run.count(key, how, queue, 1);
            }
        }
        run
    }

    /// An order in which the next event is of the first processor whose next event need not wait for those of others.
    /// Where each must, because what was before is not known, an event was lost, or an earlier choice was wrong, it is
    /// the one that is least wrong; says whether that was so. Without looks no event waits.
    fn first_order(
        &mut self,
        uses: &Uses<'_>,
        open: &mut OpenKeys<'_>,
        looks: &mut usize,
    ) -> (Vec<u32>, bool) {
        let (mut order, mut was_stuck) = (Vec::new(), false);
        loop {
            let may_wait = spend(looks, self.queues.len());
            let mut least: Option<(Wait, usize)> = None;
            let mut is_stuck = true;
            for queue in 0..self.queues.len() {
                while let Some(row) = self.queues[queue].head() {
                    let wait = self.wait(row, queue, uses, open);
                    if may_wait && wait != Wait::No {
                        least = [least, Some((wait, queue))].into_iter().flatten().min();
                        break;
                    }
                    was_stuck |= self.opens_twice(row, uses, open);
                    self.take(row, queue, uses, open);
                    order.push(row);
                    is_stuck = false;
                }
            }
            let Some((_, queue)) = least else { return (order, was_stuck) };
            if let Some(row) = self.queues[queue].head().filter(|_| is_stuck) {
                self.take(row, queue, uses, open);
                order.push(row);
                was_stuck = true;
            }
        }
    }

    /// An order in which no event must wait, if there is one and it is found soon.
    fn right_order(
        &mut self,
        uses: &Uses<'_>,
        open: &mut OpenKeys<'_>,
        looks: &mut usize,
    ) -> Option<Vec<u32>> {
        let mut steps: Vec<Step> = Vec::new();
        let mut tried: HashSet<Vec<usize>> = HashSet::new();
        let mut from = 0;
        for _ in 0..MOST_STEPS {
            if !spend(looks, self.queues.len()) {
                return None;
            }
            let is_next = |queue: &usize| {
                let row = self.queues[*queue].head();
                row.is_some_and(|row| self.may_be_next(row, *queue, uses, open))
            };
            let places = |run: &Self| run.queues.iter().map(|queue| queue.next).collect::<Vec<_>>();
            match (from..self.queues.len()).find(is_next) {
                Some(queue) => {
                    let row = self.queues[queue].head()?;
                    let before = self.states(uses.of(row).map(|(key, _)| key), open);
                    self.take(row, queue, uses, open);
                    steps.push(Step { queue, row, before });
                    from = 0;
                    if self.queues.iter().all(|queue| queue.head().is_none()) {
                        return Some(steps.iter().map(|step| step.row).collect());
                    }
                    if !tried.insert(places(self)) {
                        from = self.queues.len();
                    }
                }
                None => {
                    let Step { queue, row, before } = steps.pop()?;
                    self.queues[queue].next -= 1;
                    for (key, how) in uses.of(row).filter(|(key, _)| open.is_doubtful(key)) {
                        self.count(key, how, queue, 1);
                    }
                    open.restore(before);
                    from = queue + 1;
                }
            }
        }
        None
    }

    /// Whether an event may be the next one, by all that is still to come.
    fn may_be_next(&self, row: u32, queue: usize, uses: &Uses<'_>, open: &OpenKeys<'_>) -> bool {
        !self.opens_twice(row, uses, open) && self.wait(row, queue, uses, open) == Wait::No
    }

    /// Whether an event opens what is open and still to be closed, even if by the same processor.
    fn opens_twice(&self, row: u32, uses: &Uses<'_>, open: &OpenKeys<'_>) -> bool {
        uses.of(row).any(|(key, how)| {
            let closes = |ahead: &Ahead| ahead.all[How::Close as usize] > 0;
            how == How::Open && open.contains(&key) && self.ahead.get(&key).is_some_and(closes)
        })
    }

    /// Which of some handles, views and objects are there.
    fn states(&self, keys: impl Iterator<Item = Key>, open: &OpenKeys<'_>) -> Vec<(Key, bool)> {
        let doubtful = keys.filter(|key| open.is_doubtful(key));
        doubtful.map(|key| (key, open.contains(&key))).collect()
    }

    fn take(&mut self, row: u32, queue: usize, uses: &Uses<'_>, open: &mut OpenKeys<'_>) {
        for (key, how) in uses.of(row).filter(|(key, _)| open.is_doubtful(key)) {
            self.count(key, how, queue, -1);
        }
        uses.of(row).for_each(|(key, how)| open.note(key, how));
        self.queues[queue].next += 1;
    }

    fn count(&mut self, key: Key, how: How, queue: usize, by: i32) {
        let Ahead { all, by_queue } = self.ahead.entry(key).or_default();
        for counts in [all, by_queue.entry(queue).or_default()] {
            let count = &mut counts[how as usize];
            *count = count.saturating_add_signed(by);
        }
    }

    /// Whether an event has to wait for those of other processors.
    fn wait(&self, row: u32, queue: usize, uses: &Uses<'_>, open: &OpenKeys<'_>) -> Wait {
        let waits = uses.of(row).filter(|(key, _)| open.is_doubtful(key)).map(|(key, how)| {
            let elsewhere = |how: How| {
                self.ahead.get(&key).is_some_and(|Ahead { all, by_queue }| {
                    let here = by_queue.get(&queue).map_or(0, |counts| counts[how as usize]);
                    all[how as usize] > here
                })
            };
            let is_open = open.contains(&key);
            match (how, key) {
                // Another object's handle of the same value has to be closed first.
                (How::Open, Key::Value { .. }) if is_open && elsewhere(How::Close) => Wait::ForUse,
                (_, Key::Value { .. }) => Wait::No,
                (How::Open, _) if is_open && elsewhere(How::Close) => Wait::ForChange,
                (How::Close, _) if !is_open && elsewhere(How::Open) => Wait::ForChange,
                (How::Close, _) if elsewhere(How::Use) => Wait::ForUse,
                (How::Use, _) if !is_open && elsewhere(How::Open) => Wait::ForUse,
                (How::Enter, _) if elsewhere(How::Open) => Wait::ForUse,
                _ => Wait::No,
            }
        });
        waits.max().unwrap_or(Wait::No)
    }
}

impl Queue {
    fn head(&self) -> Option<u32> {
        self.rows.get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use handlescope_model::Cancel;

    use super::super::doubtful_keys;
    use super::*;
    use crate::collect::Collector;
    use crate::etl::{Event, EventId};
    use crate::lifecycle::attribution::ProcessIndex;
    use crate::lifecycle::owners::EventOwners;

    /// Two processors that each delete an object before they use it, so that neither may be first, behind creates of
    /// other objects, which may have any order.
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
            attribution: Default::default(),
        };
        let uses = Uses { collected: &collected, owners: &owners };
        let doubtful = doubtful_keys(&uses, None, &Cancel::default()).unwrap();
        let index = ProcessIndex::new(&[]);
        let searched = |looks: &mut usize| {
            let mut open = OpenKeys::of_start(&collected, &index, &doubtful);
            let mut order = rows.clone();
            arrange(&mut order, &uses, &mut open, looks);
            order
        };
        let mut looks = MOST_LOOKS;
        let first_order = searched(&mut looks);
        let whole = MOST_LOOKS - looks;
        // Each place of one processor with each of the other one.
        assert!(whole > 20 * 20, "{whole}");
        looks = whole + whole / 2;
        assert_eq!([(); 2].map(|()| searched(&mut looks)), [first_order.clone(), first_order]);
        assert_eq!((searched(&mut looks), looks), (rows.clone(), 0));
    }
}
