//! A group of allocations, and how it is shown.

use std::{
    io::{self, Write},
    rc::Rc,
};

use handlescope_model::tables::ResourceEnd;
use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;

use crate::{
    query::{ResourceColumn, ResourceFigures, ResourceGroup, ResourcesAnswer, TraceAnswer},
    render::{
        json::{Document, StackNumbers},
        table::bytes,
        text::{ProcessStyle, StackStyle},
        time::Clock,
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
};

/// How the allocations of a trace are shown.
pub(super) struct FileStyle<'a> {
    pub(super) answer: &'a ResourcesAnswer<'a>,
    numbers: StackNumbers,
    processes: ProcessStyle,
    stacks: StackStyle<'a>,
    clock: Clock,
}

/// A group, and how it is shown.
pub(crate) struct Row<'a> {
    pub(super) file: Rc<FileStyle<'a>>,
    pub(super) group: &'a ResourceGroup,
}

impl<'a> FileStyle<'a> {
    pub(super) fn new(
        answer: &'a ResourcesAnswer<'a>,
        numbers: StackNumbers,
        stacks: StackDisplayArgs,
        display: &Display,
    ) -> Self {
        FileStyle {
            answer,
            numbers,
            processes: ProcessStyle::new(&answer.about.info, display),
            stacks: StackStyle::new(Some(answer.frames.named()), &answer.about.bases, stacks),
            clock: Clock::new(&answer.about.info, display.time_format, display.time_digits),
        }
    }
}

impl<'a> Row<'a> {
    /// What the allocations of the group have in common, by column.
    pub(super) fn keys(&self, by: &[ResourceColumn]) -> Document<'a> {
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

    pub(super) fn figures(&self) -> &'a ResourceFigures {
        &self.group.figures
    }

    pub(super) fn kind(&self) -> Option<&'static str> {
        self.file.answer.kind(self.group)
    }

    pub(super) fn allocator(&self) -> Option<&'a str> {
        self.file.answer.allocator(self.group)
    }

    pub(super) fn end(&self) -> Option<&'static str> {
        self.group.end().map(ResourceEnd::name)
    }
}

impl Row<'_> {
    /// The number of a stack in a document.
    pub(super) fn number(&self, stack: Option<StackIdx>) -> Option<u64> {
        Some(self.file.numbers.of(stack?))
    }

    /// The owner, as programs know it.
    pub(super) fn process_label(&self) -> Option<String> {
        Some(self.file.answer.process(self.group)?.shown_label(true))
    }

    /// The owner for people, with its start and end.
    pub(super) fn process(&self) -> Option<String> {
        Some(self.file.processes.marked(&self.file.answer.process(self.group)?))
    }

    /// Another process that allocated.
    pub(super) fn caller(&self) -> Option<String> {
        Some(self.file.answer.caller(self.group)?.shown_label(true))
    }

    pub(super) fn frame(&self, stack: Option<StackIdx>) -> Option<String> {
        self.file.stacks.trimmed_representative_line(stack?, self.file.answer.trims())
    }

    pub(super) fn lines(&self, stack: Option<StackIdx>) -> Option<String> {
        self.file.stacks.text(stack, self.file.answer.trims())
    }

    pub(super) fn time(&self, time_ns: Option<i64>) -> String {
        time_ns.map_or_else(String::new, |ns| self.file.clock.at(ns).to_string())
    }

    /// Writes a line about the group, then a line for each frame of its stacks.
    pub(super) fn write(
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
