//! Resolves a pid at a given time to a process.

use hashbrown::HashMap;

use crate::etl::{Diagnostics, WarningKind};
use crate::kernel::ProcessRow;
use crate::raw::UNKNOWN_ID;

/// Pid of the System process on every Windows since XP.
const SYSTEM_PID: u32 = 4;

/// Means "no row" in columns with an entry per event or allocation, where an `Option` would double the size.
pub const NONE: u32 = u32::MAX;

/// Returns the number, or `None` if it means no row, no process or no thread.
pub fn known(number: u32) -> Option<u32> {
    const { assert!(NONE == UNKNOWN_ID) };
    Some(number).filter(|number| *number != NONE)
}

/// Process lifetimes, searchable by pid and raw time.
pub struct ProcessIndex {
    /// Lifetimes by pid.
    lifetimes: HashMap<u32, PidLifetimes>,
    /// Children by parent pid as (start, row), in order of start.
    children: HashMap<u32, Vec<(i64, u32)>>,
    /// Rows of processes that are known only by pid.
    unnamed: HashMap<u32, u32>,
}

/// Lifetime of a process, in the caller's time unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    pub pid: u32,
    pub parent_pid: u32,
    /// Start, if it was seen.
    pub start: Option<i64>,
    /// Time of its first known event, if the start was not seen.
    pub since: Option<i64>,
    /// End, if it was seen.
    pub end: Option<i64>,
}

impl ProcessIndex {
    pub fn new(rows: &[ProcessRow]) -> Self {
        let (named, unnamed) = rows.split_at(rows.partition_point(|row| !row.is_unnamed));
        let index = Self::from_rows(named.iter().map(|row| Lifetime {
            pid: row.process.pid,
            parent_pid: row.process.parent_pid,
            start: row.start,
            since: row.since,
            end: row.end,
        }));
        let unnamed = unnamed.iter().map(|row| row.process.pid).zip(named.len() as u32..);
        Self { unnamed: unnamed.collect(), ..index }
    }

    /// Creates an index of lifetimes; a lifetime's position is its row.
    pub fn from_rows(rows: impl Iterator<Item = Lifetime>) -> Self {
        let mut lifetimes: HashMap<u32, Vec<_>> = HashMap::new();
        let mut children: HashMap<u32, Vec<_>> = HashMap::new();
        let mut last_ends = HashMap::new();
        for (row, process) in (0..).zip(rows) {
            let before: Option<i64> = last_ends.get(&process.pid).copied();
            // If a pid was reused and its start was lost, it started after the previous process ended.
            let earliest = before.map_or(i64::MIN, |end| end.saturating_add(1));
            let start = process.start.or(process.since).unwrap_or(earliest);
            if let Some(end) = process.end {
                last_ends.insert(process.pid, end);
            }
            let end = process.end.unwrap_or(i64::MAX);
            lifetimes.entry(process.pid).or_default().push((start, end, row));
            if let Some(start) = process.start {
                children.entry(process.parent_pid).or_default().push((start, row));
            }
        }
        children.values_mut().for_each(|list| list.sort_unstable());
        let lifetimes = lifetimes.into_iter().map(|(pid, list)| (pid, PidLifetimes::new(list)));
        Self { lifetimes: lifetimes.collect(), children, unnamed: HashMap::new() }
    }

    /// Returns start and row of a pid with a single lifetime: all later events of the pid belong to it.
    pub fn only_lifetime(&self, pid: u32) -> Option<(i64, u32)> {
        match self.lifetimes.get(&pid)?.list.as_slice() {
            [(start, _, row)] => Some((*start, *row)),
            _ => None,
        }
    }

    /// Returns the next start of a pid after a time.
    pub fn next_start(&self, pid: u32, time: i64) -> Option<i64> {
        let list = &self.lifetimes.get(&pid)?.list;
        let next = list.partition_point(|(start, _, _)| *start <= time);
        list.get(next).map(|(start, _, _)| *start)
    }

    /// Returns the process with this pid at this time, its first and last moment included. If there are several, the
    /// one that started last wins.
    pub fn find(&self, pid: u32, time: i64) -> Option<u32> {
        self.lifetimes.get(&pid)?.find(time, time)
    }

