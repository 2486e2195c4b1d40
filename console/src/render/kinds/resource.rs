//! `.dump Resource`

use std::io::{self, Write};

use handlescope_model::StackIdx;
use handlescope_model::tables::ResourceEnd;
use indicatif::HumanCount;

use super::index;
use crate::{
    query::{
        ResourceColumn, ResourceCriteria, ResourceFigures, ResourceGroup, ResourcesAnswer,
        long_sparkline,
    },
    render::{
        json,
        output::LEFT_OUT,
        style::RESOURCE_FIGURES,
        table::{Columns, Part, Show, Table, bytes},
        text::{ProcessStyle, StackStyle},
        time::Clock,
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
    values::{Counted, Format},
};
use handlescope_model::Untrusted;

/// How the allocations of a trace are shown.
struct FileStyle<'a> {
    answer: &'a ResourcesAnswer<'a>,
    processes: ProcessStyle,
    stacks: StackStyle<'a>,
    clock: Clock,
}

/// A group, and how it is shown.
#[derive(Clone, Copy)]
struct Row<'f, 'a> {
    file: &'f FileStyle<'a>,
    group: &'a ResourceGroup,
}

/// A row for each group: totals, or what was never freed, or what `-GroupBy` asks for.
///
/// # Errors
/// None that a caller could do anything about.
pub fn resources<'a>(
    answers: &'a [ResourcesAnswer<'a>],
    criteria: &'a ResourceCriteria,
    command: &'a str,
    format: Format,
    display: &Display,
) -> io::Result<Table<'a>> {
    let styles: Vec<FileStyle<'a>> =
        answers.iter().map(|answer| FileStyle::new(answer, criteria.stacks, display)).collect();
    let rows: Vec<Row<'_, 'a>> = styles.iter().flat_map(|file| file.rows(criteria)).collect();
    let by = criteria.columns();
    let with_text = !matches!(format, Format::Text | Format::Json(_));
    let mut columns = Columns::of(&rows);
    columns.add("file", |row| index(row.file.answer.index));
    for column in by {
        add_key(&mut columns, *column, with_text);
    }
    if criteria.shows_leaks() {
        add_lost(&mut columns);
    } else {
        add_figures(&mut columns);
    }
    let [first, last] = [|own: &ResourceFigures| own.first_ns, |own: &ResourceFigures| own.last_ns];
    let times = |time: fn(&ResourceFigures) -> Option<i64>| {
        rows.iter().map(|row| row.time(time(&row.group.figures))).collect::<Vec<String>>()
    };
    columns.add("first_ns", |row| first(&row.group.figures)).title("First").texts(times(first));
    columns.add("last_ns", |row| last(&row.group.figures)).title("Last").texts(times(last));
    if criteria.buckets.is_some() {
        let bars = rows.iter().map(|row| bars(row.group.over_time.as_deref())).collect();
        let over_time = |row: &Row<'_, '_>| row.group.over_time.clone().unwrap_or_default();
        columns.add_long_list("over_time", over_time).title("Over time").texts(bars);
    }
    let parts = answers.iter().map(|answer| part(answer, criteria));
    let keys = ["Stack", "Free stack", "End", "By", "Allocator"];
    let spare = LEFT_OUT.into_iter().filter(|title| criteria.by.is_none() || !keys.contains(title));
    let table = Table::new("groups", columns, parts)?.with_spare(spare);
    let table = table.with_document(move |parts, mode, out| {
        json::resources(answers, criteria, command, parts, mode, out)
    });
    if !criteria.stacks.show || !criteria.has_stacks() {
        return Ok(table);
    }
    drop(rows);
    let by = by.to_vec();
    let display = *display;
    let places: Vec<(usize, &ResourceGroup)> = answers
        .iter()
        .enumerate()
        .flat_map(|(file, answer)| groups(answer, criteria).map(move |group| (file, group)))
        .collect();
    Ok(table.with_row_text(move |at, out| {
        let Some((file, group)) = places.get(at) else { return Ok(()) };
        let Some(file) = styles.get(*file) else { return Ok(()) };
        Row { file, group }.write(&by, &display, out)
    }))
}

fn groups<'a>(
    answer: &'a ResourcesAnswer<'_>,
    criteria: &ResourceCriteria,
) -> impl Iterator<Item = &'a ResourceGroup> + use<'a> {
    answer.shown(criteria).into_iter().flat_map(|groups| &groups.rows)
}

