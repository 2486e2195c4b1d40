//! Parses the output of `!handle` in user mode: types, names and counts of open handles.

use std::collections::HashMap;

use super::grammar::{hex, word};
use super::output::CommandStep;
use crate::operations::{ListedHandle, OpenHandleList};

/// The output of one command.
#[derive(Debug, Default)]
pub struct HandleOutput {
    pub handles: Vec<ListedHandle>,
    /// Number of handles by type, if the text has nothing more.
    pub counts: Vec<(String, u64)>,
    /// Number of lines that start a handle, even one without any details.
    begun: u64,
    /// The last line: how many handles there are.
    total: Option<u64>,
    handle: Option<ListedHandle>,
    /// Whether the text has any details about that handle.
    is_described: bool,
    /// Whether the table of counts continues.
    is_in_counts: bool,
}

impl HandleOutput {
    /// Whether no output of the command was seen yet.
    pub fn is_empty(&self) -> bool {
        self.begun == 0 && self.total.is_none()
    }

    /// Whether there are details about a handle, or counts.
    pub fn has_found(&self) -> bool {
        self.is_described || !self.handles.is_empty() || !self.counts.is_empty()
    }

    /// Takes a line; names are taken from `raw`. Returns whether the line belongs to the output.
    pub fn line(&mut self, text: &str, raw: &str, open: &mut OpenHandleList) -> bool {
        if let Some(handle) = header(text) {
            self.end_handle();
            self.is_in_counts = false;
            self.begun += 1;
            self.is_described = false;
            self.handle = Some(ListedHandle { handle, ..ListedHandle::default() });
            return true;
        }
        if let Some(total) = total(text) {
            self.end_handle();
            self.total = Some(total);
            return true;
        }
        if self.total.is_some() && word(text.trim(), "Type") == Some("Count") {
            self.is_in_counts = true;
            return true;
        }
        if self.is_in_counts {
            let count = text.trim().rsplit_once([' ', '\t']);
            let count = count.and_then(|(name, count)| Some((name.trim(), count.parse().ok()?)));
            let Some((name, count)) = count else { return false };
            // `None` is how the extension counts handles it cannot open.
            let name = if name == "None" { "" } else { name };
            self.counts.push((name.to_owned(), count));
            return true;
        }
        let Some(handle) = &mut self.handle else { return false };
        let is_field = field(handle, text.trim(), raw, open);
        self.is_described |= is_field;
        is_field
    }

    /// Ends the current handle. One without details is not output of the command.
    pub fn end_handle(&mut self) {
        self.handles.extend(self.handle.take().filter(|_| self.is_described));
    }
}

/// Parses `Handle a44` on a line of its own.
pub fn header(text: &str) -> Option<u64> {
    let (handle, rest) = hex(word(text.trim(), "Handle")?)?;
    rest.is_empty().then_some(handle)
}

/// Parses `107 Handles`, the line after the last handle.
fn total(text: &str) -> Option<u64> {
    let (count, rest) = text.trim().split_once(' ')?;
    ["Handles", "Handle"].contains(&rest.trim()).then(|| count.parse().ok())?
}

/// Parses a property of a handle; returns whether the line is one.
fn field(handle: &mut ListedHandle, text: &str, raw: &str, open: &mut OpenHandleList) -> bool {
    let number = |name: &str| word(text, name).and_then(|rest| rest.parse::<u32>().ok());
    let mask = |name: &str| {
        let (mask, _) = hex(word(text, name)?)?;
        u32::try_from(mask).ok()
    };
    if let Some(name) = word(text, "Type") {
        handle.type_id = open.type_id(name).unwrap_or_default();
    } else if let Some(name) = word(text, "Name") {
        let name = word(raw.trim(), "Name").unwrap_or(name);
        handle.name = (!["", "<none>"].contains(&name)).then(|| open.name(name)).or(handle.name);
    } else if let Some(ids) = word(text, "Thread Id") {
        let ids = ids
            .split([',', ' '])
            .next()
            .and_then(|ids| ids.split_once('.'))
            .and_then(|(process, thread)| Some((hex(process)?, hex(thread)?)));
        if let Some(((process, ""), (thread, ""))) = ids {
            let name = || open.name(&format!("thread {thread} of process {process}"));
            handle.name = Some(handle.name.unwrap_or_else(name));
        }
    } else if let Some(mask) = mask("Attributes") {
        handle.attributes = Some(mask);
    } else if let Some(mask) = mask("GrantedAccess") {
        handle.granted_access = Some(mask);
    } else if let Some(count) = number("HandleCount") {
        handle.handle_count = Some(count);
    } else if let Some(count) = number("PointerCount") {
        handle.pointer_count = Some(count);
    } else {
        return false;
    }
    true
}

