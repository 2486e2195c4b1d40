//! Event lines.

use std::io::{self, Write};

use super::process::ProcessStyle;
use super::stack::StackStyle;
use super::{ObjectRefStyle, OrUnknown, grouped};
use crate::time::TraceClock;
use handlescope_model::rules::{REFERENCE_CHANGES, VIEWS, handle_slot};
use handlescope_model::{EventKind, ProcessIdx};
use handlescope_query::{ListedEvent, ListedObject, PerProcess, ProcessInfo};
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;

/// Writes the events of objects.
pub struct EventWriter<'a> {
    pub args: &'a ObjectRefStyle<'a>,
    pub display: &'a Display,
    pub clock: TraceClock,
    pub layout: EventLayout,
    pub processes: PerProcess<ProcessTexts>,
    pub stacks: StackStyle<'a>,
}

/// The texts of a process in lines of events.
pub struct ProcessTexts {
    pid: Option<u32>,
    marked_name: String,
    label: String,
    marked: String,
}

impl ProcessTexts {
    pub fn new(process: &ProcessInfo, style: &ProcessStyle) -> Self {
        Self {
            pid: process.known_pid(),
            marked_name: style.marked_name(process),
            label: style.label(process),
            marked: style.marked(process),
        }
    }
}

/// The duplicates of an object that children inherited, with the rows of the children.
type Inherited<'a> = [(ListedEvent<'a>, ProcessIdx)];

impl EventWriter<'_> {
    /// Writes the events of an object that passed the filters, in time order.
    pub fn write(&self, out: &mut impl Write, object: ListedObject<'_>) -> io::Result<()> {
        let inherited: Vec<_> = object.inherited().collect();
        for event in object.events().filter(|event| is_shown(event, self.args)) {
            self.write_facts(out, &inherited, &event)?;
            self.stacks.write(out, event.stack, self.display, 2)?;
        }
        Ok(())
    }

    /// Writes everything before the stack.
    fn write_facts(
        &self,
        out: &mut impl Write,
        inherited: &Inherited<'_>,
        event: &ListedEvent<'_>,
    ) -> io::Result<()> {
        let EventLayout { time, pid, tid, handle } = self.layout;
        let screen = self.display.screen;
        let process = self.processes.get(Some(event.actor()));
        let (indent, time_text) =
            (self.display.indent(1), self.clock.at(event.time_ns.unwrap_or_default()).to_string());
        let id = screen.paint(Role::Process, OrUnknown(process.pid));
        write!(out, "{indent}{time_text:>time$} {id:>pid$}/{:<tid$} ", OrUnknown(event.tid))?;
        let (role, label) = label(event);
        if VIEWS.contains(event.kind) {
            write!(out, "{label} ")?;
        } else {
            write!(out, "{:<15} ", screen.paint(role, label))?;
        }
        if let Some(value) = event.handle {
            write!(out, "{:<#handle$X} ", screen.paint(Role::Opened, value))?;
        }
        let name = screen.paint(Role::Process, &process.marked_name);
        write!(out, "{}{name} {}", self.display.line_break(), self.display.line_break())?;
        self.write_rest(out, inherited, event)
    }

    /// Writes the part between the process and the stack.
    fn write_rest(
        &self,
        out: &mut impl Write,
        inherited: &Inherited<'_>,
        event: &ListedEvent<'_>,
    ) -> io::Result<()> {
        match event.kind {
            EventKind::HandleCreate => {}
            EventKind::HandleDuplicate => self.write_duplicate(out, event)?,
            EventKind::HandleClose => {
                let slot = |event: &ListedEvent<'_>| event.handle.map(handle_slot);
                let is_closed = |(duplicate, child): &&(ListedEvent<'_>, ProcessIdx)| {
                    *child == event.process && slot(duplicate) == slot(event)
                };
                if let Some((duplicate, _)) = inherited.iter().find(is_closed) {
                    let parent = &self.processes.get(Some(duplicate.process)).label;
                    let parent = self.display.screen.paint(Role::Notable, parent);
                    write!(out, " Inherited from {parent} ")?;
                }
            }
            EventKind::ObjectCreate | EventKind::ObjectDelete => {
                return write!(out, "------------------------------- ");
            }
            EventKind::Reference | EventKind::Dereference => {
                write!(out, "{} ", event.ref_delta().unwrap_or_default())?;
            }
            EventKind::Map => self.write_map(out, event)?,
            EventKind::Unmap => {
                let base = event.view().and_then(|view| view.base);
                write!(out, "0x{:X} ", base.unwrap_or_default())?;
            }
        }
        self.write_unseen_close(out, event)?;
        write!(out, "{}Stack: ", self.display.line_break())
    }

    /// Notes that the handle or view of an event was closed although the trace has no close event.
    fn write_unseen_close(&self, out: &mut impl Write, event: &ListedEvent<'_>) -> io::Result<()> {
        let Some(close) = event.unseen_close() else { return Ok(()) };
        let evidence = close.evidence.name();
        let at = |time: Option<i64>| self.clock.at(time.unwrap_or_default());
        let (after, before) = (at(close.after_ns), at(close.before_ns));
        write!(out, "closed unseen between {after} and {before} ({evidence}) ")
    }

    fn write_duplicate(&self, out: &mut impl Write, event: &ListedEvent<'_>) -> io::Result<()> {
        let Some(duplicate) = event.duplicate() else { return Ok(()) };
        let line_break = self.display.line_break();
        if let Some(child) = duplicate.inherited_by {
            let child = &self.processes.get(Some(child)).marked;
            let child = self.display.screen.paint(Role::Notable, child);
            write!(out, "Inherited by process {child} ")?;
        } else {
            let source = &self.processes.get(duplicate.source_process).marked;
            let source = self.display.screen.paint(Role::Process, source);
            let handle = duplicate.source_handle.unwrap_or_default();
            write!(out, "SourceProcess: {source} {line_break}SourceHandle: 0x{handle:X} ")?;
        }
        match duplicate.caller_process.filter(|caller| *caller != event.process) {
            Some(caller) => {
                write!(out, "{line_break}Caller: {} ", self.processes.get(Some(caller)).label)
            }
            None => Ok(()),
        }
    }

    fn write_map(&self, out: &mut impl Write, event: &ListedEvent<'_>) -> io::Result<()> {
        let Some(view) = event.view() else { return Ok(()) };
        let (base, size) = (view.base.unwrap_or_default(), view.size.unwrap_or_default());
        let (end, offset) = (base.wrapping_add(size), view.offset.unwrap_or_default());
        let size = grouped(size, self.display.digit_separator);
        let line_break = self.display.line_break();
        write!(
            out,
            "0x{base:X}-0x{end:X} {line_break}Size: {size:>13} bytes, {line_break}Offset: {offset} "
        )
    }
}

