//! Processes whose start event is among the missing events, after another process with their pid.
//!
//! Without a start, all events since the end of the process before would be of the later one, or, if that end is missing, too,
//! none of them. What a process does at its end and what the next one does at its start tell them apart: no process opens
//! handles after its end, and a new one has a first thread, which another process made, and loads images that are loaded
//! already.

use handlescope_model::rules::{OPENING, is_kernel_handle};
use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::HashMap;

use super::MissingEvents;
use super::kinds::event_kind;
use super::owners::event_pid;
use crate::collect::Collector;
use crate::etl::Clock;
use crate::kernel::ProcessRow;
use crate::raw::RowKind;

/// Longest time from the start of a process to its first thread.
const FIRST_THREAD_NS: i64 = 5_000_000;

/// Images that a process loads first and never unloads: its program and ntdll.
const FIRST_IMAGES: usize = 2;

/// Name of the image that every process loads first and never unloads.
const FIRST_IMAGE: &str = "ntdll.dll";

/// A process, and what may be another one with its pid after it, the start of which is missing.
struct Succession {
    pid: u32,
    /// Row of the later one, if another event than its start names it.
    later: Option<usize>,
    /// The end of the earlier one.
    end: Option<i64>,
    /// Times between which the later one started.
    after: i64,
    before: i64,
    /// First open after the known end of the earlier one.
    opens: Option<i64>,
    /// Events that processes make at their begin.
    begins: Vec<i64>,
    /// The event before, and the pause that ends with the latest event: its length and its end.
    previous: i64,
    longest: (i64, i64),
}

/// Finds since when events of a pid are of a process whose start is missing, as far as events show it. Returns how many have
/// no such event, so that only a pause in which events are missing separates it from the process before.
pub fn find_lost_starts(
    collected: &mut Collector,
    missing: &MissingEvents,
    clock: &Clock,
    cancel: &Cancel,
) -> Result<u64, Cancelled> {
    if missing.is_none() {
        return Ok(0);
    }
    let mut successions = successions(collected);
    let begins = first_threads(collected).chain(images_loaded_again(collected));
    for Begin { pid, time, is_certain } in begins {
        for succession in successions.get_mut(&pid).into_iter().flatten() {
            if is_certain || succession.later.is_some() {
                succession.begins.push(time);
            }
        }
    }
    let timeline = &collected.shared.timeline;
    let mut poll = Poll::new(cancel);
    for row in 0..timeline.len() {
        poll.round()?;
        let Some(kind) = event_kind(timeline.kind[row]) else { continue };
        let (pid, time) = (event_pid(collected, row), timeline.time[row]);
        let Some(list) = successions.get_mut(&pid) else { continue };
        let from = list.partition_point(|succession| succession.before < time);
        for succession in list[from..].iter_mut().take_while(|it| it.after < time) {
            let is_missing = missing.times.is_between(succession.previous, time);
            let pause = time.saturating_sub(succession.previous);
            if is_missing && pause > succession.longest.0 {
                succession.longest = (pause, time);
            }
            succession.previous = succession.previous.max(time);
            // Before its end, the earlier one opened handles, too.
            if OPENING.contains(kind)
                && succession.end.is_some()
                && !opens_for_kernel(collected, row)
            {
                succession.opens = Some(succession.opens.map_or(time, |opens| opens.min(time)));
            }
        }
    }
    let first_thread = clock.ticks_apart(FIRST_THREAD_NS);
    let mut doubtful = 0;
    for mut list in successions.into_values() {
        let mut since_before = None;
        for succession in &mut list {
            let since = succession.since(since_before, first_thread);
            let Some(later) = succession.later else {
                // Only what is missing can have been its start.
                let since =
                    since.filter(|since| missing.times.is_between(succession.after, *since));
                if let Some(since) = since {
                    collected.processes.add_nameless(succession.pid, since);
                }
                continue;
            };
            doubtful += u64::from(since.is_none());
            // What comes after a known end and opens nothing is the sweep.
            let or_pause = succession.end.map_or(succession.longest.1, |_| succession.before);
            let since = since.unwrap_or(or_pause);
            collected.processes.rows[later].since = Some(since);
            since_before = Some(since);
        }
    }
    Ok(doubtful)
}

