//! Groups of allocations and their presentation.

use std::{
    borrow::Cow,
    io::{self, Write},
    rc::Rc,
};

use indicatif::HumanCount;

use crate::table::{Columns, Show};
use crate::{
    json::Document,
    text::{ProcessStyle, StackStyle},
    time::TraceClock,
    traces::StackOffset,
};
use handlescope_model::{StackIdx, Untrusted};
use handlescope_query::{
    GroupKey, ResourceColumn, ResourceGroup, ResourceKeyKind, ResourceStats, ResourcesAnswer,
    TraceAnswer,
};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::Size;

/// The presentation of the allocations of a trace.
pub struct AllocationStyle<'a> {
    pub answer: &'a ResourcesAnswer<'a>,
    numbers: StackOffset,
    processes: ProcessStyle,
    stacks: StackStyle<'a>,
    clock: TraceClock,
}

/// A group and its presentation.
pub struct AllocationRow<'a> {
    pub file: Rc<AllocationStyle<'a>>,
    pub group: &'a ResourceGroup,
}

impl<'a> AllocationStyle<'a> {
    pub fn new(
        answer: &'a ResourcesAnswer<'a>,
        numbers: StackOffset,
        stacks: StackDisplayArgs,
        display: &Display,
    ) -> Self {
        AllocationStyle {
            answer,
            numbers,
            processes: ProcessStyle::new(&answer.about.info, display),
            stacks: StackStyle::new(Some(answer.frames.named()), &answer.about.bases, stacks)
                .trimmed(answer.trims()),
            clock: TraceClock::below_heading(&answer.about.info, display),
        }
    }
}

impl<'a> AllocationRow<'a> {
    /// Returns the values that the allocations of the group share, by column.
    pub fn keys(&self, by: &[ResourceColumn]) -> Document<'a> {
        by.iter().fold(Document::default(), |keys, column| {
            keys.with_key(column.word(), self.key(*column), self.file.numbers)
        })
    }

    pub fn stats(&self) -> &'a ResourceStats {
        &self.group.stats
    }

    fn key(&self, column: ResourceColumn) -> GroupKey<Cow<'a, str>> {
        self.file.answer.key(self.group, column)
    }
}

impl AllocationRow<'_> {
    /// Returns the number of a stack in a document.
    pub fn number(&self, stack: Option<StackIdx>) -> Option<u64> {
        Some(self.file.numbers.of(stack?))
    }

    /// Returns the text that the allocations share in a column; for a process, the text for programs.
    pub fn text(&self, column: ResourceColumn) -> Option<String> {
        match self.key(column) {
            GroupKey::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns the owner for people, with its start and end.
    pub fn process(&self) -> Option<String> {
        Some(self.file.processes.marked(&self.file.answer.process(self.group)?))
    }

    pub fn frame(&self, stack: Option<StackIdx>) -> Option<String> {
        self.file.stacks.representative_line(stack?)
    }

    pub fn lines(&self, stack: Option<StackIdx>) -> Option<String> {
        self.file.stacks.text(stack)
    }

    pub fn time(&self, time_ns: Option<i64>) -> String {
        time_ns.map_or_else(String::new, |ns| self.file.clock.at(ns).to_string())
    }

    /// Writes a line about the group, then a line for each frame of its stacks.
    pub fn write(
        &self,
        by: &[ResourceColumn],
        display: &Display,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let ResourceStats { allocs, alloc_bytes, first_ns, last_ns, .. } = self.group.stats;
        let (count, size) = (HumanCount(allocs), Size(alloc_bytes));
        write!(out, "Count: {count} Bytes: {size}")?;
        let unreleased = (self.group.stats.unreleased(), self.group.stats.unreleased_bytes());
        if unreleased != (allocs, alloc_bytes) {
            write!(out, " Leaked: {} Bytes: {}", HumanCount(unreleased.0), Size(unreleased.1))?;
        }
        for column in by {
            self.write_key(*column, display, out)?;
        }
        writeln!(out, " First: {} Last: {}", self.time(first_ns), self.time(last_ns))?;
        for column in ResourceColumn::ALL.iter().filter(|column| by.contains(column)) {
            let Some(names) = column.stack_names() else { continue };
            write!(out, "{}{}: ", display.indent(1), names.heading)?;
            self.file.stacks.write(&mut out, self.group.stack(*column), display, 2)?;
        }
        Ok(())
    }

    /// Writes the values that the allocations of a group share, except stacks.
    fn write_key(
        &self,
        column: ResourceColumn,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (column.kind(), self.key(column)) {
            (ResourceKeyKind::Owner, _) => {
                let process = self.process().unwrap_or_else(|| "unknown".to_owned());
                let process = display.screen.paint(Role::Process, Untrusted(&process));
                write!(out, " {}: {process}", column.title())
            }
            (ResourceKeyKind::Process(_), GroupKey::Text(process)) => {
                write!(out, " {} {}", column.word(), Untrusted(process.as_ref()))
            }
            (_, GroupKey::Text(text)) => write!(out, " {}", Untrusted(text.as_ref())),
            (ResourceKeyKind::Bytes(_), GroupKey::Number(number)) => {
                write!(out, " {}", Size(number))
            }
            (_, GroupKey::Number(number)) => write!(out, " {}: {number}", column.title()),
            (_, GroupKey::Stack(_) | GroupKey::None) => Ok(()),
        }
    }
}

/// Adds the columns that identify the owner.
pub fn add_owner<'a>(columns: &mut Columns<'a, AllocationRow<'a>>) {
    columns.add("pid", "process id of the owner", |row| {
        row.file.answer.process(row.group).map(|process| process.pid)
    });
    columns
        .add("process_start_ns", "its start; null: it ran before the trace, or is unknown", |row| {
            row.file.answer.process(row.group)?.start_ns
        })
        .for_programs();
}

