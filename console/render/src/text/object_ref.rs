//! `.dump ObjectRef` as text.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf, absolute};

use super::event::{EventLayout, EventWriter, ProcessTexts, is_shown};
use super::groups::{self, TreeColumns};
use super::process::ProcessStyle;
use super::stack::StackStyle;
use super::target::TargetStyle;
use super::totals::{CountTable, LeakLines, summary};
use super::{OrUnknown, counted};
use crate::time::{Seconds, TraceClock};
use handlescope_model::{EventKind, Untrusted};
use handlescope_query::{
    AcquisitionCriteria, CountBy, FileAnswer, GuiHandles, ListedObject, ObjectRefAnswer,
    ObjectsLeftOut,
};
use handlescope_session::paths::{names_apart, stem};
use handlescope_session::settings::Display;
use handlescope_session::terminal::clip::{Clip, cut_in_the_middle, width_of};
use handlescope_session::terminal::{Role, wrapped};

/// The style of the answer to `.dump ObjectRef`.
#[derive(Clone, Copy)]
pub struct ObjectRefStyle<'a> {
    pub criteria: &'a AcquisitionCriteria,
    /// The command line as typed.
    pub text: &'a str,
    /// `-NoCSVSeparator`: no `sep = ;` line at the start.
    pub no_csv_separator: bool,
    /// `-NoCmdLine`: an empty command line column in the CSV file.
    pub no_command_line: bool,
}

/// Number of columns that a name may be cut to; if that is not enough, the text after it moves to the next line.
const SHORTEST_NAME: usize = 24;

pub fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    columns: &TreeColumns,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let clip = Clip::new(out, display.screen.width.filter(|_| display.clip));
    // Buffers, because lines are written word by word.
    let mut lines = BufWriter::new(clip);
    let out = &mut lines;
    let by = args.criteria.count_by;
    let has_totals = !args.criteria.without_totals;
    let is_single = answer.files.len() == 1;
    let mut without_match = 0;
    let names = file_names(answer, display);
    for (file, name) in answer.files.iter().zip(&names) {
        if !is_single && file.is_without_match() {
            without_match += 1;
            continue;
        }
        let heading = TraceClock::heading(&file.about.info, name);
        writeln!(out, "{}", display.screen.paint(Role::Name, heading))?;
        if let Some(groups) = &file.groups {
            groups::write(file, groups, args, columns, display, out)?;
        }
        if file.listing.is_some() {
            write_objects(file, args, display, out)?;
        }
        write_left_out(file.left_out, out)?;
        // The summary of a file says more than a table with one row.
        if let (Some(counts), Some(by)) =
            (&file.handle_counts, by.filter(|by| *by != CountBy::File))
        {
            let (criteria, screen) = (args.criteria, display.screen);
            CountTable { counts, by, criteria, files: None, screen }.write(out)?;
        }
        if has_totals {
            let (criteria, exit_stacks) = (args.criteria, file.exit_stacks);
            let (totals, without_leak) = (file.totals, file.without_leak);
            let knows_leaks = file.knows_leaks;
            let lines = LeakLines { criteria, totals, without_leak, exit_stacks, knows_leaks };
            let label =
                if is_single { String::new() } else { format!("Totals of {}\n", Untrusted(name)) };
            let sums = format!("{label}{}", sums(&lines, display));
            writeln!(out, "{}", display.screen.paint(Role::Notable, sums))?;
            for handles in &file.gui_handles {
                let line = wrapped(&gui_handles(handles), display.screen.width);
                writeln!(out, "{}", display.screen.paint(Role::Notable, line))?;
            }
        }
    }
    if has_totals && !is_single {
        write_totals(answer, &names, args, display, out)?;
    }
    if without_match > 0 {
        let files = counted(answer.files.len() as u64, "file");
        writeln!(out, "{without_match} of {files} without a match")?;
    }
    lines.into_inner()?.finish()
}

