//! `.dump Resource`

mod document;

use std::{
    io::{self, Write},
    rc::Rc,
};

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
        json::{self, Document, StackNumbers, traces},
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
    numbers: StackNumbers,
    processes: ProcessStyle,
    stacks: StackStyle<'a>,
    clock: Clock,
}

/// A group, and how it is shown.
pub(crate) struct Row<'a> {
    file: Rc<FileStyle<'a>>,
    group: &'a ResourceGroup,
}

/// What is said of a group; `has_text`: files have the frames of its stacks.
pub(crate) fn resource_columns<'a>(
    criteria: &ResourceCriteria,
    has_text: bool,
) -> Columns<'a, Row<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("file", |row| index(row.file.answer.index));
    let by: Rc<[ResourceColumn]> = criteria.columns().into();
    let keys = Rc::clone(&by);
    columns.nest("keys", "object", move |row| row.keys(&keys));
    for column in by.iter() {
        add_key(&mut columns, *column, has_text);
    }
    if criteria.shows_leaks() {
        let count = columns.add("count", |row| row.group.figures.lost());
        count.title("Count").show(Show::Grouped).place(-2);
        let bytes = columns.add("bytes", |row| row.group.figures.lost_bytes());
        bytes.title("Bytes").show(Show::Bytes).place(-2);
    } else {
        add_figures(&mut columns);
    }
    if criteria.buckets.is_some() {
        columns.nest("over_time", "array", |row| row.group.over_time.as_ref());
    }
    let first = columns.add("first_ns", |row| row.group.figures.first_ns).title("First");
    first.texts(|row| row.time(row.group.figures.first_ns));
    let last = columns.add("last_ns", |row| row.group.figures.last_ns).title("Last");
    last.texts(|row| row.time(row.group.figures.last_ns));
    if criteria.buckets.is_some() {
        let over_time = |row: &Row<'a>| row.group.over_time.clone().unwrap_or_default();
        let over_time = columns.add("over_time", over_time).title("Over time");
        over_time.texts(|row| bars(row.group.over_time.as_deref())).rows_only();
    }
    columns
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
    let traces = traces(answers);
    let files = answers.iter().zip(traces.iter()).map(|(answer, trace)| {
        Rc::new(FileStyle::new(answer, trace.numbers, criteria.stacks, display))
    });
    let files: Vec<Rc<FileStyle<'a>>> = files.collect();
    let rows = files.iter().flat_map(|file| {
        groups(file.answer, criteria).map(|group| Row { file: Rc::clone(file), group })
    });
    let has_text = !matches!(format, Format::Text | Format::Json(_));
    let (mut columns, display) = (resource_columns(criteria, has_text), *display);
    if criteria.stacks.show && criteria.has_stacks() {
        let by = criteria.columns();
        columns.row_text(move |row, out| row.write(by, &display, out));
    }
    let parts = answers.iter().map(|answer| part(answer, criteria));
    let keys = ["Stack", "Free stack", "End", "By", "Allocator"];
    let spare = LEFT_OUT.into_iter().filter(|title| criteria.by.is_none() || !keys.contains(title));
    let table = Table::new("groups", columns, rows.collect(), parts)?.with_spare(spare);
    let Some(by) = &criteria.by else {
        return Ok(table.with_document(move |parts, mode, out| {
            let document = Document::default().with("command", command).with("kind", "Resource");
            let document = document::with_lists(document, &files, criteria, parts)
                .stacks_if(criteria.stacks.show, &traces)
                .caveats(&traces);
            json::write(&document, mode, out)
        }));
    };
    let by: Vec<&str> = by.iter().map(|own| own.word()).collect();
    let head = Document::default().with("command", command).with("kind", "ResourceGroups");
    let tail = Document::default().stacks_if(criteria.stacks.show, &traces).caveats(&traces);
    Ok(table.with_members(head.with("group_by", by), tail))
}

fn groups<'a>(
    answer: &'a ResourcesAnswer<'_>,
    criteria: &ResourceCriteria,
) -> impl Iterator<Item = &'a ResourceGroup> + use<'a> {
    answer.shown(criteria).into_iter().flat_map(|groups| &groups.rows)
}

