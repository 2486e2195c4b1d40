//! The process whose handles a listing is about. Another process that duplicates a handle into it, or closes one there, is
//! named in the entry, but the handle is not its own.

use std::collections::{BTreeMap, BTreeSet};

use super::output::Output;

/// Gives the entries of each listing to its process, which made most of them; another one that made an entry is its caller.
/// `is_pid` says which numbers of processes are those of process ids.
pub fn assign<'o>(outputs: impl Iterator<Item = &'o mut Output>, is_pid: impl Fn(u32) -> bool) {
    let mut outputs: Vec<&mut Output> = outputs.collect();
    let mut guests: BTreeMap<u32, u32> = BTreeMap::new();
    let mut hosts: BTreeSet<u32> = BTreeSet::new();
    let owners: Vec<Option<u32>> = outputs.iter().map(|output| owner(output, &is_pid)).collect();
    for (output, owner) in outputs.iter().zip(&owners) {
        let Some(owner) = *owner else { continue };
        let others = output.entries().map(|entry| entry.process);
        let others = others.filter(|process| *process != owner && is_pid(*process));
        guests.extend(others.map(|process| (process, owner)));
        // A listing of one handle may have entries of another process alone.
        if matches!(output, Output::All { .. } | Output::Difference { .. }) {
            hosts.insert(owner);
        }
    }
    for (output, owner) in outputs.iter_mut().zip(owners) {
        for entry in output.entries_mut().filter(|entry| is_pid(entry.process)) {
            let is_guest = !hosts.contains(&entry.process);
            let of_guest = guests.get(&entry.process).copied().filter(|_| is_guest);
            let owner = owner.filter(|owner| hosts.contains(owner)).or(of_guest);
            if let Some(owner) = owner.filter(|owner| *owner != entry.process) {
                entry.caller = Some(entry.process);
                entry.process = owner;
            }
        }
    }
}

/// The process of most entries of a listing; `None` if two have as many.
fn owner(output: &Output, is_pid: impl Fn(u32) -> bool) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in output.entries().filter(|entry| is_pid(entry.process)) {
        *counts.entry(entry.process).or_default() += 1;
    }
    let (&owner, &most) = counts.iter().max_by_key(|(_, count)| **count)?;
    let is_only = counts.values().filter(|count| **count == most).count() == 1;
    is_only.then_some(owner)
}