/// Describes the number of GDI or USER handles, with a hint at the details of the leaked ones.
fn gui_handles(handles: &GuiHandles) -> String {
    let GuiHandles { kind, created, closed, leaked, closed_at_exit, leaked_by_type, .. } = handles;
    let mut line = format!(
        "{} handles: {created} created, {closed} closed, {leaked} leaked, {closed_at_exit} closed only by process exit",
        kind.to_uppercase()
    );
    if !leaked_by_type.is_empty() {
        let types = leaked_by_type.iter();
        let types: Vec<String> =
            types.map(|(name, count)| format!("{} {count}", Untrusted(name))).collect();
        line += &format!(" ({}): .dump Resource -Kind {kind} -Leak -LeakAtExit", types.join(", "));
    }
    line
}

/// Writes how many objects are not printed, if there are any.
fn write_left_out(
    ObjectsLeftOut { objects, handles, views, existing }: ObjectsLeftOut,
    out: &mut impl Write,
) -> io::Result<()> {
    if objects == 0 {
        return Ok(());
    }
    let objects = counted(objects as u64, "more object");
    let opened = counted(handles as u64, "handle");
    let mapped = counted(views as u64, "view");
    match (views, existing) {
        (0, 0) => writeln!(out, "+ {objects}, {opened}"),
        (_, 0) => writeln!(out, "+ {objects}, {opened} and {mapped}"),
        (0, existing) => writeln!(out, "+ {objects}, {opened} and {existing} of the rundown"),
        (_, existing) => {
            let existing = counted(existing as u64, "handle");
            writeln!(out, "+ {objects}, {opened}, {mapped} and {existing} of the rundown")
        }
    }
}

/// Writes the totals of several files.
fn write_totals(
    answer: &ObjectRefAnswer<'_>,
    names: &[String],
    args: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let heading = format!("All {} files", answer.files.len());
    writeln!(out, "{}", display.screen.paint(Role::Name, heading))?;
    if let (Some(counts), Some(by)) = (&answer.handle_counts, args.criteria.count_by) {
        let files = answer.files.iter().map(|file| file.about.index).zip(names.iter().cloned());
        let files = Some(&files.collect());
        let (criteria, screen) = (args.criteria, display.screen);
        CountTable { counts, by, criteria, files, screen }.write(out)?;
    }
    let (criteria, exit_stacks) = (args.criteria, answer.exit_stacks());
    let without_leak = answer.files.iter().map(|file| file.without_leak).sum();
    let knows_leaks = answer.files.iter().any(|file| file.knows_leaks);
    let totals = answer.totals();
    let lines = LeakLines { criteria, totals, without_leak, exit_stacks, knows_leaks };
    writeln!(out, "{}", display.screen.paint(Role::Alarm, sums(&lines, display)))
}

/// Returns the sums over a file or over all files, and the lines about leaks below them.
fn sums(lines: &LeakLines<'_>, display: &Display) -> String {
    let width = display.screen.width;
    let summary = summary(lines.totals, display.digit_separator, width);
    format!("{summary}{}", wrapped(&lines.to_string(), width))
}

/// Returns distinct names of the files, even if two files have the same name.
fn file_names(answer: &ObjectRefAnswer<'_>, display: &Display) -> Vec<String> {
    let paths: Vec<&Path> = answer.files.iter().map(|file| file.about.path).collect();
    let names: Vec<PathBuf> = if display.full_file_name {
        // Takes the path as given if the current folder is gone.
        paths.iter().map(|path| absolute(path).unwrap_or_else(|_| path.to_path_buf())).collect()
    } else {
        names_apart(&paths, stem)
    };
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn write_objects(
    file: &FileAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let style = &ProcessStyle::new(&file.about.info, display);
    let clock = TraceClock::below_heading(&file.about.info, display);
    let shown = file
        .objects()
        .flat_map(ListedObject::events)
        .filter(|event| is_shown(event, args))
        .map(|event| (event, file.file.processes.get(event.actor()).pid));
    let layout = EventLayout::new(shown, &clock);
    let events = EventWriter {
        args,
        display,
        clock,
        layout,
        processes: file.file.processes.each(|process| ProcessTexts::new(process, style)),
        stacks: StackStyle::for_answer(file, args.criteria.stacks),
    };
    for object in file.objects() {
        ObjectLine { object, display, style }.write(out)?;
        if let Some(target) = object.target() {
            let line = TargetStyle { processes: style, clock: &events.clock }.line(target);
            let line = display.screen.paint(Role::Notable, display.whole(&line));
            writeln!(out, "{}Target: {line}", display.indent(1))?;
        }
        events.write(out, object)?;
    }
    Ok(())
}

/// The line above the events of an object.
struct ObjectLine<'a> {
    object: ListedObject<'a>,
    display: &'a Display,
    style: &'a ProcessStyle,
}