/// Adds what a column of keys says; a document says it in one member.
fn add_key<'a>(columns: &mut Columns<'a, Row<'a>>, column: ResourceColumn, has_text: bool) {
    match column {
        ResourceColumn::Kind => {
            columns.add("kind", Row::kind).title("Kind").rows_only();
        }
        ResourceColumn::Allocator => {
            columns.add("allocator", Row::allocator).title("Allocator").rows_only();
        }
        ResourceColumn::Process => {
            columns.add("process", Row::process_label).rows_only();
            columns.add("pid", |row| row.file.answer.process(row.group).map(|own| own.pid));
            columns.add("process_start_ns", |row| row.file.answer.process(row.group)?.start_ns);
            columns.add("shown_process", Row::process).title("Process").text_only();
        }
        ResourceColumn::Caller => {
            columns.add("by", Row::caller).title("By").unknown("").rows_only();
        }
        ResourceColumn::CreateStack => {
            let names = [("stack", "Stack"), ("innermost_frame", "Innermost frame")];
            add_stack(columns, names, "text", has_text, ResourceGroup::create_stack);
        }
        ResourceColumn::FreeStack => {
            let frame = ("free_frame", "Innermost frame of the free");
            let names = [("free_stack", "Free stack"), frame];
            add_stack(columns, names, "free_text", has_text, ResourceGroup::free_stack);
        }
        ResourceColumn::Thread => {
            columns.add("tid", |row| row.group.tid()).title("Thread").rows_only();
        }
        ResourceColumn::End => {
            columns.add("end", Row::end).title("End").rows_only();
        }
        ResourceColumn::Size => {
            let size = columns.add("size", |row| row.group.size()).title("Size");
            size.show(Show::Bytes).rows_only();
        }
    }
}

/// Adds the number of a stack, its innermost frame, and its frames if files have them.
fn add_stack<'a>(
    columns: &mut Columns<'a, Row<'a>>,
    [(name, title), (frame, frame_title)]: [(&'static str, &str); 2],
    text: &'static str,
    has_text: bool,
    stack: fn(&ResourceGroup) -> Option<StackIdx>,
) {
    columns.add(name, move |row| Some(stack(row.group)?.0)).title(title).rows_only();
    let innermost = columns.add(frame, move |row| row.frame(stack(row.group)));
    innermost.title(frame_title).unknown("").place(1).rows_only();
    if has_text {
        columns.add(text, move |row| row.lines(stack(row.group))).rows_only();
    }
}

fn add_figures<'a>(columns: &mut Columns<'a, Row<'a>>) {
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
    fn new(
        answer: &'a ResourcesAnswer<'a>,
        numbers: StackNumbers,
        stacks: StackDisplayArgs,
        display: &Display,
    ) -> Self {
        FileStyle {
            answer,
            numbers,
            processes: ProcessStyle::new(&answer.info, display),
            stacks: StackStyle::new(Some(answer.frames.named()), &answer.bases, stacks),
            clock: Clock::new(&answer.info, display.time_format, display.time_digits),
        }
    }
}

impl<'a> Row<'a> {
    /// What the allocations of the group have in common, by column.
    fn keys(&self, by: &[ResourceColumn]) -> Document<'a> {
        let key = |keys: Document<'a>, column: &ResourceColumn| {
            let name = column.word();
            match column {
                ResourceColumn::Kind => keys.with(name, self.kind()),
                ResourceColumn::Allocator => keys.with(name, self.allocator()),
                ResourceColumn::Process => keys.with(name, self.process_label()),
                ResourceColumn::Caller => keys.with(name, self.caller()),
                ResourceColumn::CreateStack => {
                    keys.with(name, self.number(self.group.create_stack()))
                }
                ResourceColumn::FreeStack => keys.with(name, self.number(self.group.free_stack())),
                ResourceColumn::Thread => keys.with(name, self.group.tid()),
                ResourceColumn::End => keys.with(name, self.end()),
                ResourceColumn::Size => keys.with(name, self.group.size()),
            }
        };
        by.iter().fold(Document::default(), key)
    }

    fn kind(&self) -> Option<&'static str> {
        self.file.answer.kind(self.group)
    }

    fn allocator(&self) -> Option<&'a str> {
        self.file.answer.allocator(self.group)
    }

    fn end(&self) -> Option<&'static str> {
        self.group.end().map(ResourceEnd::name)
    }
}

impl Row<'_> {
    /// The number of a stack in a document.
    fn number(&self, stack: Option<StackIdx>) -> Option<u64> {
        Some(self.file.numbers.of(stack?))
    }

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
        let text = match column {
            ResourceColumn::Kind => self.kind().map(str::to_owned),
            ResourceColumn::Allocator => self.allocator().map(str::to_owned),
            ResourceColumn::Process => {
                let process = self.process().unwrap_or_else(|| "unknown".to_owned());
                let process = display.screen.paint(Role::Process, Untrusted(&process));
                return write!(out, " Process: {process}");
            }
            ResourceColumn::Caller => self.caller().map(|caller| format!("by {caller}")),
            ResourceColumn::Thread => self.group.tid().map(|tid| format!("Thread: {tid}")),
            ResourceColumn::End => self.end().map(str::to_owned),
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
