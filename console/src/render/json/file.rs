//! A trace in documents of handles and of allocations.

use std::path::Path;

use handlescope_model::StackIdx;
use handlescope_model::tables::TraceInfo;
use serde::Serialize;

use super::Shown;
use super::stack::StackJson;
use crate::query::{FileAnswer, NoMatch, ObjectRefAnswer, ResourcesAnswer};
use crate::render::time::Utc7;
use crate::trace::Caveat;

/// One trace in the document.
pub(super) struct FileJson<'a> {
    pub(super) index: usize,
    pub(super) answer: &'a FileAnswer<'a>,
    /// Added to the rows of its stacks, so that stacks of several traces have different numbers.
    pub(super) first_stack: u64,
}

impl<'a> FileJson<'a> {
    /// The traces of an answer.
    pub(super) fn of_all(answer: &'a ObjectRefAnswer<'a>) -> Vec<Self> {
        Self::of_files(answer.files.iter())
    }

    /// Some traces.
    pub(super) fn of_files(files: impl Iterator<Item = &'a FileAnswer<'a>>) -> Vec<Self> {
        let mut first_stack = 0;
        let number = |answer: &'a FileAnswer<'a>| {
            let file = Self { index: answer.index(), answer, first_stack };
            first_stack += answer.stack_count as u64;
            file
        };
        files.map(number).collect()
    }

    /// The number of a stack in the document.
    pub(super) fn stack(&self, stack: StackIdx) -> u64 {
        self.first_stack + u64::from(stack.0)
    }
}

/// One trace in a document of allocations.
#[derive(Clone, Copy)]
pub(super) struct AllocationsFile<'a> {
    pub(super) answer: &'a ResourcesAnswer<'a>,
    /// Added to the rows of its stacks, so that stacks of several traces have different numbers.
    first_stack: u64,
}

impl<'a> AllocationsFile<'a> {
    /// The traces of an answer.
    pub(super) fn of(answers: impl Iterator<Item = &'a ResourcesAnswer<'a>>) -> Vec<Self> {
        let mut first_stack = 0;
        let number = |answer: &'a ResourcesAnswer<'a>| {
            let file = Self { answer, first_stack };
            first_stack += answer.stack_count as u64;
            file
        };
        answers.map(number).collect()
    }

    /// The number of a stack in the document.
    pub(super) fn stack(self, stack: StackIdx) -> u64 {
        self.first_stack + u64::from(stack.0)
    }

    pub(super) fn stacks(self) -> impl Iterator<Item = (String, StackJson<'a>)> {
        let (frames, bases) = (Some(&self.answer.frames), &self.answer.bases);
        let trims = self.answer.trims();
        self.answer.stacks().map(move |stack| {
            let number = self.stack(stack).to_string();
            (number, StackJson { frames, bases, stack, trims })
        })
    }

    pub(super) fn caveats(self) -> impl Iterator<Item = CaveatJson<'a>> {
        CaveatJson::of(self.answer.index, &self.answer.caveats)
    }

    pub(super) fn no_match(self) -> Option<NoMatchJson<'a>> {
        let no_match = self.answer.no_match.as_ref()?;
        Some(NoMatchJson::of(self.answer.index, no_match))
    }

    pub(super) fn header(self) -> TraceHeader {
        TraceHeader::of(self.answer.index, self.answer.path, &self.answer.info)
    }
}

/// What every document says of a trace.
#[derive(Serialize)]
pub(super) struct TraceHeader {
    file: usize,
    path: String,
    session_start_utc: Option<Shown<Utc7>>,
    session_end_utc: Option<Shown<Utc7>>,
    events_lost: Option<u64>,
    buffers_lost: Option<u64>,
}

impl TraceHeader {
    pub(super) fn of(file: usize, path: &Path, info: &TraceInfo) -> Self {
        let (events_lost, buffers_lost) = info.losses().unzip();
        Self {
            file,
            path: path.to_string_lossy().into_owned(),
            session_start_utc: info.has_clock().then_some(Shown(Utc7(info.session_start_filetime))),
            session_end_utc: info.session_end_filetime.map(|end| Shown(Utc7(end))),
            events_lost,
            buffers_lost,
        }
    }
}

#[derive(Serialize)]
pub(super) struct CaveatJson<'a> {
    file: usize,
    #[serde(flatten)]
    caveat: &'a Caveat,
}

impl<'a> CaveatJson<'a> {
    pub(super) fn of(file: usize, caveats: &'a [Caveat]) -> impl Iterator<Item = Self> {
        caveats.iter().map(move |caveat| Self { file, caveat })
    }
}

/// The filter that removed everything.
#[derive(Serialize)]
pub(in crate::render) struct NoMatchJson<'a> {
    file: usize,
    option: String,
    before: usize,
    nearest: Vec<String>,
    existing: &'a [String],
}

impl<'a> NoMatchJson<'a> {
    pub(super) fn of(file: usize, no_match: &'a NoMatch) -> Self {
        let (option, nearest) = (no_match.option(), no_match.nearest_options());
        Self { file, option, before: no_match.before, nearest, existing: &no_match.existing }
    }
}

/// The first of the reasons why nothing passes, by the numbers of traces.
pub(in crate::render) fn first_no_match<'a>(
    mut answers: impl Iterator<Item = (usize, Option<&'a NoMatch>)>,
) -> Option<NoMatchJson<'a>> {
    answers.find_map(|(file, no_match)| Some(NoMatchJson::of(file, no_match?)))
}

/// A trace in a document that is about handles or about allocations.
pub(super) trait InDocument {
    fn header(&self) -> impl Serialize;
    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)>;
    fn caveats(&self) -> impl Iterator<Item = CaveatJson<'_>>;
    fn no_match(&self) -> Option<NoMatchJson<'_>>;
}

impl InDocument for FileJson<'_> {
    fn header(&self) -> impl Serialize {
        FileJson::header(self)
    }

    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)> {
        FileJson::stacks(self)
    }

    fn caveats(&self) -> impl Iterator<Item = CaveatJson<'_>> {
        FileJson::caveats(self)
    }

    fn no_match(&self) -> Option<NoMatchJson<'_>> {
        FileJson::no_match(self)
    }
}

impl InDocument for AllocationsFile<'_> {
    fn header(&self) -> impl Serialize {
        AllocationsFile::header(*self)
    }

    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)> {
        AllocationsFile::stacks(*self)
    }

    fn caveats(&self) -> impl Iterator<Item = CaveatJson<'_>> {
        AllocationsFile::caveats(*self)
    }

    fn no_match(&self) -> Option<NoMatchJson<'_>> {
        AllocationsFile::no_match(*self)
    }
}