impl ObjectLine<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let object = self.object;
        let (id, pointer) = (object.id(), OrUnknown(object.pointer()));
        let lifetime = fmt::from_fn(|f| self.lifetime(f));
        if object.is_mapping() {
            return writeln!(out, "Id: {id} MappingObject: {pointer:#X} Lifetime: {lifetime}");
        }
        let kind = self.display.screen.paint(Role::Opened, Untrusted(object.type_name()));
        let before = fmt::from_fn(|f| write!(f, "Id: {id} Object: {pointer:#X} "));
        let line_break = self.display.line_break();
        let behind = fmt::from_fn(|f| {
            write!(f, "{line_break} Lifetime: {lifetime}  {line_break}Type: {kind} {line_break}")?;
            self.handles(f)
        });
        let name = object.file.file.volumes.shown(object.name().unwrap_or_default());
        let name = Untrusted(&*name);
        let Some(width) = self.display.screen.width.filter(|_| self.display.clip) else {
            return writeln!(out, "{before}{name}{behind}");
        };
        let name = name.to_string();
        let space = width.saturating_sub(width_of(&before.to_string()));
        let beside = space.saturating_sub(width_of(&behind.to_string()));
        let needed = width_of(&name).min(SHORTEST_NAME);
        let name = cut_in_the_middle(&name, if beside >= needed { beside } else { space });
        writeln!(out, "{before}{name}{behind}")
    }

    /// Writes the lifetime of the object, or which part of it is unknown.
    fn lifetime(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object.lifetime_ns() {
            Some(ns) => write!(f, "{} s", Seconds { ns, digits: self.display.time_digits }),
            None if !self.object.has_create() => f.write_str("created before the trace"),
            None if self.object.has_end() => f.write_str("unknown"),
            None => f.write_str("never closed"),
        }
    }

    /// Writes the owner of the object's only handle, or the counts of its handles.
    fn handles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [created, duplicated, closed] = self.count_events();
        let handles = || self.object.existing();
        match (created + duplicated + closed, handles().count(), handles().next()) {
            (0, 1, Some((owner, handle))) => {
                let owner = self.style.marked(self.object.file.file.processes.get(owner));
                let owner = self.display.screen.paint(Role::Process, owner);
                write!(f, "Owner: {owner}, Handle Value: {:#X}", OrUnknown(handle))
            }
            (0, count, Some(_)) => write!(f, "Handle Count: {count}"),
            _ => {
                let open = created + duplicated - closed;
                write!(f, "Create+Duplicate-Close: {created}+{duplicated}-{closed} = {open}")
            }
        }
    }

    /// Counts the creates, duplicates and closes that passed the filters.
    fn count_events(&self) -> [i64; 3] {
        let mut counts = [0; 3];
        for kind in self.object.kinds() {
            let [created, duplicated, closed] = &mut counts;
            match kind {
                EventKind::HandleCreate => *created += 1,
                EventKind::HandleDuplicate => *duplicated += 1,
                EventKind::HandleClose => *closed += 1,
                _ => {}
            }
        }
        counts
    }
}