    /// Returns the process with this pid at this time, or else the one that ended last under it.
    ///
    /// Windows sweeps the handles and views of a process after its end event, however long that takes. It reuses the
    /// pid only then.
    pub fn find_or_ended(&self, pid: u32, time: i64) -> Option<u32> {
        self.find(pid, time).or_else(|| self.lifetimes.get(&pid)?.find(time, i64::MIN))
    }

    /// Returns the row of System.
    pub fn system(&self) -> Option<u32> {
        self.lifetimes.get(&SYSTEM_PID)?.list.first().map(|(_, _, row)| *row)
    }

    /// Returns the row of System if it is known at this time. System takes the events of unknown processes.
    pub fn system_at(&self, time: i64) -> Option<u32> {
        self.find(SYSTEM_PID, time)
    }

    /// Returns the process that is known only by this pid, because the events with its start, end and name are missing.
    pub fn find_unnamed(&self, pid: u32) -> Option<u32> {
        self.unnamed.get(&pid).copied()
    }

    /// Returns the process with this pid at this time, or else the first one with this pid.
    pub fn find_any(&self, pid: u32, time: i64) -> Option<u32> {
        self.find(pid, time)
            .or_else(|| self.lifetimes.get(&pid)?.list.first().map(|(_, _, row)| *row))
    }

    /// Returns the first process with this pid that starts after a time, at most `ahead` ticks later.
    pub fn starts_within(&self, pid: u32, time: i64, ahead: i64) -> Option<u32> {
        let list = &self.lifetimes.get(&pid)?.list;
        let next = list.partition_point(|(start, _, _)| *start <= time);
        let (start, _, row) = list.get(next)?;
        (*start <= time.saturating_add(ahead)).then_some(*row)
    }

    /// Returns the child that inherits a handle its parent duplicates at a time. Events do not name the child, so the
    /// next one to start is taken, if it starts before the parent ends. For a child that starts at exactly that time,
    /// `is_later` says whether it came after the duplicate, if known.
    pub fn inheriting_child(
        &self,
        parent_pid: u32,
        parent_end: Option<i64>,
        after: i64,
        is_later: impl Fn(u32) -> Option<bool>,
    ) -> Option<u32> {
        let list = self.children.get(&parent_pid)?;
        let parent_end = parent_end.unwrap_or(i64::MAX);
        let next = list.partition_point(|(start, _)| *start < after);
        let children = || list.get(next..).unwrap_or_default().iter();
        let at_once = || children().take_while(|(start, _)| *start == after);
        let child = at_once()
            .find(|(_, row)| is_later(*row) == Some(true))
            .or_else(|| at_once().find(|(_, row)| is_later(*row).is_none()))
            .or_else(|| children().find(|(start, _)| *start > after));
        child.filter(|(start, _)| *start <= parent_end).map(|(_, row)| *row)
    }
}

/// Lifetimes of one pid. Traces may have hundreds of thousands, too many to scan for each event.
struct PidLifetimes {
    /// Lifetimes as (start, end, row), ordered by start.
    list: Vec<(i64, i64, u32)>,
    /// Tree of the latest ends. The root is node 1, the children of node n are 2n and 2n + 1, and the leaves are the
    /// ends in `list`. There is at least one spare leaf.
    latest: Vec<i64>,
}

impl PidLifetimes {
    fn new(mut list: Vec<(i64, i64, u32)>) -> Self {
        list.sort_unstable();
        // A pid is reused only after its process ended, even if that end was not seen.
        let mut next = i64::MAX;
        for (start, end, _) in list.iter_mut().rev() {
            if *end == i64::MAX {
                *end = next;
            }
            if *start > i64::MIN {
                next = *start;
            }
        }
        let leaves = (list.len() + 1).next_power_of_two();
        let mut latest = vec![i64::MIN; 2 * leaves];
        for (leaf, (_, end, _)) in latest[leaves..].iter_mut().zip(&list) {
            *leaf = *end;
        }
        for node in (1..leaves).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        Self { list, latest }
    }

