//! `.dump ObjectRef` as text.

use std::io::{self, Write};

use console::measure_text_width;
use handlescope_model::EventKind;
use nu_ansi_term::Color;

use super::event::EventWriter;
use super::process::ProcessStyle;
use super::stack::StackStyle;
use super::totals::{OpenTable, Summary};
use crate::query::ShowTotal;
use crate::query::{FileAnswer, Listing, ObjectRefAnswer, Selected, UNKNOWN_LIFETIME_NS, count_by};
use crate::render::style::ObjectRefStyle;
use crate::render::time::{Clock, Seconds};
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::clip::{Clip, shortened};

/// Columns that a name gets on however narrow a screen.
const SHORTEST_NAME: usize = 16;

pub(in crate::render) fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut clip = Clip::new(out, display.screen.width.filter(|_| display.clip));
    let out = &mut clip;
    let is_by_file = args.criteria.show_total == Some(ShowTotal::File);
    // The summaries of the files say more than a table of their open handles.
    let by = count_by(args.criteria).filter(|_| !is_by_file);
    let has_totals = args.criteria.show_total != Some(ShowTotal::None);
    let summary = |totals| Summary {
        totals,
        digit_separator: display.digit_separator,
        width: display.screen.width,
    };
    for file in &answer.files {
        write_header(file, display, out)?;
        if let Some(listing) = &file.listing {
            write_objects(file, listing, args, display, out)?;
        }
        if let (Some(handles), Some(by)) = (&file.open_handles, by) {
            OpenTable { handles, by, top: args.criteria.top, screen: display.screen }.write(out)?;
        }
        if has_totals {
            writeln!(out, "{}", display.screen.paint(Color::Yellow, summary(file.totals)))?;
        }
    }
    if answer.files.len() < 2 || !has_totals {
        return clip.finish();
    }
    if by.is_some() || is_by_file {
        writeln!(out, "{}", display.screen.paint(Color::Cyan, "All files"))?;
    }
    if let (Some(handles), Some(by)) = (&answer.open_handles, by) {
        OpenTable { handles, by, top: args.criteria.top, screen: display.screen }.write(out)?;
    }
    writeln!(out, "{}", display.screen.paint(Color::Red, summary(answer.totals())))?;
    clip.finish()
}

/// When the recording began, and the name of the trace.
fn write_header(file: &FileAnswer<'_>, display: &Display, out: &mut impl Write) -> io::Result<()> {
    let started = Clock::session_start(&file.info);
    let path = file.path();
    let name = if display.full_file_name {
        // The path as it was named, if the current folder is gone.
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
    } else {
        path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    };
    let header = format!("{started:<22} {}", Clean(&name));
    writeln!(out, "{}", display.screen.paint(Color::Cyan, header))
}

fn write_objects(
    file: &FileAnswer<'_>,
    listing: &Listing,
    args: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = &ProcessStyle::new(&file.info, display);
    let events = EventWriter {
        answer: file,
        listing,
        args,
        display,
        clock: Clock::new(&file.info, display.time_format, display.time_digits),
        style,
        stacks: StackStyle::of(file, args.criteria.stacks),
    };
    for &selected in file.selection.objects() {
        ObjectLine { file, listing, display, style, selected }.write(out)?;
        events.write(out, selected)?;
    }
    Ok(())
}

/// The line above the events of an object.
struct ObjectLine<'a> {
    file: &'a FileAnswer<'a>,
    listing: &'a Listing,
    display: &'a Display,
    style: &'a ProcessStyle,
    selected: Selected,
}

impl ObjectLine<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let object = self.selected.object();
        let (id, pointer) = (self.selected.id(), self.listing.pointer(object));
        let lifetime = Seconds {
            // ETWAnalyzer's number for an unknown lifetime.
            ns: self.file.lifetime_ns(self.listing, self.selected).unwrap_or(UNKNOWN_LIFETIME_NS),
            digits: self.display.time_digits,
        };
        let tables = &self.file.file;
        if tables.objects.is_mapping(object) {
            return writeln!(out, "Id: {id} MappingObject: 0x{pointer:X} Lifetime: {lifetime} s");
        }
        let kind = Clean(tables.types.get(tables.objects.type_id(object))).to_string();
        let kind = self.display.screen.paint(Color::Green, kind);
        let before = format!("Id: {id} Object: 0x{pointer:X} ");
        let behind = format!(" Lifetime: {lifetime} s  Type: {kind} {}", self.handles());
        let name = Clean(self.listing.name(object).unwrap_or_default()).to_string();
        let name = match self.display.screen.width.filter(|_| self.display.clip) {
            // What stands behind a long name says more than its middle.
            Some(width) => {
                let used = measure_text_width(&before) + measure_text_width(&behind);
                shortened(&name, width.saturating_sub(used).max(SHORTEST_NAME))
            }
            None => name.into(),
        };
        writeln!(out, "{before}{name}{behind}")
    }

    /// What became of the object's handles.
    fn handles(&self) -> String {
        let [created, duplicated, closed] = self.count_events();
        let tables = &self.file.file;
        let existing = tables.objects.existing(self.selected.object());
        let mut handles = self.listing.existing(existing);
        match (created + duplicated + closed, handles.len(), handles.next()) {
            (0, 1, Some((owner, handle))) => {
                let owner = self.style.marked(tables.processes.get(owner));
                let owner = self.display.screen.paint(Color::Magenta, owner);
                format!("Owner: {owner}, Handle Value: 0x{handle:X}")
            }
            (0, count, Some(_)) => format!("Handle Count: {count}"),
            _ => {
                let open = created + duplicated - closed;
                format!("Create+Duplicate-Close: {created}+{duplicated}-{closed} = {open}")
            }
        }
    }

    /// Creates, duplicates and closes that are left.
    fn count_events(&self) -> [i64; 3] {
        let mut counts = [0; 3];
        for row in self.file.events(self.selected) {
            let [created, duplicated, closed] = &mut counts;
            match self.listing.kind(row) {
                Some(EventKind::HandleCreate) => *created += 1,
                Some(EventKind::HandleDuplicate) => *duplicated += 1,
                Some(EventKind::HandleClose) => *closed += 1,
                _ => {}
            }
        }
        counts
    }
}
