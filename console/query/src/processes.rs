//! `.dump Process`: the processes of a trace.

use std::collections::{BTreeSet, HashMap, HashSet};

use handlescope_model::tables::{Process, Processes, Zombie, Zombies};
use handlescope_model::{ArchiveError, TableRows, Trace};

use super::context::Source;
use super::criteria::{ProcessCriteria, ProcessListCriteria, ProcessOrder};
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::list_answer::{FilteredList, ListAnswer, list_answers};
use super::no_match::ListSubject;
use super::tables::ProcessInfo;
use super::zombies::{KnownZombies, ZombieSummary};
use handlescope_session::cancel::Cancel;

/// What `.dump Process` says about one trace.
pub type ProcessAnswer<'a> = ListAnswer<'a, ProcessRows>;

/// The processes of one trace.
pub struct ProcessRows {
    /// Processes that passed, in order.
    pub processes: Vec<ListedProcess>,
    /// The listed processes counted by name, if zombies are listed.
    pub zombies: Option<ZombieSummary>,
}

/// A process and where it is in the list.
pub struct ListedProcess {
    pub process: Process,
    /// Number of ancestors above it in a tree.
    pub depth: usize,
    /// The name of its parent, if the parent is in the trace.
    pub parent: Option<String>,
    /// Whether it has ended but is still in memory.
    pub is_zombie: bool,
}

/// The processes of a trace, and behind them those that are only listed as zombies.
pub struct AllProcesses {
    /// Of a zombie the end may be known from the list alone.
    pub rows: Vec<Process>,
    /// Time at which each was last listed as a zombie.
    pub listed_ns: Vec<Option<i64>>,
    /// Number of processes of the trace.
    pub traced: usize,
}

impl AllProcesses {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let mut rows: Vec<Process> = Processes::read(trace)?.rows().collect();
        let traced = rows.len();
        let mut listed_ns = vec![None; traced];
        for zombie in Zombies::read(trace)?.rows() {
            let row = zombie.process.map(|process| process.row());
            match row.and_then(|row| rows.get_mut(row).zip(listed_ns.get_mut(row))) {
                Some((process, listed_ns)) => {
                    process.end_ns = process.end_ns.or(zombie.exit_ns);
                    *listed_ns = Some(zombie.listed_ns);
                }
                None => {
                    listed_ns.push(Some(zombie.listed_ns));
                    rows.push(process_of(zombie));
                }
            }
        }
        Ok(Self { rows, listed_ns, traced })
    }
}

/// Converts a zombie to a process with unknown start.
fn process_of(zombie: Zombie) -> Process {
    Process {
        pid: zombie.pid,
        parent_pid: zombie.parent_pid,
        key: zombie.key,
        name: zombie.name,
        command_line: zombie.command_line,
        session_id: zombie.session_id,
        sid: zombie.sid,
        end_ns: zombie.exit_ns,
        exit_code: Some(zombie.exit_code),
        ..Process::default()
    }
}

/// Answers `.dump Process`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn processes<'a>(
    sources: &[Source<'a>],
    args: &ProcessListCriteria,
    cancel: &Cancel,
) -> Result<Vec<ProcessAnswer<'a>>, QueryError> {
    list_answers(sources, args, |source, args| {
        cancel.check()?;
        let info = source.trace.info()?;
        let KnownZombies { all, zombies, .. } = KnownZombies::load(source.trace)?;
        let processes = &all.rows;
        // A filter on ends means those in the trace.
        let in_trace = |process: &Process| {
            let end_ns = process.end_ns.filter(|end| *end >= 0);
            ProcessInfo::new(Process { end_ns, ..process.clone() }, &info)
        };
        let infos: Vec<ProcessInfo> = processes.iter().map(in_trace).collect();
        let parents =
            Parents::new(&processes[..if args.zombies { processes.len() } else { all.traced }]);
        let of_row = |row: &usize| &infos[*row];
        let is_listed =
            |row: &usize| if args.zombies { zombies.contains(row) } else { *row < all.traced };
        let mut rows: Vec<usize> = (0..processes.len()).filter(is_listed).collect();
        let mut survivors = Survivors::new(rows.len());
        let ProcessCriteria { name, command_line, new_process: new } = &args.processes;
        survivors.keep(Criterion::Process, name, &mut rows, |filter, row| {
            of_row(row).matches(filter, false)
        });
        survivors.keep(Criterion::Parent, &args.parent, &mut rows, |filter, row| {
            match parents.of_row(*row) {
                Some(parent) => of_row(&parent).matches(filter, false),
                None => filter.matches("", processes[*row].parent_pid),
            }
        });
        survivors.keep(Criterion::CmdLine, command_line, &mut rows, |filter, row| {
            filter.matches(&of_row(row).command_line)
        });
        survivors.keep(Criterion::NewProcess, new, &mut rows, |new, row| new.matches(of_row(row)));
        rows.sort_by_key(|row| {
            let Process { pid, start_ns, end_ns, .. } = processes[*row];
            match args.order {
                ProcessOrder::Pid | ProcessOrder::Tree => (None, pid, start_ns),
                ProcessOrder::Start => (start_ns, pid, None),
                ProcessOrder::End => (end_ns, pid, start_ns),
            }
        });
        if args.zombies && args.order == ProcessOrder::default() {
            let names = rows.iter().map(|row| processes[*row].name.clone());
            let ranks: HashMap<String, usize> = (0..)
                .zip(ZombieSummary::from_names(names).programs)
                .map(|(at, (name, _))| (name, at))
                .collect();
            rows.sort_by_key(|row| {
                let process = &processes[*row];
                (ranks.get(&process.name), process.end_ns, process.pid)
            });
        }
        let rows = match args.order {
            ProcessOrder::Tree => tree(&rows, &parents),
            _ => rows.into_iter().map(|row| (row, 0)).collect(),
        };
        let listed = |(row, depth): (usize, _)| {
            let parent = parents.of_row(row).map(|parent| processes[parent].name.clone());
            let (process, is_zombie) = (processes[row].clone(), zombies.contains(&row));
            ListedProcess { process, depth, parent, is_zombie }
        };
        let processes: Vec<ListedProcess> = rows.into_iter().map(listed).collect();
        let zombies = args.zombies.then(|| {
            ZombieSummary::from_names(processes.iter().map(|listed| listed.process.name.clone()))
        });
        Ok((ProcessRows { processes, zombies }, survivors))
    })
}