/// Returns the name of the event and its role.
fn label(event: &ListedEvent<'_>) -> (Role, &'static str) {
    match event.kind {
        EventKind::HandleCreate => (Role::Opened, "HandleCreate"),
        EventKind::HandleDuplicate => (Role::Notable, "HandleDuplicate"),
        EventKind::HandleClose => (Role::Closed, "HandleClose"),
        EventKind::ObjectCreate => (Role::Opened, "Object Create"),
        EventKind::ObjectDelete => (Role::Closed, "Object Delete"),
        EventKind::Reference | EventKind::Dereference => {
            let rises = event.ref_delta().is_some_and(|delta| delta > 0);
            (if rises { Role::Opened } else { Role::Closed }, "RefChange")
        }
        EventKind::Map => (Role::Plain, "Map"),
        EventKind::Unmap => (Role::Plain, "Unmap"),
    }
}

/// Whether an event gets a line.
pub fn is_shown(event: &ListedEvent<'_>, args: &ObjectRefStyle<'_>) -> bool {
    args.criteria.show_ref || !REFERENCE_CHANGES.contains(event.kind)
}

/// Widths of the columns before the process in characters; at least ETWAnalyzer's widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLayout {
    pub time: usize,
    pub pid: usize,
    pub tid: usize,
    pub handle: usize,
}

impl EventLayout {
    /// Fits the widths to events and the ids of their processes.
    pub fn new<'e>(
        events: impl Iterator<Item = (ListedEvent<'e>, u32)>,
        clock: &TraceClock,
    ) -> Self {
        let (mut pid, mut tid, mut handle) = (0, 0, 0);
        let mut times: Option<(i64, i64)> = None;
        for (event, process) in events {
            pid = pid.max(process);
            tid = tid.max(event.tid.unwrap_or_default());
            handle = handle.max(event.handle.unwrap_or_default());
            let time = event.time_ns.unwrap_or_default();
            let (first, last) = times.unwrap_or((time, time));
            times = Some((first.min(time), last.max(time)));
        }
        let (first, last) = times.unwrap_or_default();
        let width = |time| clock.at(time).to_string().len();
        Self {
            time: width(first).max(width(last)),
            pid: pid.to_string().len().max(5),
            tid: tid.to_string().len().max(5),
            handle: format!("0x{handle:X}").len().max(7),
        }
    }
}
