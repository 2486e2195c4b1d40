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
use handlescope_model::Untrusted;
use handlescope_query::{GroupColumn, GroupKey, ResourceGroup, ResourceStats, ResourcesAnswer};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::Size;

/// The meaning of the column of bytes over time.
pub const OVER_TIME: &str =
    "only with `-ShowTime`: bytes allocated at the end of each part of the trace";

/// The presentation of the allocations of a trace.
pub struct AllocationStyle<'a> {
    pub answer: &'a ResourcesAnswer<'a>,
    pub numbers: StackOffset,
    processes: ProcessStyle,
    pub stacks: StackStyle<'a>,
    pub clock: TraceClock,
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
            stacks: StackStyle::for_groups(answer, stacks),
            clock: TraceClock::below_heading(&answer.about.info, display),
        }
    }
}

impl<'a> AllocationRow<'a> {
    /// Returns the values that the allocations of the group share, by column.
    pub fn keys(&self, by: &[GroupColumn]) -> Document<'a> {
        Document::from_keys(by, self.file.numbers, |column| self.key(column))
    }

    pub fn stats(&self) -> &'a ResourceStats {
        &self.group.stats
    }

    fn key(&self, column: GroupColumn) -> GroupKey<Cow<'a, str>> {
        self.file.answer.key(self.group, column)
    }
}

impl AllocationRow<'_> {
    /// Returns the text that the allocations share in a column; for a process, the text for programs.
    pub fn text(&self, column: GroupColumn) -> Option<String> {
        self.key(column).text().map(Cow::into_owned)
    }

    /// Returns the owner for people, with its start and end.
    pub fn process(&self) -> Option<String> {
        Some(self.file.processes.marked(&self.file.answer.process(self.group)?))
    }

    /// Writes a line about the group, then a line for each frame of its stacks.
    pub fn write(
        &self,
        by: &[GroupColumn],
        display: &Display,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let ResourceStats { allocated, first_ns, last_ns, .. } = self.group.stats;
        write!(out, "Count: {} Bytes: {}", HumanCount(allocated.count), Size(allocated.bytes))?;
        let leaked = self.group.stats.unreleased();
        if leaked != allocated {
            write!(out, " Leaked: {} Bytes: {}", HumanCount(leaked.count), Size(leaked.bytes))?;
        }
        for column in by {
            self.write_key(*column, display, out)?;
        }
        writeln!(
            out,
            " First: {} Last: {}",
            self.file.clock.text(first_ns),
            self.file.clock.text(last_ns)
        )?;
        for column in GroupColumn::ALL.iter().filter(|column| by.contains(column)) {
            let Some(names) = column.frames() else { continue };
            write!(out, "{}{}: ", display.indent(1), names.heading)?;
            self.file.stacks.write(&mut out, self.group.stack(*column), display, 2)?;
        }
        Ok(())
    }

    /// Writes the values that the allocations of a group share, except stacks.
    fn write_key(
        &self,
        column: GroupColumn,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (column, self.key(column)) {
            (GroupColumn::Process, _) => {
                let process = self.process().unwrap_or_else(|| "unknown".to_owned());
                let process = display.screen.paint(Role::Process, Untrusted(&process));
                write!(out, " {}: {process}", column.title())
            }
            (GroupColumn::Caller, GroupKey::Text(process)) => {
                write!(out, " {} {}", column.word(), Untrusted(process.as_ref()))
            }
            (_, GroupKey::Text(text)) => write!(out, " {}", Untrusted(text.as_ref())),
            (GroupColumn::Size, GroupKey::Number(number)) => {
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
        .add("allocs", "allocations", move |row| stats(row).allocated.count)
        .title("Allocs")
        .show(Show::Grouped);
    let alloc = columns.add(
        "alloc_bytes",
        "their bytes; those of pages count once, however often they are committed",
        move |row| stats(row).allocated.bytes,
    );
    alloc.title("Allocated").show(Show::Bytes);
    columns
        .add(
            "frees",
            "calls that freed some of them, per kind; a reallocation is a free and an \
             allocation",
            move |row| stats(row).freed.count,
        )
        .title("Frees")
        .show(Show::Grouped);
    columns.add("freed_bytes", "the bytes that they freed", move |row| stats(row).freed.bytes);
    columns.add(
        "replaced",
        "allocations replaced by another one at the same place, because a free was \
         lost; not counted for pages",
        move |row| stats(row).replaced.count,
    );
    columns.add("replaced_bytes", "their bytes", move |row| stats(row).replaced.bytes);
    columns
        .add("destroyed", "blocks whose heap was destroyed", move |row| stats(row).destroyed.count);
    columns.add("destroyed_bytes", "their bytes", move |row| stats(row).destroyed.bytes);
    let orphan_frees = columns.add(
        "orphan_frees",
        "frees of something not allocated: freed twice, allocated elsewhere, or before the trace",
        move |row| stats(row).orphan_frees.count,
    );
    orphan_frees.title("Orphan frees").show(Show::Grouped);
    columns
        .add("orphan_bytes", "the bytes that they name", move |row| stats(row).orphan_frees.bytes);
    columns.add("ignored", "events that failed or contain nothing to follow", move |row| {
        stats(row).ignored
    });
    let at_exit = columns.add(
        "closed_at_exit",
        "allocations freed only by the end of their process",
        move |row| stats(row).at_exit.count,
    );
    at_exit.title("At exit").show(Show::Grouped);
    let at_exit =
        columns.add("closed_at_exit_bytes", "their bytes", move |row| stats(row).at_exit.bytes);
    at_exit.title("Bytes at exit").show(Show::Bytes);
    let leaked =
        columns.add("leaked", "allocations never freed", move |row| stats(row).outstanding.count);
    leaked.title("Leaked").show(Show::Grouped);
    let leaked =
        columns.add("leaked_bytes", "their bytes", move |row| stats(row).outstanding.bytes);
    leaked.title("Bytes leaked").show(Show::Bytes);
}
