//! `.dump Process`: the processes of a trace.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use handlescope_model::tables::{Process, Processes, TraceInfo};
use handlescope_model::{ProcessIdx, TableRows};

use super::context::Source;
use super::criteria::{ProcessCriteria, ProcessListCriteria, ProcessOrder};
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::no_match::{List, NoMatch, Subject};
use super::tables::ProcessList;
use handlescope_session::cancel::Cancel;

/// The processes of one trace.
pub struct ProcessAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    pub info: Arc<TraceInfo>,
    /// Processes that passed, in order.
    pub processes: Vec<ListedProcess>,
    /// Reason for an empty answer; `None` when there is a process, in this trace or another.
    pub no_match: Option<NoMatch>,
}

/// A process and its place in the list.
pub struct ListedProcess {
    pub process: Process,
    /// Number of its ancestors above it, in a tree.
    pub depth: usize,
    /// The name of its parent, where that is in the trace.
    pub parent: Option<String>,
}

/// Answers `.dump Process`, one answer for each trace.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn processes<'a>(
    sources: &[Source<'a>],
    args: &ProcessListCriteria,
    cancel: &Cancel,
) -> Result<Vec<ProcessAnswer<'a>>, QueryError> {
    let answer = |source: &Source<'a>, args: &ProcessListCriteria| {
        cancel.check()?;
        let info = source.trace.info()?;
        let infos = ProcessList::load(source.trace)?;
        let processes: Vec<Process> = Processes::read(source.trace)?.rows().collect();
        let parents = Parents::of(&processes);
        let of_row = |row: &usize| infos.get(ProcessIdx(*row as u32));
        let mut rows: Vec<usize> = (0..processes.len()).collect();
        let mut survivors = Survivors::of(rows.len());
        let ProcessCriteria { name, command_line, new_process: new } = &args.processes;
        survivors.keep(Criterion::Process, name, &mut rows, |filter, row| {
            of_row(row).matches(filter, false)
        });
        survivors.keep(Criterion::Parent, &args.parent, &mut rows, |filter, row| {
            match parents.of_row(*row) {
                Some(parent) => of_row(&parent).matches(filter, false),
                None => filter.matches("", processes.get(*row).map_or(0, |it| it.parent_pid)),
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
        let rows = match args.order {
            ProcessOrder::Tree => tree(&rows, &parents),
            _ => rows.into_iter().map(|row| (row, 0)).collect(),
        };
        let listed = |(row, depth): (usize, _)| {
            let parent = parents.of_row(row).and_then(|parent| processes.get(parent));
            let parent = parent.map(|process| process.name.clone());
            processes.get(row).cloned().map(|process| ListedProcess { process, depth, parent })
        };
        let listed = rows.into_iter().filter_map(listed).collect();
        let (path, index) = (source.path, source.index);
        Ok((ProcessAnswer { path, index, info, processes: listed, no_match: None }, survivors))
    };
    let list = List { subject: Subject::Process, names, no_match: |answer| &mut answer.no_match };
    list.answers(sources, args, answer)
}

/// The names of processes, or of their parents.
fn names(answer: &ProcessAnswer<'_>, criterion: Criterion) -> BTreeSet<String> {
    let processes = answer.processes.iter();
    match criterion {
        Criterion::Process => processes.map(|listed| listed.process.name.clone()).collect(),
        Criterion::Parent => processes.filter_map(|listed| listed.parent.clone()).collect(),
        _ => BTreeSet::new(),
    }
}

/// Children after their parents, each with the number of its ancestors among the rows.
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
struct Parents<'a> {
    rows: &'a [Process],
    /// The rows of each pid by start.
    by_pid: HashMap<u32, Vec<usize>>,
}

impl<'a> Parents<'a> {
    fn of(processes: &'a [Process]) -> Self {
        let mut by_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (row, process) in processes.iter().enumerate() {
            by_pid.entry(process.pid).or_default().push(row);
        }
        by_pid.values_mut().for_each(|rows| rows.sort_by_key(|row| processes[*row].start_ns));
        Self { rows: processes, by_pid }
    }

    /// The row of the parent: the last process of that pid that had started when the child did, if
    /// it had not ended.
    fn of_row(&self, row: usize) -> Option<usize> {
        let child = self.rows.get(row)?;
        let rows = self.by_pid.get(&child.parent_pid)?;
        let started = rows.partition_point(|parent| self.rows[*parent].start_ns <= child.start_ns);
        let parent = rows[..started].iter().rev().find(|parent| **parent != row)?;
        let end = self.rows[*parent].end_ns;
        (end.is_none() || end >= child.start_ns).then_some(*parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as (pid, parent, start, end).
    fn all(rows: &[(u32, u32, Option<i64>, Option<i64>)]) -> Vec<Process> {
        let processes = rows.iter().map(|&(pid, parent_pid, start_ns, end_ns)| Process {
            pid,
            parent_pid,
            start_ns,
            end_ns,
            ..Process::default()
        });
        processes.collect()
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
        let parents = Parents::of(&processes);
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
        let parents = Parents::of(&processes);
        let rows: Vec<usize> = (0..processes.len()).collect();
        assert_eq!(tree(&rows, &parents), [(0, 0), (3, 1), (4, 2), (5, 1), (1, 0), (2, 1)]);
        assert_eq!(tree(&[4, 5], &parents), [(4, 0), (5, 0)]);
    }
}
