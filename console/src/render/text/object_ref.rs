//! `.dump ObjectRef` as text.

use std::io::{self, Write};

use handlescope_model::EventKind;
use nu_ansi_term::Color;

use super::clean::Clean;
use super::event::{EventWriter, marked};
use super::stack::StackStyle;
use super::totals::{self, Summary};
use crate::command::{ObjectRefArgs, ShowTotal};
use crate::query::{FileAnswer, Listing, ObjectRefAnswer, Selected, count_by};
use crate::render::time::LocalClock;
use crate::screen::Screen;

/// What is printed for a lifetime that nobody knows, as ETWAnalyzer does.
const UNKNOWN_LIFETIME_S: f64 = 9999.0;

pub(in crate::render) fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefArgs,
    screen: Screen,
    out: &mut impl Write,
) -> io::Result<()> {
    for file in &answer.files {
        write_header(file, screen, out)?;
        if let Some(listing) = &file.listing {
            write_objects(file, listing, args, screen, out)?;
        }
        if let (Some(handles), Some(by)) = (&file.open_handles, count_by(args)) {
            totals::open_handles(out, handles, by, args.top)?;
        }
        if args.show_total != Some(ShowTotal::None) {
            writeln!(out, "{}", screen.paint(Color::Yellow, Summary(file.totals)))?;
        }
    }
    let wants_sum = matches!(args.show_total, None | Some(ShowTotal::Total));
    if answer.files.len() > 1 && wants_sum {
        writeln!(out, "{}", screen.paint(Color::Red, Summary(answer.totals())))?;
    }
    Ok(())
}

/// When the recording began, and the name of the trace.
fn write_header(file: &FileAnswer<'_>, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let started = LocalClock::new(&file.info).session_start().to_string();
    let name = file.path().file_stem().unwrap_or_default().to_string_lossy();
    let header = format!("{started:<22} {}", Clean(&name));
    writeln!(out, "{}", screen.paint(Color::Cyan, header))
}

fn write_objects(
    file: &FileAnswer<'_>,
    listing: &Listing,
    args: &ObjectRefArgs,
    screen: Screen,
    out: &mut impl Write,
) -> io::Result<()> {
    let frames = file.file.frames.as_ref().filter(|_| args.show_stack);
    let events = EventWriter {
        answer: file,
        listing,
        args,
        screen,
        clock: LocalClock::new(&file.info),
        stacks: StackStyle {
            frames: frames.map(|frames| frames.named()),
            bases: args.show_address.then_some(&file.bases),
        },
    };
    for &selected in file.selection.objects() {
        ObjectLine { file, listing, screen, selected }.write(out)?;
        events.write(out, selected)?;
    }
    Ok(())
}

/// The line above the events of an object.
struct ObjectLine<'a> {
    file: &'a FileAnswer<'a>,
    listing: &'a Listing,
    screen: Screen,
    selected: Selected,
}

impl ObjectLine<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let object = self.selected.object();
        let (id, pointer) = (self.selected.id(), self.listing.pointer(object));
        let lifetime = self.file.lifetime_ns(self.listing, self.selected);
        let lifetime = lifetime.map_or(UNKNOWN_LIFETIME_S, |ns| ns as f64 / 1e9);
        let tables = &self.file.file;
        if tables.objects.is_mapping(object) {
            return writeln!(
                out,
                "Id: {id} MappingObject: 0x{pointer:X} Lifetime: {lifetime:.6} s"
            );
        }
        let name = Clean(self.listing.name(object).unwrap_or_default());
        let kind = Clean(tables.types.get(tables.objects.type_id(object))).to_string();
        let kind = self.screen.paint(Color::Green, kind);
        write!(
            out,
            "Id: {id} Object: 0x{pointer:X} {name} Lifetime: {lifetime:.6} s  Type: {kind} "
        )?;
        self.write_handles(out)
    }

    /// Writes what became of the object's handles.
    fn write_handles(&self, out: &mut impl Write) -> io::Result<()> {
        let [created, duplicated, closed] = self.count_events();
        let tables = &self.file.file;
        let existing = tables.objects.existing(self.selected.object());
        let mut handles = self.listing.existing(existing);
        match (created + duplicated + closed, handles.len(), handles.next()) {
            (0, 1, Some((owner, handle))) => {
                let owner = marked(tables.processes.get(owner));
                let owner = self.screen.paint(Color::Magenta, owner);
                writeln!(out, "Owner: {owner}, Handle Value: 0x{handle:X}")
            }
            (0, count, Some(_)) => writeln!(out, "Handle Count: {count}"),
            _ => {
                let open = created + duplicated - closed;
                let counts = format!("{created}+{duplicated}-{closed} = {open}");
                writeln!(out, "Create+Duplicate-Close: {counts}")
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