    /// Finds the process that started last, among those that had started at `time` and not yet ended at `since`.
    fn find(&self, time: i64, since: i64) -> Option<u32> {
        // Most pids have only one process.
        if let [(start, end, row)] = *self.list {
            return (start <= time && end >= since).then_some(row);
        }
        let started = self.list.partition_point(|(start, _, _)| *start <= time);
        let leaves = self.latest.len() / 2;
        // Climb from the first process that has not started, until the subtree to the left contains one that is alive.
        let mut node = leaves + started;
        while node.is_multiple_of(2) || self.latest[node - 1] < since {
            node /= 2;
            if node <= 1 {
                return None;
            }
        }
        node -= 1;
        while node < leaves {
            node = 2 * node + usize::from(self.latest[2 * node + 1] >= since);
        }
        self.list.get(node - leaves).map(|(_, _, row)| *row)
    }
}

/// Counts how events were attributed to processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Events attributed by the process id in their header.
    pub header: u64,
    /// Events attributed by the process id of their stack.
    pub stack: u64,
    /// Events attributed to the process that had ended under the pid.
    pub before_exit: u64,
    /// Events attributed to System, because no process was known.
    pub system: u64,
    /// Dropped events: their pid is 0, or not even System is known.
    pub dropped: u64,
}

impl Attribution {
    /// Adds the counts of more events.
    pub fn add(&mut self, counts: &Self) {
        let Self { header, stack, before_exit, system, dropped } = counts;
        self.header += header;
        self.stack += stack;
        self.before_exit += before_exit;
        self.system += system;
        self.dropped += dropped;
    }

    /// Returns the process of an event, and counts how it was found.
    pub fn attribute(
        &mut self,
        index: &ProcessIndex,
        pid: u32,
        is_from_stack: bool,
        time: i64,
        diagnostics: &mut Diagnostics,
    ) -> Option<u32> {
        if pid == 0 {
            self.dropped += 1;
            diagnostics.count(WarningKind::PidZero, None);
            return None;
        }
        if pid != UNKNOWN_ID {
            let by_pid = if is_from_stack { &mut self.stack } else { &mut self.header };
            if let Some(row) = index.find(pid, time) {
                *by_pid += 1;
                return Some(row);
            }
            if let Some(row) = index.find_or_ended(pid, time) {
                self.before_exit += 1;
                return Some(row);
            }
            if let Some(row) = index.find_unnamed(pid) {
                *by_pid += 1;
                return Some(row);
            }
        }
        if let Some(row) = index.system_at(time) {
            self.system += 1;
            return Some(row);
        }
        self.dropped += 1;
        diagnostics.count(WarningKind::UnknownProcess, None);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ProcessPayload;
    use crate::raw::LifeEvent;

    pub fn process(pid: u32, parent_pid: u32, start: Option<i64>, end: Option<i64>) -> ProcessRow {
        ProcessRow {
            process: ProcessPayload {
                action: LifeEvent::Rundown,
                key: 0,
                pid,
                parent_pid,
                session_id: Some(0),
                exit_status: 0,
                sid: None,
                name: format!("{pid}.exe"),
                command_line: String::new(),
            },
            start,
            end,
            listed: None,
            since: None,
            is_unnamed: false,
            creator: None,
            start_position: None,
            end_position: None,
        }
    }

    fn index() -> ProcessIndex {
        ProcessIndex::new(&[
            process(4, 0, None, None),
            process(7, 4, None, Some(100)),
            process(7, 4, Some(200), None),
            process(8, 7, Some(50), None),
            process(8, 7, Some(60), None),
        ])
    }

    #[test]
    fn of_many_lifetimes_the_lifetime_that_started_last_is_taken() {
        let mut seed = 3_u64;
        let mut random = |below: i64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as i64 % below
        };
        for count in 1..40 {
            let rows: Vec<(i64, i64)> = (0..count)
                .map(|_| {
                    let start = random(50);
                    (start, start + random(20))
                })
                .collect();
            let lives = rows.iter().map(|(start, end)| process(7, 4, Some(*start), Some(*end)));
            let index = ProcessIndex::new(&lives.collect::<Vec<_>>());
            for time in [i64::MIN, i64::MAX].into_iter().chain(-1..75) {
                let alive =
                    (0..).zip(&rows).filter(|(_, (start, end))| (*start..=*end).contains(&time));
                let known = alive.max_by_key(|(row, life)| (**life, *row)).map(|(row, _)| row);
                assert_eq!(index.find(7, time), known, "{rows:?} at {time}");
            }
        }
    }

