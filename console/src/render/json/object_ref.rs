//! `.dump ObjectRef -json`.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::file::{CaveatJson, FileJson, NoMatchJson, TraceHeader};
use super::object::ObjectJson;
use super::stack::StackJson;
use super::sums::{ExitStacksJson, TotalsJson};
use super::{Array, Members};
use crate::query::{CountBy, CountOrder, Counted, HandleCounts, LeftOut, ObjectRefAnswer};
use crate::render::style::ObjectRefStyle;
use crate::values::JsonMode;

pub(in crate::render) fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    super::write(&Document { files: FileJson::of_all(answer), answer, args }, mode, out)
}

struct Document<'a> {
    answer: &'a ObjectRefAnswer<'a>,
    files: Vec<FileJson<'a>>,
    args: &'a ObjectRefStyle<'a>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("command", &self.args.text)?;
        map.serialize_entry("files", &Array(|| self.files.iter().map(FileJson::header)))?;
        map.serialize_entry("totals", &TotalsJson(self.answer.totals()))?;
        map.serialize_entry("caveats", &Array(|| self.files.iter().flat_map(FileJson::caveats)))?;
        if let Some(no_match) = self.files.iter().find_map(FileJson::no_match) {
            map.serialize_entry("no_match", &no_match)?;
        }
        let by = CountBy::of(self.args.criteria);
        if let (Some(by), Some(counts)) = (by, &self.answer.handle_counts) {
            let several = self.files.len() > 1;
            map.serialize_entry("not_closed", &NotClosed::new(counts, by, several, self.args))?;
        }
        if self.args.criteria.top.is_some() && by.is_none() {
            let mut left_out = LeftOut::default();
            self.answer.files.iter().for_each(|file| left_out += file.left_out);
            let LeftOut { objects, handles, views, existing } = left_out;
            let handles = handles + views;
            let left_out = LeftOutJson { objects, handles, views, existing_handles: existing };
            map.serialize_entry("left_out", &left_out)?;
        }
        map.serialize_entry("objects", &Array(|| self.files.iter().flat_map(FileJson::objects)))?;
        if self.args.criteria.stacks.show {
            map.serialize_entry(
                "stacks",
                &Members(|| self.files.iter().flat_map(FileJson::stacks)),
            )?;
        }
        map.end()
    }
}

#[derive(Serialize)]
pub(super) struct FileHeader {
    #[serde(flatten)]
    trace: TraceHeader,
    totals: TotalsJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_stacks: Option<ExitStacksJson>,
}

/// Objects that `-TopN` leaves out.
#[derive(Serialize)]
struct LeftOutJson {
    objects: usize,
    /// Handles and views.
    handles: usize,
    views: usize,
    existing_handles: usize,
}

#[derive(Serialize)]
struct NotClosed<'a> {
    by: &'static str,
    counted: &'static str,
    order: &'static str,
    rows: Vec<CountJson<'a>>,
    sum: u64,
    left_out: RowsLeftOut,
    process_count: usize,
}

/// A name with its count, and, of a process of one of several traces, the number of the file.
#[derive(Serialize)]
#[serde(untagged)]
enum CountJson<'a> {
    Name(&'a str, u64),
    NameInFile(&'a str, u64, usize),
}

/// What `-TopN` leaves out of a table.
#[derive(Serialize)]
struct RowsLeftOut {
    rows: usize,
    count: u64,
}

impl<'a> NotClosed<'a> {
    fn new(
        counts: &'a HandleCounts,
        by: CountBy,
        is_of_several: bool,
        args: &ObjectRefStyle<'_>,
    ) -> Self {
        let rows = counts.rows(by, args.criteria.top, args.criteria.order);
        let names_file = is_of_several && by == CountBy::Process;
        Self {
            by: match by {
                CountBy::Type => "type",
                CountBy::Process => "process",
                CountBy::File => "file",
            },
            counted: match counts.counted {
                Counted::OpenAtEnd => "open_at_end",
                Counted::OpenByEvents { has_start: true } => "open_by_events_and_start",
                Counted::OpenByEvents { has_start: false } => "open_by_events",
                Counted::Leaked => "leaked",
                Counted::ClosedAtExit => "closed_at_exit",
                Counted::LeakedOrAtExit => "leaked_or_closed_at_exit",
            },
            order: match args.criteria.order {
                CountOrder::LargestLast => "largest_last",
                CountOrder::LargestFirst => "largest_first",
                CountOrder::Name => "name",
            },
            sum: rows.sum(),
            left_out: RowsLeftOut { rows: rows.left_out, count: rows.left_out_sum },
            rows: rows
                .rows
                .iter()
                .map(|row| match names_file {
                    true => CountJson::NameInFile(row.name, row.count, row.file),
                    false => CountJson::Name(row.name, row.count),
                })
                .collect(),
            process_count: counts.process_count(),
        }
    }
}

impl<'a> FileJson<'a> {
    pub(super) fn header(&self) -> FileHeader {
        FileHeader {
            trace: TraceHeader::of(self.index, self.answer.path(), &self.answer.info),
            totals: TotalsJson(self.answer.totals),
            exit_stacks: self.answer.exit_stacks.map(ExitStacksJson),
        }
    }

    pub(super) fn caveats(&self) -> impl Iterator<Item = CaveatJson<'_>> {
        CaveatJson::of(self.index, &self.answer.caveats)
    }

    pub(super) fn no_match(&self) -> Option<NoMatchJson<'_>> {
        Some(NoMatchJson::of(self.index, self.answer.no_match.as_ref()?))
    }

    fn objects(&self) -> impl Iterator<Item = ObjectJson<'_>> {
        let listing = self.answer.listing.as_ref();
        listing.into_iter().flat_map(move |listing| {
            let objects = self.answer.selection.objects().iter();
            objects.map(move |&selected| ObjectJson { file: self, listing, selected })
        })
    }

    pub(super) fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)> {
        let stacks = self.answer.shown_stacks.iter().flat_map(|stacks| stacks.iter());
        let (frames, bases) = (self.answer.file.frames.as_ref(), &self.answer.bases);
        let trims = self.answer.groups.as_ref().and_then(|groups| groups.stacks.as_ref());
        let frames = move |stack| StackJson { frames, bases, stack, trims };
        stacks.map(move |stack| (self.stack(stack).to_string(), frames(stack)))
    }
}