/// Adds what a column of keys says.
fn add_key<'r, 'f: 'r, 'a: 'r>(
    columns: &mut Columns<'r, Row<'f, 'a>>,
    column: ResourceColumn,
    with_text: bool,
) {
    match column {
        ResourceColumn::Kind => {
            columns.add("kind", |row| row.file.answer.kind(row.group)).title("Kind");
        }
        ResourceColumn::Allocator => {
            columns.add("allocator", |row| row.file.answer.allocator(row.group)).title("Allocator");
        }
        ResourceColumn::Process => {
            columns.add("process", |row| row.process_label());
            columns.add("pid", |row| row.file.answer.process(row.group).map(|own| own.pid));
            columns.add("process_start_ns", |row| row.file.answer.process(row.group)?.start_ns);
            columns.add("shown_process", Row::process).title("Process").text_only();
        }
        ResourceColumn::Caller => {
            columns.add("by", |row| row.caller()).title("By").unknown("");
        }
        ResourceColumn::CreateStack => {
            let stack = |row: &Row<'_, '_>| row.group.create_stack();
            columns.add("stack", move |row| stack(row).map(|stack| stack.0)).title("Stack");
            columns
                .add("innermost_frame", move |row| row.frame(stack(row)))
                .title("Innermost frame")
                .unknown("")
                .place(1);
            if with_text {
                columns.add("text", move |row| row.lines(stack(row)));
            }
        }
        ResourceColumn::FreeStack => {
            let stack = |row: &Row<'_, '_>| row.group.free_stack();
            columns
                .add("free_stack", move |row| stack(row).map(|stack| stack.0))
                .title("Free stack");
            columns
                .add("free_frame", move |row| row.frame(stack(row)))
                .title("Innermost frame of the free")
                .unknown("")
                .place(1);
            if with_text {
                columns.add("free_text", move |row| row.lines(stack(row)));
            }
        }
        ResourceColumn::Thread => {
            columns.add("tid", |row| row.group.tid()).title("Thread");
        }
        ResourceColumn::End => {
            columns.add("end", |row| row.group.end().map(ResourceEnd::name)).title("End");
        }
        ResourceColumn::Size => {
            columns.add("size", |row| row.group.size()).title("Size").show(Show::Bytes);
        }
    }
}

/// Adds what there is to say of what was never freed.
fn add_lost<'r, 'f: 'r, 'a: 'r>(columns: &mut Columns<'r, Row<'f, 'a>>) {
    columns
        .add("count", |row| row.group.figures.lost())
        .title("Count")
        .show(Show::Grouped)
        .place(-2);
    let bytes = columns.add("bytes", |row| row.group.figures.lost_bytes());
    bytes.title("Bytes").show(Show::Bytes).place(-2);
}

fn add_figures<'r, 'f: 'r, 'a: 'r>(columns: &mut Columns<'r, Row<'f, 'a>>) {
    for ((name, title, count), bytes) in RESOURCE_FIGURES {
        let column = columns.add(name, move |row| count(&row.group.figures));
        if let Some(title) = title {
            column.title(title).show(Show::Grouped);
        }
        let Some((name, title, bytes)) = bytes else { continue };
        let column = columns.add(name, move |row| bytes(&row.group.figures));
        if let Some(title) = title {
            column.title(title).show(Show::Bytes);
        }
    }
}

impl<'a> FileStyle<'a> {
    fn new(answer: &'a ResourcesAnswer<'a>, stacks: StackDisplayArgs, display: &Display) -> Self {
        FileStyle {
            answer,
            processes: ProcessStyle::new(&answer.info, display),
            stacks: StackStyle::new(Some(answer.frames.named()), &answer.bases, stacks),
            clock: Clock::new(&answer.info, display.time_format, display.time_digits),
        }
    }

    fn rows<'f>(
        &'f self,
        criteria: &ResourceCriteria,
    ) -> impl Iterator<Item = Row<'f, 'a>> + use<'f, 'a> {
        groups(self.answer, criteria).map(move |group| Row { file: self, group })
    }
}

impl Row<'_, '_> {
    /// The owner, as programs know it.
    fn process_label(&self) -> Option<String> {
        Some(self.file.answer.process(self.group)?.shown_label(true))
    }

    /// The owner for people, with its start and end.
    fn process(&self) -> Option<String> {
        Some(self.file.processes.marked(&self.file.answer.process(self.group)?))
    }

    /// Another process that allocated.
    fn caller(&self) -> Option<String> {
        Some(self.file.answer.caller(self.group)?.shown_label(true))
    }