    #[test]
    fn a_reused_pid_means_the_process_alive_at_the_time() {
        let index = index();
        assert_eq!(index.find(7, 100), Some(1));
        assert_eq!(index.find(7, 101), None);
        assert_eq!(index.find(7, 200), Some(2));
    }

    #[test]
    fn events_after_the_end_are_of_the_process_however_short_it_lived() {
        let index = ProcessIndex::new(&[process(7, 4, Some(100), Some(101))]);
        assert_eq!(index.find(7, 102), None);
        assert_eq!(index.find_or_ended(7, 102), Some(0));
        assert_eq!(index.find_or_ended(7, i64::MAX), Some(0));
        assert_eq!(index.find_or_ended(7, 99), None);
    }

    #[test]
    fn events_after_the_end_are_of_the_process_until_its_pid_is_given_again() {
        let index = index();
        assert_eq!([199, 200].map(|time| index.find_or_ended(7, time)), [Some(1), Some(2)]);
        assert_eq!(index.next_start(7, 100), Some(200));
        assert_eq!(index.next_start(7, 200), None);
    }

    #[test]
    fn a_process_with_lost_start_does_not_hide_the_process_that_ended_before() {
        let rows = [process(7, 4, None, Some(100)), process(7, 4, None, None)];
        let index = ProcessIndex::new(&rows);
        assert_eq!(index.find(7, 100), Some(0));
        assert_eq!(index.find(7, 101), Some(1));
    }

    #[test]
    fn a_process_whose_end_was_lost_ended_before_its_pid_was_given_again() {
        let rows = [process(7, 4, Some(10), None), process(7, 4, Some(60), Some(90))];
        let index = ProcessIndex::new(&rows);
        assert_eq!([59, 60, 90].map(|time| index.find(7, time)), [Some(0), Some(1), Some(1)]);
        assert_eq!(index.find(7, 91), None);
        assert_eq!(index.find_or_ended(7, 91), Some(1));
    }

    #[test]
    fn an_unnamed_process_has_the_events_of_no_named_process() {
        let unnamed = ProcessRow { is_unnamed: true, ..process(7, 0, None, None) };
        let system = process(4, 0, None, None);
        let rows = [system, process(7, 4, Some(50), Some(90)), unnamed];
        let (index, mut d) = (ProcessIndex::new(&rows), Diagnostics::default());
        let mut a = Attribution::default();
        let owners = [49, 50, 93].map(|time| a.attribute(&index, 7, false, time, &mut d));
        assert_eq!(owners, [Some(2), Some(1), Some(1)]);
        assert_eq!(a, Attribution { header: 2, before_exit: 1, ..Attribution::default() });
    }

    #[test]
    fn the_first_child_started_after_the_duplicate_inherits() {
        let index = index();
        let not_at_once = |_| Some(false);
        assert_eq!(index.inheriting_child(7, Some(100), 49, not_at_once), Some(3));
        assert_eq!(index.inheriting_child(7, Some(100), 50, not_at_once), Some(4));
        assert_eq!(index.inheriting_child(7, Some(100), 50, |row| Some(row == 3)), Some(3));
        assert_eq!(index.inheriting_child(7, Some(55), 50, not_at_once), None);
        assert_eq!(
            index.inheriting_child(7, None, 50, not_at_once),
            Some(4),
            "an end that is not known is not an end"
        );
    }

    #[test]
    fn each_fallback_is_counted() {
        let (index, mut d) = (index(), Diagnostics::default());
        let mut a = Attribution::default();
        assert_eq!(a.attribute(&index, 7, false, 90, &mut d), Some(1));
        assert_eq!(a.attribute(&index, 7, true, 90, &mut d), Some(1));
        assert_eq!(a.attribute(&index, 7, false, 102, &mut d), Some(1));
        assert_eq!(a.attribute(&index, 99, false, 103, &mut d), Some(0));
        assert_eq!(a.attribute(&index, UNKNOWN_ID, false, 90, &mut d), Some(0));
        assert_eq!(a.attribute(&index, 0, false, 90, &mut d), None);
        let expected = Attribution { header: 1, stack: 1, before_exit: 1, system: 2, dropped: 1 };
        assert_eq!(a, expected);
    }
}