impl FilteredList for ProcessRows {
    const SUBJECT: ListSubject = ListSubject::Process;

    /// Returns the names of processes or of their parents.
    fn names(&self, criterion: Criterion) -> BTreeSet<String> {
        let processes = self.processes.iter();
        match criterion {
            Criterion::Process => processes.map(|listed| listed.process.name.clone()).collect(),
            Criterion::Parent => processes.filter_map(|listed| listed.parent.clone()).collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// Returns children after their parents, each with its number of ancestors among the rows.
fn tree(rows: &[usize], parents: &Parents<'_>) -> Vec<(usize, usize)> {
    let shown: HashSet<usize> = rows.iter().copied().collect();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for &row in rows {
        let parent = parents.of_row(row).filter(|parent| shown.contains(parent));
        children.entry(parent).or_default().push(row);
    }
    let (mut tree, mut visited) = (Vec::with_capacity(rows.len()), HashSet::new());
    // Processes from before the trace may name each other as parents, so that neither is a root.
    for &root in children.get(&None).into_iter().flatten().chain(rows) {
        let mut pending = vec![(root, 0)];
        while let Some((row, depth)) = pending.pop() {
            if visited.insert(row) {
                tree.push((row, depth));
                let below = children.get(&Some(row)).into_iter().flatten().rev();
                pending.extend(below.map(|child| (*child, depth + 1)));
            }
        }
    }
    tree
}

/// Finds the parents of processes: pids are used again.
pub struct Parents<'a> {
    rows: &'a [Process],
    /// The rows of each pid, by start.
    by_pid: HashMap<u32, Vec<usize>>,
}

impl<'a> Parents<'a> {
    pub fn new(processes: &'a [Process]) -> Self {
        let mut by_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (row, process) in processes.iter().enumerate() {
            by_pid.entry(process.pid).or_default().push(row);
        }
        by_pid.values_mut().for_each(|rows| rows.sort_by_key(|row| processes[*row].start_ns));
        Self { rows: processes, by_pid }
    }

    /// The row of the parent, which had the pid when the child started.
    pub fn of_row(&self, row: usize) -> Option<usize> {
        let child = self.rows.get(row)?;
        self.at(child.parent_pid, child.start_ns, Some(row))
    }

    /// The row of the last process of a pid that had started at a time, if it had not ended then; `except` is another one.
    pub fn at(&self, pid: u32, time_ns: Option<i64>, except: Option<usize>) -> Option<usize> {
        let rows = self.by_pid.get(&pid)?;
        let started = rows.partition_point(|row| self.rows[*row].start_ns <= time_ns);
        let row = rows[..started].iter().rev().find(|row| Some(**row) != except)?;
        let end = self.rows[*row].end_ns;
        (end.is_none() || end >= time_ns).then_some(*row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes processes from (pid, parent, start, end).
    fn all(rows: &[(u32, u32, Option<i64>, Option<i64>)]) -> Vec<Process> {
        rows.iter()
            .map(|&(pid, parent_pid, start_ns, end_ns)| Process {
                pid,
                parent_pid,
                start_ns,
                end_ns,
                ..Process::default()
            })
            .collect()
    }

    #[test]
    fn a_parent_is_the_process_that_had_the_pid_when_the_child_started() {
        let processes = all(&[
            (7, 0, None, Some(10)),
            (7, 0, Some(20), Some(30)),
            (8, 7, Some(5), None),
            (8, 7, Some(15), None),
            (8, 7, Some(25), None),
            (8, 9, Some(25), None),
            (8, 7, None, None),
            (0, 0, None, None),
        ]);
        let parents = Parents::new(&processes);
        let rows: Vec<_> = (2..processes.len()).map(|row| parents.of_row(row)).collect();
        assert_eq!(rows, [Some(0), None, Some(1), None, Some(0), None]);
    }

    #[test]
    fn a_tree_lists_each_process_once_also_when_parents_go_round() {
        let processes = all(&[
            (4, 0, None, None),
            (5, 6, None, None),
            (6, 5, None, None),
            (7, 4, Some(1), None),
            (8, 7, Some(2), None),
            (9, 4, Some(3), None),
        ]);
        let parents = Parents::new(&processes);
        let rows: Vec<usize> = (0..processes.len()).collect();
        assert_eq!(tree(&rows, &parents), [(0, 0), (3, 1), (4, 2), (5, 1), (1, 0), (2, 1)]);
        assert_eq!(tree(&[4, 5], &parents), [(4, 0), (5, 0)]);
    }
}