/// What a command listed, and when.
#[derive(Debug)]
pub struct HandleListing {
    output: HandleOutput,
    /// Whether all handles of the process are listed.
    is_whole: bool,
    /// Number of steps before it. Later steps count, too, until the program may have run.
    pub steps: usize,
    /// Whether the program may have run before the next step.
    pub may_run: bool,
    process: u32,
}

impl HandleListing {
    pub fn new(output: HandleOutput, is_of_type: bool, steps: usize) -> Self {
        let is_whole = !is_of_type && output.begun > 0 && output.total == Some(output.begun);
        Self { output, is_whole, steps, may_run: true, process: 0 }
    }
}

/// Finds the process of each listing: that of the last entry before it, or else of the next. Moves the listing after
/// the steps that follow while the program is stopped.
pub fn place(
    listings: &mut [HandleListing],
    steps: &[CommandStep],
    only_process: impl FnOnce() -> u32,
) {
    if listings.is_empty() {
        return;
    }
    let owners: Vec<Option<u32>> =
        steps.iter().map(|step| Some(step.output.entries().next()?.process)).collect();
    let first = owners.iter().flatten().next().copied().unwrap_or_else(only_process);
    let mut last = first;
    let mut before = vec![first];
    before.extend(owners.into_iter().map(|owner| {
        last = owner.unwrap_or(last);
        last
    }));
    // For each step, the next step before which the program may have run.
    let mut until = vec![steps.len(); steps.len() + 1];
    for (number, step) in steps.iter().enumerate().rev() {
        until[number] = if step.may_have_run { number } else { until[number + 1] };
    }
    for listing in listings {
        let at = listing.steps.min(steps.len());
        listing.process = before[at];
        listing.steps = if listing.may_run || at == steps.len() { at } else { until[at + 1] };
    }
}

/// Adds the handles of all listings. `known` gives the step in which each event is first known, out of `steps` steps.
/// Returns whether the last listing has all handles open at the end; `None` if there are no listings.
pub fn add(
    listings: &[HandleListing],
    known: &[usize],
    steps: usize,
    open: &mut OpenHandleList,
) -> Option<bool> {
    // Last row of each handle, by process.
    let mut last: HashMap<u32, HashMap<u64, usize>> = HashMap::new();
    for listing in listings {
        let HandleListing { process, .. } = *listing;
        let last = last.entry(process).or_default();
        let outdated = if listing.is_whole { std::mem::take(last) } else { HashMap::new() };
        outdated.into_values().for_each(|row| open.handles[row].is_outdated = true);
        let before = known.partition_point(|step| *step < listing.steps) as u32;
        let before = Some(before).filter(|_| listing.steps < steps);
        for handle in &listing.output.handles {
            if let Some(row) = last.insert(handle.handle, open.handles.len()) {
                open.handles[row].is_outdated = true;
            }
            open.handles.push(ListedHandle { process, before, ..*handle });
        }
    }
    let counted = listings.last()?;
    if open.handles.is_empty() {
        for (type_name, count) in &counted.output.counts {
            open.add_counted(counted.process, type_name, *count);
        }
    }
    Some(counted.is_whole && counted.steps == steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_has_what_the_command_says_of_it() {
        let (mut output, mut open) = (HandleOutput::default(), OpenHandleList::default());
        let text = "Handle 0000000000000a44\n  Type         \tALPC Port\n  Attributes   \t0\n  GrantedAccess\t0x1f0001:\n\
                    \x20        Delete,ReadControl\n  HandleCount  \t2\n  PointerCount \t65535\n\
                    \x20 Name         \t\\RPC Control\\a  b\n  No object specific information available\n\
                    Handle 8\n  Type         \tThread\n  Name         \t<none>\n    Thread Id   1a.2b, Priority 8\n\
                    2 Handles\nType           \tCount\nALPC Port      \t1\n";
        for line in text.lines() {
            output.line(line, line, &mut open);
        }
        output.end_handle();
        let [port, thread] = output.handles[..] else { panic!("{output:?}") };
        assert_eq!((port.handle, thread.handle), (0xA44, 8));
        assert_eq!((port.granted_access, port.attributes), (Some(0x1F_0001), Some(0)));
        assert_eq!((port.handle_count, port.pointer_count), (Some(2), Some(65535)));
        assert_eq!(open.types().name, ["ALPC Port", "Thread"]);
        assert_eq!(open.names().name, [r"\RPC Control\a  b", "thread 43 of process 26"]);
        assert!(HandleListing::new(output, false, 0).is_whole);
    }

    #[test]
    fn a_word_about_a_handle_is_no_output() {
        let (mut output, mut open) = (HandleOutput::default(), OpenHandleList::default());
        for line in ["Handle 34 is odd", "Handle", "Handles", "3 Handles of a door", "Type\tFile"] {
            assert!(!output.line(line, line, &mut open), "{line}");
        }
        assert!(output.line("Handle 34", "Handle 34", &mut open));
        output.end_handle();
        assert!(output.handles.is_empty());
    }
}
