//! Event lines.

use std::io::{self, Write};

use super::process::ProcessStyle;
use super::stack::StackStyle;
use super::{ObjectRefStyle, OrUnknown, grouped};
use crate::time::TraceClock;
use handlescope_model::rules::{REFERENCE_CHANGES, VIEWS, handle_slot};
use handlescope_model::{EventKind, ProcessIdx};
use handlescope_query::{
    EventListing, FileAnswer, ListedEvent, PerProcess, ProcessInfo, SelectedObject,
};
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;

/// Writes the events of objects.
pub struct EventWriter<'a> {
    pub answer: &'a FileAnswer<'a>,
    pub listing: &'a EventListing,
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

/// A handle that a child inherited.
struct InheritedHandle {
    parent: ProcessIdx,
    child: ProcessIdx,
    handle: Option<u64>,
}

impl InheritedHandle {
    /// Whether the child closed this handle.
    fn is_closed_by(&self, close: &ListedEvent) -> bool {
        self.child == close.process && self.handle.map(handle_slot) == close.handle.map(handle_slot)
    }
}

impl EventWriter<'_> {
    /// Writes the events of an object that passed the filters, in time order.
    pub fn write(&self, out: &mut impl Write, selected: SelectedObject) -> io::Result<()> {
        let inherited = self.inherited(selected);
        for row in self.answer.events(selected) {
            if let Some(event) = self.listing.event(row).filter(|event| is_shown(event, self.args))
            {
                self.write_facts(out, &inherited, row, &event)?;
                self.stacks.write(out, event.stack, self.display, 2)?;
            }
        }
        Ok(())
    }

    /// Writes everything before the stack.
    fn write_facts(
        &self,
        out: &mut impl Write,
        inherited: &[InheritedHandle],
        row: usize,
        event: &ListedEvent,
    ) -> io::Result<()> {
        let EventLayout { time, pid, tid, handle } = self.layout;
        let screen = self.display.screen;
        let process = self.processes.get(Some(self.listing.actor(row, event)));
        let (indent, time_text) =
            (self.display.indent(1), self.clock.at(event.time_ns.unwrap_or_default()).to_string());
        let id = screen.paint(Role::Process, OrUnknown(process.pid));
        write!(out, "{indent}{time_text:>time$} {id:>pid$}/{:<tid$} ", OrUnknown(event.tid))?;
        let (role, label) = self.label(row, event);
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
        self.write_rest(out, inherited, row, event)
    }

    /// Returns the name of the event and its role.
    fn label(&self, row: usize, event: &ListedEvent) -> (Role, &'static str) {
        match event.kind {
            EventKind::HandleCreate => (Role::Opened, "HandleCreate"),
            EventKind::HandleDuplicate => (Role::Notable, "HandleDuplicate"),
            EventKind::HandleClose => (Role::Closed, "HandleClose"),
            EventKind::ObjectCreate => (Role::Opened, "Object Create"),
            EventKind::ObjectDelete => (Role::Closed, "Object Delete"),
            EventKind::Reference | EventKind::Dereference => {
                let rises = self.listing.ref_delta(row).is_some_and(|delta| delta > 0);
                (if rises { Role::Opened } else { Role::Closed }, "RefChange")
            }
            EventKind::Map => (Role::Plain, "Map"),
            EventKind::Unmap => (Role::Plain, "Unmap"),
        }
    }

    /// Writes the part between the process and the stack.
    fn write_rest(
        &self,
        out: &mut impl Write,
        inherited: &[InheritedHandle],
        row: usize,
        event: &ListedEvent,
    ) -> io::Result<()> {
        match event.kind {
            EventKind::HandleCreate => {}
            EventKind::HandleDuplicate => self.write_duplicate(out, row, event)?,
            EventKind::HandleClose => {
                if let Some(handle) = inherited.iter().find(|handle| handle.is_closed_by(event)) {
                    let parent = &self.processes.get(Some(handle.parent)).label;
                    let parent = self.display.screen.paint(Role::Notable, parent);
                    write!(out, " Inherited from {parent} ")?;
                }
            }
            EventKind::ObjectCreate | EventKind::ObjectDelete => {
                return write!(out, "------------------------------- ");
            }
            EventKind::Reference | EventKind::Dereference => {
                write!(out, "{} ", self.listing.ref_delta(row).unwrap_or_default())?;
            }
            EventKind::Map => self.write_map(out, row)?,
            EventKind::Unmap => {
                write!(out, "0x{:X} ", self.listing.view(row).base.unwrap_or_default())?;
            }
        }
        self.write_unseen_close(out, row)?;
        write!(out, "{}Stack: ", self.display.line_break())
    }

    /// Notes that the handle or view of an event was closed although the trace has no close event.
    fn write_unseen_close(&self, out: &mut impl Write, row: usize) -> io::Result<()> {
        let Some(close) = self.listing.unseen_close(row) else { return Ok(()) };
        let evidence = close.evidence.name();
        let at = |time: Option<i64>| self.clock.at(time.unwrap_or_default());
        let (after, before) = (at(close.after_ns), at(close.before_ns));
        write!(out, "closed unseen between {after} and {before} ({evidence}) ")
    }

    fn write_duplicate(
        &self,
        out: &mut impl Write,
        row: usize,
        event: &ListedEvent,
    ) -> io::Result<()> {
        let duplicate = self.listing.duplicate(row);
        if let Some(child) = duplicate.inherited_by {
            let child = &self.processes.get(Some(child)).marked;
            let child = self.display.screen.paint(Role::Notable, child);
            write!(out, "Inherited by process {child} ")?;
            return self.write_caller(out, duplicate.caller_process, event);
        }
        let source = &self.processes.get(duplicate.source_process).marked;
        let source = self.display.screen.paint(Role::Process, source);
        let handle = duplicate.source_handle.unwrap_or_default();
        let line_break = self.display.line_break();
        write!(out, "SourceProcess: {source} {line_break}SourceHandle: 0x{handle:X} ")?;
        self.write_caller(out, duplicate.caller_process, event)
    }

    /// Names the calling process if it is not the process of the event.
    fn write_caller(
        &self,
        out: &mut impl Write,
        caller: Option<ProcessIdx>,
        event: &ListedEvent,
    ) -> io::Result<()> {
        let Some(caller) = caller.filter(|caller| *caller != event.process) else { return Ok(()) };
        let line_break = self.display.line_break();
        write!(out, "{line_break}Caller: {} ", self.processes.get(Some(caller)).label)
    }

    fn write_map(&self, out: &mut impl Write, row: usize) -> io::Result<()> {
        let view = self.listing.view(row);
        let (base, size) = (view.base.unwrap_or_default(), view.size.unwrap_or_default());
        let (end, offset) = (base.wrapping_add(size), view.offset.unwrap_or_default());
        let size = grouped(size, self.display.digit_separator);
        let line_break = self.display.line_break();
        write!(
            out,
            "0x{base:X}-0x{end:X} {line_break}Size: {size:>13} bytes, {line_break}Offset: {offset} "
        )
    }

    /// Returns the handles of an object that children inherited, even if a filter removed their events.
    fn inherited(&self, selected: SelectedObject) -> Vec<InheritedHandle> {
        let events = self.answer.file.objects.events(selected.object());
        let handles = events.filter_map(|row| {
            let child = self.listing.inherited_by(row)?;
            let event = self.listing.event(row)?;
            Some(InheritedHandle { parent: event.process, child, handle: event.handle })
        });
        handles.collect()
    }
}

/// Whether an event gets a line.
pub fn is_shown(event: &ListedEvent, args: &ObjectRefStyle<'_>) -> bool {
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
    pub fn new(events: impl Iterator<Item = (ListedEvent, u32)>, clock: &TraceClock) -> Self {
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
