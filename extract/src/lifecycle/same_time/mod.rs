//! The order of events whose time stamps are equal.
//!
//! The system clock stands still between two ticks of its timer, of 1 to 16 ms, so that many events share a time; with
//! other clocks a few do. On one processor the file has them in their order. Across processors it says nothing, and
//! the buffer that comes first may hold the close of a handle that is opened in another one. What happens to a handle,
//! a view or an object says what came first: it is opened before it is used and closed, and closed before it is
//! opened again. Events that share none of these keep the order of the file.

mod open_keys;
mod run;
mod uses;

use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::{HashMap, HashSet};

use self::open_keys::OpenKeys;
use self::run::{LOOKS_PER_ROW, MOST_LOOKS, arrange};
use self::uses::{How, Key, Uses};
use super::attribution::ProcessIndex;
use super::owners::EventOwners;
use crate::collect::Collector;

/// The rows of the timeline in time order, unless asked to stop; `None` when that is the order of the rows.
///
/// `order` gives the rows by time when that is not their order.
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
    let mut open = OpenKeys::of_start(collected, index, &doubtful);
    let mut looks = MOST_LOOKS.saturating_add(LOOKS_PER_ROW * order.len());
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

/// The end of the rows that have the time of the one at `first`; `None` after the last.
fn next_run(uses: &Uses<'_>, first: usize, row: impl Fn(usize) -> Option<u32>) -> Option<usize> {
    let times = &uses.collected.shared.timeline.time;
    let time = times[row(first)? as usize];
    let mut end = first + 1;
    while row(end).is_some_and(|row| times[row as usize] == time) {
        end += 1;
    }
    Some(end)
}

/// What events of several processors did at one time, of which at least one opened or closed it.
fn doubtful_keys(
    uses: &Uses<'_>,
    order: Option<&[u32]>,
    cancel: &Cancel,
) -> Result<HashSet<Key>, Cancelled> {
    let timeline = &uses.collected.shared.timeline;
    let row = |at: usize| match order {
        Some(order) => order.get(at).copied(),
        None => (at < timeline.len()).then_some(at as u32),
    };
    let mut doubtful = HashSet::new();
    let mut at_once: HashMap<Key, AtOnce> = HashMap::new();
    let mut poll = Poll::new(cancel);
    let mut first = 0;
    while let Some(end) = next_run(uses, first, row) {
        let rows = || (first..end).filter_map(row);
        let processor = |row: u32| timeline.processor[row as usize];
        let mut processors = rows().filter(|row| uses.is_of_object(*row)).map(processor);
        let is_of_several = end - first > 1
            && processors.next().is_some_and(|one| processors.any(|processor| processor != one));
        for row in rows() {
            poll.round()?;
            if !is_of_several {
                continue;
            }
            for (key, how) in uses.of(row) {
                let known = at_once.entry(key).or_insert(AtOnce::new(processor(row)));
                known.add(processor(row), how);
                if known.is_doubtful() {
                    doubtful.insert(key);
                }
            }
        }
        at_once.clear();
        first = end;
    }
    Ok(doubtful)
}

/// What happened to something at one time.
struct AtOnce {
    processor: u16,
    is_of_several: bool,
    changes: bool,
}

impl AtOnce {
    fn new(processor: u16) -> Self {
        Self { processor, is_of_several: false, changes: false }
    }

    fn add(&mut self, processor: u16, how: How) {
        self.is_of_several |= processor != self.processor;
        self.changes |= matches!(how, How::Open | How::Close);
    }

    fn is_doubtful(&self) -> bool {
        self.is_of_several && self.changes
    }
}
