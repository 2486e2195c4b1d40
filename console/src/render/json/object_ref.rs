//! `.dump ObjectRef -json`.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::file::FileJson;
use super::object::ObjectJson;
use super::stack::StackJson;
use super::{Array, Members, Shown};
use crate::query::{CountBy, FileAnswer, ObjectRefAnswer, OpenHandles, Totals, count_by};
use crate::render::style::ObjectRefStyle;
use crate::render::time::Utc7;
use crate::values::JsonMode;

pub(in crate::render) fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    super::write(&Document { files: number_stacks(answer), answer, args }, mode, out)
}

/// The document.
struct Document<'a> {
    answer: &'a ObjectRefAnswer<'a>,
    files: Vec<FileJson<'a>>,
    args: &'a ObjectRefStyle<'a>,
}

fn number_stacks<'a>(answer: &'a ObjectRefAnswer<'a>) -> Vec<FileJson<'a>> {
    let mut first_stack = 0;
    let number = |answer: &'a FileAnswer<'a>| {
        let file = FileJson { index: answer.index(), answer, first_stack };
        first_stack += answer.stack_count as u64;
        file
    };
    answer.files.iter().map(number).collect()
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("command", &self.args.text)?;
        map.serialize_entry("files", &Array(|| self.files.iter().map(FileJson::header)))?;
        map.serialize_entry("totals", &self.answer.totals())?;
        let by = count_by(self.args.criteria);
        if let (Some(by), Some(handles)) = (by, &self.answer.open_handles) {
            map.serialize_entry("not_closed", &NotClosed::new(handles, by, self.args))?;
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
struct FileHeader {
    file: usize,
    path: String,
    session_start_utc: Shown<Utc7>,
    session_end_utc: Option<Shown<Utc7>>,
    events_lost: u64,
    buffers_lost: u64,
    totals: Totals,
}

#[derive(Serialize)]
struct NotClosed {
    by: &'static str,
    rows: Vec<(String, u64)>,
    sum: u64,
    process_count: usize,
}

impl NotClosed {
    fn new(handles: &OpenHandles, by: CountBy, args: &ObjectRefStyle<'_>) -> Self {
        let rows = handles.rows(by, args.criteria.top);
        Self {
            by: match by {
                CountBy::Type => "type",
                CountBy::Process => "process",
                CountBy::File => "file",
            },
            sum: rows.iter().map(|(_, count)| count).sum(),
            rows: rows.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            process_count: handles.process_count(),
        }
    }
}

impl<'a> FileJson<'a> {
    fn header(&self) -> FileHeader {
        let info = &self.answer.info;
        FileHeader {
            file: self.index,
            path: self.answer.path().display().to_string(),
            session_start_utc: Shown(Utc7(info.session_start_filetime)),
            session_end_utc: info.session_end_filetime.map(|end| Shown(Utc7(end))),
            events_lost: info.events_lost,
            buffers_lost: info.buffers_lost,
            totals: self.answer.totals,
        }
    }

    fn objects(&self) -> impl Iterator<Item = ObjectJson<'_>> {
        let listing = self.answer.listing.as_ref();
        listing.into_iter().flat_map(move |listing| {
            let objects = self.answer.selection.objects().iter();
            objects.map(move |&selected| ObjectJson { file: self, listing, selected })
        })
    }

    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)> {
        let stacks = self.answer.shown_stacks.iter().flat_map(|stacks| stacks.iter());
        let (frames, bases) = (self.answer.file.frames.as_ref(), &self.answer.bases);
        stacks.map(move |stack| (self.stack(stack).to_string(), StackJson { frames, bases, stack }))
    }
}
