//! Events of one time, put into an order.

use hashbrown::HashMap;

use super::uses::{Key, Uses};
use super::{How, OpenKeys};

/// Events of one time that are about objects.
pub(super) struct Run {
    /// Those of each processor in their order, processors by their first event.
    queues: Vec<Queue>,
    /// What is still to come.
    ahead: HashMap<Key, Vec<Ahead>>,
}

/// What is left of the events of a processor.
#[derive(Default)]
struct Queue {
    rows: Vec<u32>,
    next: usize,
}

/// How often the events of a processor that are still to come do what to something.
struct Ahead {
    queue: usize,
    counts: [u32; 4],
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

impl Run {
    /// The run of these rows.
    pub(super) fn new(rows: &[u32], uses: &Uses<'_>, open: &OpenKeys<'_>) -> Self {
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

    /// Puts the rows in order: the next one is of the first processor whose next event need not wait for those of
    /// others. Where each must, because what was before is not known or an event was lost, that which is least wrong.
    pub(super) fn arrange(mut self, rows: &mut [u32], uses: &Uses<'_>, open: &mut OpenKeys<'_>) {
        let mut places = rows.iter_mut().filter(|row| uses.is_of_object(**row));
        let mut put = |row| {
            if let Some(place) = places.next() {
                *place = row;
            }
        };
        loop {
            let mut least: Option<(Wait, usize)> = None;
            let mut is_stuck = true;
            for queue in 0..self.queues.len() {
                while let Some(row) = self.queues[queue].head() {
                    let wait = self.wait(row, queue, uses, open);
                    if wait != Wait::No {
                        least = [least, Some((wait, queue))].into_iter().flatten().min();
                        break;
                    }
                    self.take(row, queue, uses, open);
                    put(row);
                    is_stuck = false;
                }
            }
            let Some((_, queue)) = least else { return };
            if let Some(row) = self.queues[queue].head().filter(|_| is_stuck) {
                self.take(row, queue, uses, open);
                put(row);
            }
        }
    }

    fn take(&mut self, row: u32, queue: usize, uses: &Uses<'_>, open: &mut OpenKeys<'_>) {
        for (key, how) in uses.of(row).filter(|(key, _)| open.is_doubtful(key)) {
            self.count(key, how, queue, -1);
        }
        uses.of(row).for_each(|(key, how)| open.note(key, how));
        self.queues[queue].next += 1;
    }

    fn count(&mut self, key: Key, how: How, queue: usize, by: i32) {
        let of_key = self.ahead.entry(key).or_default();
        let at = of_key.iter().position(|ahead| ahead.queue == queue).unwrap_or_else(|| {
            of_key.push(Ahead { queue, counts: [0; 4] });
            of_key.len() - 1
        });
        let count = &mut of_key[at].counts[how as usize];
        *count = count.saturating_add_signed(by);
    }

    /// Whether an event has to wait for those of other processors.
    fn wait(&self, row: u32, queue: usize, uses: &Uses<'_>, open: &OpenKeys<'_>) -> Wait {
        let waits = uses.of(row).filter(|(key, _)| open.is_doubtful(key)).map(|(key, how)| {
            let of_key = self.ahead.get(&key).map_or(&[][..], Vec::as_slice);
            let elsewhere = |how: How| {
                let mut others = of_key.iter().filter(|ahead| ahead.queue != queue);
                others.any(|ahead| ahead.counts[how as usize] > 0)
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
