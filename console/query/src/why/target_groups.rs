//! What is said of the processes and threads that leaked handles refer to.

use std::collections::BTreeMap;

use indicatif::HumanCount;

use crate::targets::{Target, TargetEnd};

/// Programs that are listed.
const LISTED: usize = 3;

/// Lists targets by program, the one with the most first, with what started them and when they ended: of a single one
/// `child.exe(900), started at 0.010 s by app.exe(700), ended at 0.040 s`, of several
/// `12 of worker.exe, started by service.exe(1234), 9 have ended, from 0.040 s to 2.000 s`.
pub fn listed_targets(targets: &[&Target], plain: bool) -> String {
    let mut by_program: BTreeMap<&str, Vec<&Target>> = BTreeMap::new();
    for target in targets {
        by_program.entry(target.process.shown_name(plain)).or_default().push(target);
    }
    let mut programs: Vec<(&str, Vec<&Target>)> = by_program.into_iter().collect();
    programs.sort_by_key(|(_, targets)| std::cmp::Reverse(targets.len()));
    let text = |(program, targets): &(&str, Vec<&Target>)| match targets.as_slice() {
        [target] => single(target, plain),
        targets => several(program, targets, plain),
    };
    let mut listed: Vec<String> = programs.iter().take(LISTED).map(text).collect();
    let more = programs.iter().skip(LISTED).map(|(_, targets)| targets.len()).sum::<usize>();
    if more > 0 {
        listed.push(format!("and {} more", HumanCount(more as u64)));
    }
    listed.join("; ")
}

fn several(program: &str, targets: &[&Target], plain: bool) -> String {
    let count = targets.len();
    let of = if targets.iter().any(|it| it.tid.is_some()) { " threads" } else { "" };
    let mut text = format!("{}{of} of {program}", HumanCount(count as u64));
    let by: Option<Vec<String>> = targets.iter().map(|it| started_by(it, plain)).collect();
    match by.as_deref() {
        Some([first, others @ ..]) if others.iter().all(|other| other == first) => {
            text.push_str(&format!(", started by {first}"));
        }
        Some(_) => text.push_str(", started by several processes"),
        None => {}
    }
    text.push_str(&functions(targets));
    let ended = targets.iter().filter(|target| target.end.has_ended()).count();
    text.push_str(&match ended {
        0 => ", still running".to_owned(),
        ended if ended == count => ", all have ended".to_owned(),
        1 => ", 1 has ended".to_owned(),
        ended => format!(", {} have ended", HumanCount(ended as u64)),
    });
    let ends = || targets.iter().filter_map(|target| target.end.time_ns());
    if let Some((first, last)) = ends().min().zip(ends().max()) {
        match ended {
            1 => text.push_str(&format!(", at {}", seconds(first))),
            _ => text.push_str(&format!(", from {} to {}", seconds(first), seconds(last))),
        }
    }
    text
}

/// The functions that threads were started with: the most frequent one, and the number of the others.
fn functions(targets: &[&Target]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    targets.iter().filter_map(|target| function(target)).for_each(|function| {
        *counts.entry(function).or_default() += 1;
    });
    let most = counts.iter().max_by_key(|(_, count)| **count);
    match (most, counts.len()) {
        (None, _) => String::new(),
        (Some((function, _)), 1) => function.clone(),
        (Some((function, _)), functions) => {
            format!("{function} and {} more functions", HumanCount(functions as u64 - 1))
        }
    }
}

/// The function that a thread was started with, as ` in app.exe!run`.
fn function(target: &Target) -> Option<String> {
    Some(format!(" in {}", target.start_function.as_deref()?))
}

fn single(target: &Target, plain: bool) -> String {
    let process = target.process.shown_label(plain);
    let mut text = match target.tid {
        Some(tid) => format!("{tid} of {process}"),
        None => process,
    };
    let start = target.start_ns.map(|start| format!(" at {}", seconds(start))).unwrap_or_default();
    let function = function(target).unwrap_or_default();
    match started_by(target, plain) {
        Some(by) => text.push_str(&format!(", started{start} by {by}{function}")),
        None if !start.is_empty() => text.push_str(&format!(", started{start}{function}")),
        None => {}
    }
    match target.end {
        TargetEnd::At(end) => text.push_str(&format!(", ended at {}", seconds(end))),
        TargetEnd::Ended => text.push_str(", ended"),
        TargetEnd::Running => text.push_str(", still running"),
        TargetEnd::Unknown => {}
    }
    text
}

fn started_by(target: &Target, plain: bool) -> Option<String> {
    target.started_by.as_ref().map(|by| by.shown_label(plain))
}

/// Formats a time as cause texts show it.
pub fn seconds(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::ProcessInfo;

    fn process(pid: u32, name: &str) -> ProcessInfo {
        ProcessInfo { pid, name: name.to_owned(), ..ProcessInfo::default() }
    }

    fn target(pid: u32, name: &str, end: TargetEnd) -> Target {
        Target {
            process: process(pid, name),
            start_ns: Some(10_000_000),
            end,
            started_by: Some(process(4, "app.exe")),
            is_complete: true,
            ..Target::with_pid(pid)
        }
    }

    fn listed(targets: &[Target]) -> String {
        listed_targets(&targets.iter().collect::<Vec<_>>(), true)
    }

    #[test]
    fn a_single_target_has_its_start_and_end() {
        let child = target(9, "child.exe", TargetEnd::At(40_000_000));
        let text = "child.exe(9), started at 0.010 s by app.exe(4), ended at 0.040 s";
        assert_eq!(listed(std::slice::from_ref(&child)), text);
        let thread = Target { tid: Some(7), end: TargetEnd::Running, ..child.clone() };
        let text = "7 of child.exe(9), started at 0.010 s by app.exe(4), still running";
        assert_eq!(listed(&[thread]), text);
        let function = Some("child.exe!run".to_owned());
        let named = Target { start_function: function, tid: Some(7), ..child.clone() };
        let text = "7 of child.exe(9), started at 0.010 s by app.exe(4) in child.exe!run, ended";
        let line = listed(std::slice::from_ref(&named));
        assert!(line.starts_with(text), "{line}");
        let text = "2 threads of child.exe, started by app.exe(4) in child.exe!run, all have ended";
        assert!(listed(&[named.clone(), named]).starts_with(text));
        let old = Target { start_ns: None, started_by: None, end: TargetEnd::Ended, ..child };
        assert_eq!(listed(&[old]), "child.exe(9), ended");
    }

    #[test]
    fn several_targets_are_counted_by_program() {
        let ended = |pid, name| target(pid, name, TargetEnd::At(i64::from(pid) * 1_000_000));
        let mut targets: Vec<Target> = (10..13).map(|pid| ended(pid, "worker.exe")).collect();
        let all = "3 of worker.exe, started by app.exe(4), all have ended, from 0.010 s to 0.012 s";
        assert_eq!(listed(&targets), all);
        targets[0].end = TargetEnd::Running;
        targets[1].started_by = Some(process(5, "other.exe"));
        targets.push(ended(20, "a.exe"));
        targets.push(ended(21, "b.exe"));
        targets.push(ended(22, "c.exe"));
        let text = listed(&targets);
        let several = "3 of worker.exe, started by several processes, 2 have ended, from 0.011 s to 0.012 s; a.exe(20)";
        assert!(text.starts_with(several) && text.ends_with("; and 1 more"), "{text}");
    }
}
