//! Finds processes whose start event is missing and whose pid another process had before.
//!
//! Without a start, all events after the end of the previous process would go to the later one. If that end is missing
//! too, none would. What the two do at end and start tells them apart. No process opens handles after its end. A new
//! one has a first thread, which another process creates, and loads images that are already loaded.

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

/// Longest time from a process's start to its first thread.
const FIRST_THREAD_NS: i64 = 5_000_000;

/// Number of images a process loads first and never unloads: its program and ntdll.
const FIRST_IMAGES: usize = 2;

/// Image that every process loads first and never unloads.
const FIRST_IMAGE: &str = "ntdll.dll";

/// A process, and possibly another one with its pid after it, whose start is missing.
struct Succession {
    pid: u32,
    /// Row of the later process, if an event other than its start names it.
    later: Option<usize>,
    /// End of the earlier process.
    end: Option<i64>,
    /// Times between which the later process started.
    after: i64,
    before: i64,
    /// First open after the known end of the earlier process.
    opens: Option<i64>,
    /// Events that processes make when they begin.
    begins: Vec<i64>,
    /// Previous event, and the longest pause with missing events: its length and its end.
    previous: i64,
    longest: (i64, i64),
}

/// Finds since when the events of a pid belong to a process whose start is missing, if events show it. Returns how many
/// such processes have no such event, so that only a pause with missing events separates them from the previous
/// process.
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
    for ProcessBegin { pid, time, is_certain } in begins {
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
            // If its end is not known, the earlier process opened handles too.
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
                // Its start must be in a gap.
                let since =
                    since.filter(|since| missing.times.is_between(succession.after, *since));
                if let Some(since) = since {
                    collected.processes.add_nameless(succession.pid, since);
                }
                continue;
            };
            doubtful += u64::from(since.is_none());
            // Events after a known end that open nothing are the sweep.
            let or_pause = succession.end.map_or(succession.longest.1, |_| succession.before);
            let since = since.unwrap_or(or_pause);
            collected.processes.rows[later].since = Some(since);
            since_before = Some(since);
        }
    }
    Ok(doubtful)
}

/// Returns the successions by pid, in time order.
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
            // An event at the time of the start belongs to the starting process.
            Some(start) => add(known, None, start.saturating_sub(1)),
            None => add(known, Some(later), row.end.or(row.listed).unwrap_or(i64::MAX)),
        }
    }
    earlier.values().for_each(|last| add(last, None, i64::MAX));
    successions.values_mut().for_each(|list| list.sort_by_key(|it| (it.before, it.after)));
    successions
}

/// Whether an event opens a kernel handle, as drivers do while a process ends.
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

    /// Returns the first event that only the later process can have made. `since` is the earlier one's result.
    fn since(&mut self, since: Option<i64>, first_thread: i64) -> Option<i64> {
        // The earlier process has a first thread and images too.
        let after = match self.end {
            Some(end) => end,
            None => self.after.max(since.unwrap_or(i64::MIN)).saturating_add(first_thread),
        };
        let begins =
            self.begins.iter().copied().filter(|time| *time > after && self.is_within(*time));
        begins.chain(self.opens).min()
    }
}

/// Event that a process makes only when it begins.
struct ProcessBegin {
    pid: u32,
    time: i64,
    /// Whether only the begin of a process makes such an event.
    is_certain: bool,
}

/// Returns the first threads of processes. Another process creates them, as it does a few later ones.
fn first_threads(collected: &Collector) -> impl Iterator<Item = ProcessBegin> + '_ {
    collected
        .threads
        .rows
        .iter()
        .filter(|thread| {
            thread.is_started && thread.creator.is_some_and(|(creator, _)| creator != thread.pid)
        })
        .map(|thread| ProcessBegin { pid: thread.pid, time: thread.seen, is_certain: false })
}

/// Returns loads of a pid's first images at addresses where they were already loaded.
fn images_loaded_again(collected: &Collector) -> impl Iterator<Item = ProcessBegin> {
    let mut first: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut again = Vec::new();
    for image in &collected.images.rows {
        let bases = first.entry(image.pid).or_default();
        if bases.contains(&image.base) {
            let path = &collected.images.paths[image.path as usize];
            let name = path.rsplit('\\').next().unwrap_or_default();
            let is_certain = name.eq_ignore_ascii_case(FIRST_IMAGE);
            again.extend(image.load.map(|time| ProcessBegin { pid: image.pid, time, is_certain }));
        } else if bases.len() < FIRST_IMAGES {
            bases.push(image.base);
        }
    }
    again.into_iter()
}