    fn frame(&self, stack: Option<StackIdx>) -> Option<String> {
        self.file.stacks.trimmed_representative_line(stack?, self.file.answer.trims())
    }

    fn lines(&self, stack: Option<StackIdx>) -> Option<String> {
        let lines = self.file.stacks.trimmed_lines(stack?, self.file.answer.trims())?;
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    fn time(&self, time_ns: Option<i64>) -> String {
        time_ns.map_or_else(String::new, |ns| self.file.clock.at(ns).to_string())
    }

    /// Writes a line about the group, then a line for each frame of its stacks.
    fn write(
        &self,
        by: &[ResourceColumn],
        display: &Display,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let ResourceFigures { allocs, alloc_bytes, first_ns, last_ns, .. } = self.group.figures;
        let (count, size) = (HumanCount(allocs), bytes(alloc_bytes));
        write!(out, "Count: {count} Bytes: {size}")?;
        let lost = (self.group.figures.lost(), self.group.figures.lost_bytes());
        if lost != (allocs, alloc_bytes) {
            write!(out, " Never freed: {} Bytes: {}", HumanCount(lost.0), bytes(lost.1))?;
        }
        for column in by {
            self.write_key(*column, display, out)?;
        }
        writeln!(out, " First: {} Last: {}", self.time(first_ns), self.time(last_ns))?;
        for (column, name, stack) in [
            (ResourceColumn::CreateStack, "Allocated on stack", self.group.create_stack()),
            (ResourceColumn::FreeStack, "Freed on stack", self.group.free_stack()),
        ] {
            if by.contains(&column) {
                write!(out, "{}{name}: ", display.indent(1))?;
                let trims = self.file.answer.trims();
                self.file.stacks.write_trimmed(&mut out, stack, trims, display, 2)?;
            }
        }
        Ok(())
    }

    /// Writes what the allocations of a group have in common, but for stacks.
    fn write_key(
        &self,
        column: ResourceColumn,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let answer = self.file.answer;
        let text = match column {
            ResourceColumn::Kind => answer.kind(self.group).map(str::to_owned),
            ResourceColumn::Allocator => answer.allocator(self.group).map(str::to_owned),
            ResourceColumn::Process => {
                let process = self.process().unwrap_or_else(|| "unknown".to_owned());
                let process = display.screen.paint(Role::Process, Untrusted(&process));
                return write!(out, " Process: {process}");
            }
            ResourceColumn::Caller => self.caller().map(|caller| format!("by {caller}")),
            ResourceColumn::Thread => self.group.tid().map(|tid| format!("Thread: {tid}")),
            ResourceColumn::End => self.group.end().map(|end| end.name().to_owned()),
            ResourceColumn::Size => self.group.size().map(bytes),
            ResourceColumn::CreateStack | ResourceColumn::FreeStack => None,
        };
        match text {
            Some(text) => write!(out, " {}", Untrusted(&text)),
            None => Ok(()),
        }
    }
}

/// Bytes over time as bars.
fn bars(over_time: Option<&[i64]>) -> String {
    let Some(bytes) = over_time else { return String::new() };
    let known = bytes.iter().map(|bytes| u64::try_from(*bytes).unwrap_or_default());
    long_sparkline(&known.collect::<Vec<u64>>())
}

fn part(answer: &ResourcesAnswer<'_>, criteria: &ResourceCriteria) -> Part {
    let mut sum = ResourceFigures::default();
    groups(answer, criteria).for_each(|group| sum.add_all(&group.figures));
    let part = Part::of(answer.path, groups(answer, criteria).count());
    let ResourceFigures { allocs, alloc_bytes, frees, freed_bytes, .. } = sum;
    let (outstanding, at_exit) = (HumanCount(sum.outstanding), HumanCount(sum.at_exit));
    let lost = format!(
        "{outstanding} never freed ({}), {at_exit} freed only by the end of their process ({})",
        bytes(sum.outstanding_bytes),
        bytes(sum.at_exit_bytes)
    );
    if criteria.is_of_leaks() {
        return part.below(format!("{}: {lost}", Counted(allocs, "allocation")));
    }
    part.below(format!(
        "{} ({}), {} ({}), {lost}, {}",
        Counted(allocs, "allocation"),
        bytes(alloc_bytes),
        Counted(frees, "free"),
        bytes(freed_bytes),
        Counted(sum.orphan_frees, "orphan free")
    ))
}