/// Adds the counts and their bytes.
pub fn add_amounts<'a, R>(
    columns: &mut Columns<'a, R>,
    stats: impl Fn(&R) -> &'a ResourceStats + Copy + 'a,
) {
    columns
        .add("allocs", "allocations", move |row| stats(row).allocs)
        .title("Allocs")
        .show(Show::Grouped);
    let alloc = columns.add(
        "alloc_bytes",
        "their bytes; those of pages count once, however often they are committed",
        move |row| stats(row).alloc_bytes,
    );
    alloc.title("Allocated").show(Show::Bytes);
    columns
        .add(
            "frees",
            "calls that freed some of them, per kind; a reallocation is a free and an \
             allocation",
            move |row| stats(row).frees,
        )
        .title("Frees")
        .show(Show::Grouped);
    columns.add("freed_bytes", "the bytes that they freed", move |row| stats(row).freed_bytes);
    columns.add(
        "replaced",
        "allocations replaced by another one at the same place, because a free was \
         lost; not counted for pages",
        move |row| stats(row).replaced,
    );
    columns.add("replaced_bytes", "their bytes", move |row| stats(row).replaced_bytes);
    columns.add("destroyed", "blocks whose heap was destroyed", move |row| stats(row).destroyed);
    columns.add("destroyed_bytes", "their bytes", move |row| stats(row).destroyed_bytes);
    let orphan_frees = columns.add(
        "orphan_frees",
        "frees of something not allocated: freed twice, allocated elsewhere, or before the trace",
        move |row| stats(row).orphan_frees,
    );
    orphan_frees.title("Orphan frees").show(Show::Grouped);
    columns.add("orphan_bytes", "the bytes that they name", move |row| stats(row).orphan_bytes);
    columns.add("ignored", "events that failed or contain nothing to follow", move |row| {
        stats(row).ignored
    });
    let at_exit = columns.add(
        "closed_at_exit",
        "allocations freed only by the end of their process",
        move |row| stats(row).at_exit,
    );
    at_exit.title("At exit").show(Show::Grouped);
    let at_exit =
        columns.add("closed_at_exit_bytes", "their bytes", move |row| stats(row).at_exit_bytes);
    at_exit.title("Bytes at exit").show(Show::Bytes);
    let leaked =
        columns.add("leaked", "allocations never freed", move |row| stats(row).outstanding);
    leaked.title("Leaked").show(Show::Grouped);
    let leaked =
        columns.add("leaked_bytes", "their bytes", move |row| stats(row).outstanding_bytes);
    leaked.title("Bytes leaked").show(Show::Bytes);
}
