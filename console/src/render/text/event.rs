//! Event lines.

use std::io::{self, Write};

use handlescope_model::rules::{REFERENCE_CHANGES, VIEWS};
use handlescope_model::{EventKind, ProcessIdx};
use nu_ansi_term::Color;

use super::layout::Layout;
use super::numbers::grouped;
use super::process::ProcessStyle;
use super::stack::StackStyle;
use crate::query::{EventRow, FileAnswer, Listing, ProcessInfo, Selected};
use crate::render::style::ObjectRefStyle;
use crate::render::time::Clock;
use crate::settings::Display;

/// Writes the events of objects.
pub(super) struct EventWriter<'a> {
    pub(super) answer: &'a FileAnswer<'a>,
    pub(super) listing: &'a Listing,
    pub(super) args: &'a ObjectRefStyle<'a>,
    pub(super) display: &'a Display,
    pub(super) clock: Clock,
    pub(super) layout: Layout,
    pub(super) style: &'a ProcessStyle,
    pub(super) stacks: StackStyle<'a>,
}

/// A handle that a child inherited.
struct InheritedHandle {
    parent: ProcessIdx,
    child: ProcessIdx,
    handle: Option<u64>,
}

impl InheritedHandle {
    /// Whether a close is the child's, of this handle.
    fn ends(&self, close: &EventRow) -> bool {
        self.child == close.process && self.handle == close.handle
    }
}

impl EventWriter<'_> {
    /// Writes the events of an object that are left, in time order.
    pub(super) fn write(&self, out: &mut impl Write, selected: Selected) -> io::Result<()> {
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

    /// Writes everything in front of the stack.
    fn write_facts(
        &self,
        out: &mut impl Write,
        inherited: &[InheritedHandle],
        row: usize,
        event: &EventRow,
    ) -> io::Result<()> {
        let Layout { time, pid, tid, handle } = self.layout;
        let screen = self.display.screen;
        let process = self.process(event.process);
        let (indent, at) =
            (self.display.indent(1), self.clock.at(event.time_ns.unwrap_or_default()).to_string());
        let known = |id: Option<u32>| id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
        let id = screen.paint(Color::Magenta, known(process.known_pid()));
        write!(out, "{indent}{at:>time$} {id:>pid$}/{:<tid$} ", known(event.tid))?;
        let (color, label) = self.label(row, event);
        if VIEWS.contains(event.kind) {
            write!(out, "{label} ")?;
        } else {
            write!(out, "{:<15} ", screen.paint(color, label))?;
        }
        if let Some(value) = event.handle {
            write!(out, "{:<handle$} ", screen.paint(Color::Green, format!("0x{value:X}")))?;
        }
        let name = screen.paint(Color::Magenta, self.style.marked_name(process));
        write!(out, "{}{name} {}", self.display.line_break(), self.display.line_break())?;
        self.write_rest(out, inherited, row, event)
    }

    /// What the event is called, in which color.
    fn label(&self, row: usize, event: &EventRow) -> (Color, &'static str) {
        match event.kind {
            EventKind::HandleCreate => (Color::Green, "HandleCreate"),
            EventKind::HandleDuplicate => (Color::Yellow, "HandleDuplicate"),
            EventKind::HandleClose => (Color::LightRed, "HandleClose"),
            EventKind::ObjectCreate => (Color::Green, "Object Create"),
            EventKind::ObjectDelete => (Color::LightRed, "Object Delete"),
            EventKind::Reference | EventKind::Dereference => {
                let rises = self.listing.ref_delta(row).is_some_and(|delta| delta > 0);
                (if rises { Color::Green } else { Color::LightRed }, "RefChange")
            }
            EventKind::Map => (Color::Default, "Map"),
            EventKind::Unmap => (Color::Default, "Unmap"),
        }
    }

    /// Writes what stands between the process and the stack.
    fn write_rest(
        &self,
        out: &mut impl Write,
        inherited: &[InheritedHandle],
        row: usize,
        event: &EventRow,
    ) -> io::Result<()> {
        match event.kind {
            EventKind::HandleCreate => {}
            EventKind::HandleDuplicate => self.write_duplicate(out, row, event)?,
            EventKind::HandleClose => {
                if let Some(handle) = inherited.iter().find(|handle| handle.ends(event)) {
                    let parent = self.style.label(self.process(handle.parent));
                    let parent = self.display.screen.paint(Color::Yellow, parent);
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
        write!(out, "{}Stack: ", self.display.line_break())
    }

    fn write_duplicate(
        &self,
        out: &mut impl Write,
        row: usize,
        event: &EventRow,
    ) -> io::Result<()> {
        let duplicate = self.listing.duplicate(row);
        if let Some(child) = duplicate.inherited_by {
            let child = self.style.marked(self.process(child));
            let child = self.display.screen.paint(Color::Yellow, child);
            return write!(out, "Inherited by process {child} ");
        }
        let source = self.answer.file.processes.known_or_invalid(duplicate.source_process);
        let source = self.display.screen.paint(Color::Magenta, self.style.marked(source));
        let handle = duplicate.source_handle.unwrap_or_default();
        let line_break = self.display.line_break();
        write!(out, "SourceProcess: {source} {line_break}SourceHandle: 0x{handle:X} ")?;
        match duplicate.caller_process.filter(|&caller| caller != event.process) {
            None => Ok(()),
            Some(caller) => {
                write!(out, "{line_break}Caller: {} ", self.style.label(self.process(caller)))
            }
        }
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

    /// The handles of an object that children inherited, whether a filter removed their events or
    /// not.
    fn inherited(&self, selected: Selected) -> Vec<InheritedHandle> {
        let events = self.answer.file.objects.events(selected.object());
        let handle = |row| {
            let child = self.listing.inherited_by(row)?;
            let event = self.listing.event(row)?;
            Some(InheritedHandle { parent: event.process, child, handle: event.handle })
        };
        events.filter_map(handle).collect()
    }

    fn process(&self, row: ProcessIdx) -> &ProcessInfo {
        self.answer.file.processes.get(row)
    }
}

/// Whether an event has a line.
pub(super) fn is_shown(event: &EventRow, args: &ObjectRefStyle<'_>) -> bool {
    args.criteria.show_ref || !REFERENCE_CHANGES.contains(event.kind)
}