/// The successions in the order of their times, by pid.
fn successions(collected: &Collector) -> HashMap<u32, Vec<Succession>> {
    let mut successions: HashMap<u32, Vec<Succession>> = HashMap::new();
    let mut earlier: HashMap<u32, &ProcessRow> = HashMap::new();
    let mut add = |known: &ProcessRow, later: Option<usize>, before: i64| {
        let pid = known.process.pid;
        let after = known.end.or(known.start).unwrap_or(i64::MIN);
        successions.entry(pid).or_default().push(Succession {
            pid,
            later,
            end: known.end,
            after,
            before,
            opens: None,
            begins: Vec::new(),
            previous: after,
            longest: (-1, before),
        });
    };
    for (later, row) in collected.processes.rows.iter().enumerate() {
        let Some(known) = earlier.insert(row.process.pid, row) else { continue };
        match row.start {
            // An event with the time of the start is of the process that starts.
            Some(start) => add(known, None, start.saturating_sub(1)),
            None => add(known, Some(later), row.end.or(row.listed).unwrap_or(i64::MAX)),
        }
    }
    earlier.values().for_each(|last| add(last, None, i64::MAX));
    successions.values_mut().for_each(|list| list.sort_by_key(|it| (it.before, it.after)));
    successions
}

/// Whether an event opens a handle of the kernel, as drivers do while a process ends.
fn opens_for_kernel(collected: &Collector, row: usize) -> bool {
    let Collector { handles, duplicates, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    let value = match shared.timeline.kind[row] {
        RowKind::HandleCreate => handles.handle[at],
        RowKind::HandleDuplicate => duplicates.rows[at].target_handle,
        _ => return false,
    };
    is_kernel_handle(value.into())
}

impl Succession {
    fn is_within(&self, time: i64) -> bool {
        self.after < time && time <= self.before
    }

    /// The first event that only the later one can have made. `since` is that of the earlier one.
    fn since(&mut self, since: Option<i64>, first_thread: i64) -> Option<i64> {
        // The earlier one has a first thread and images, too.
        let after = match self.end {
            Some(end) => end,
            None => self.after.max(since.unwrap_or(i64::MIN)).saturating_add(first_thread),
        };
        let begins =
            self.begins.iter().copied().filter(|time| *time > after && self.is_within(*time));
        begins.chain(self.opens).min()
    }
}

/// An event that a process makes only at its begin.
struct Begin {
    pid: u32,
    time: i64,
    /// Whether nothing but the begin of a process makes such an event.
    is_certain: bool,
}

/// First threads of processes: another process makes them, as a few later ones.
fn first_threads(collected: &Collector) -> impl Iterator<Item = Begin> + '_ {
    let first = collected.threads.rows.iter().filter(|thread| {
        thread.is_started && thread.creator.is_some_and(|(creator, _)| creator != thread.pid)
    });
    first.map(|thread| Begin { pid: thread.pid, time: thread.seen, is_certain: false })
}

/// Loads of the first images of a pid at the addresses at which they were loaded before.
fn images_loaded_again(collected: &Collector) -> impl Iterator<Item = Begin> {
    let mut first: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut again = Vec::new();
    for image in &collected.images.rows {
        let bases = first.entry(image.pid).or_default();
        if bases.contains(&image.base) {
            let path = &collected.images.paths[image.path as usize];
            let name = path.rsplit('\\').next().unwrap_or_default();
            let is_certain = name.eq_ignore_ascii_case(FIRST_IMAGE);
            again.extend(image.load.map(|time| Begin { pid: image.pid, time, is_certain }));
        } else if bases.len() < FIRST_IMAGES {
            bases.push(image.base);
        }
    }
    again.into_iter()
}
