//! A trace in documents of handles and of allocations.

use std::path::Path;
use std::rc::Rc;

use handlescope_model::StackIdx;
use handlescope_model::tables::TraceInfo;
use serde::{Serialize, Serializer};

use super::stack::StackJson;
use super::{Meanings, Shown};
use crate::time::Utc7;
use handlescope_query::{
    ExitStacks, Frames, ModuleBases, NoMatch, Totals, TraceAnswer, TrimmedStacks,
};
use handlescope_session::trace::Caveat;

/// A trace in a document, of handles or of allocations.
pub struct TraceJson<'a> {
    header: TraceHeader,
    pub numbers: StackNumbers,
    stack_count: usize,
    /// The stacks that the answer refers to.
    stacks: Vec<StackIdx>,
    frames: Option<&'a Frames<'a>>,
    bases: &'a ModuleBases,
    trims: Option<&'a TrimmedStacks>,
    caveats: &'a [Caveat],
    no_match: Option<&'a NoMatch>,
}

/// The numbers of the stacks of a trace in a document: its rows and what is added, so that stacks of several traces
/// have different numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackNumbers(u64);

impl StackNumbers {
    pub fn of(self, stack: StackIdx) -> u64 {
        self.0 + u64::from(stack.0)
    }
}

/// The traces of a document.
pub type Traces<'a> = Rc<[TraceJson<'a>]>;

/// The traces of some answers, with the numbers of their stacks.
pub fn traces<'a, 't: 'a, T: TraceAnswer<'t> + 'a>(
    answers: impl IntoIterator<Item = &'a T>,
) -> Traces<'a> {
    let mut first_stack = 0;
    let traces = answers.into_iter().map(|answer| {
        let trace = TraceJson { numbers: StackNumbers(first_stack), ..TraceJson::of(answer) };
        first_stack += trace.stack_count as u64;
        trace
    });
    traces.collect()
}

impl<'a> TraceJson<'a> {
    fn of<'t: 'a>(answer: &'a impl TraceAnswer<'t>) -> Self {
        let about = answer.about();
        let header = TraceHeader::of(about.index, about.path, &about.info);
        let (totals, exit_stacks) = answer.totals().unzip();
        Self {
            header: TraceHeader { totals, exit_stacks: exit_stacks.flatten(), ..header },
            numbers: StackNumbers::default(),
            stack_count: about.stack_count,
            stacks: answer.stacks(),
            frames: answer.frames(),
            bases: &about.bases,
            trims: answer.trims(),
            caveats: &about.caveats,
            no_match: about.no_match.as_ref(),
        }
    }

    pub fn header(&self) -> TraceHeader {
        self.header.clone()
    }

    pub fn caveats(&self) -> impl Iterator<Item = CaveatJson<'a>> + use<'a> {
        let file = self.header.file;
        self.caveats.iter().map(move |caveat| CaveatJson { file, caveat })
    }

    pub fn no_match(&self) -> (usize, Option<&'a NoMatch>) {
        (self.header.file, self.no_match)
    }

    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'a>)> {
        let TraceJson { numbers, frames, bases, trims, .. } = *self;
        self.stacks.iter().map(move |&stack| {
            (numbers.of(stack).to_string(), StackJson { frames, bases, stack, trims })
        })
    }
}

/// The stacks of traces, by their numbers.
pub struct StacksJson<'a>(pub Traces<'a>);

impl Serialize for StacksJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().flat_map(TraceJson::stacks))
    }
}

/// The facts about a trace in a document.
#[derive(Clone, Serialize)]
pub struct TraceHeader {
    file: usize,
    path: String,
    session_start_utc: Option<Shown<Utc7>>,
    session_end_utc: Option<Shown<Utc7>>,
    events_lost: Option<u64>,
    buffers_lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<Totals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_stacks: Option<ExitStacks>,
}

impl TraceHeader {
    fn of(file: usize, path: &Path, info: &TraceInfo) -> Self {
        let (events_lost, buffers_lost) = info.losses().unzip();
        Self {
            file,
            path: path.to_string_lossy().into_owned(),
            session_start_utc: info.start_filetime().map(|start| Shown(Utc7(start))),
            session_end_utc: info.session_end_filetime.map(|end| Shown(Utc7(end))),
            events_lost,
            buffers_lost,
            totals: None,
            exit_stacks: None,
        }
    }
}

#[derive(Serialize)]
pub struct CaveatJson<'a> {
    file: usize,
    #[serde(flatten)]
    caveat: &'a Caveat,
}

/// Meanings of the members of `files` in `.dump ObjectRef`.
pub const FILE_MEMBERS: Meanings = &[
    ("file", "index"),
    ("path", "the file name as given when it was loaded"),
    (
        "session_start_utc, session_end_utc",
        "start and end of the recording; null, like all times, in a trace without a clock",
    ),
    (
        "events_lost, buffers_lost",
        "what the recording lost; if closes were lost, leaks are doubtful",
    ),
    ("totals", "sums over the objects and events of this trace that passed, see below"),
    (
        "exit_stacks",
        "only with `-LeakAtExit` and function names (`-ShowStack` or a stack filter): what the \
         stacks of closes at process exit prove:",
    ),
    ("exit_stacks.closes", "all such closes of the objects that passed"),
    (
        "exit_stacks.confirmed",
        "those with `ExSweepHandleTable`, `ObKillProcess` or `PspExitProcess` on the stack",
    ),
    (
        "exit_stacks.doubtful",
        "those before the process end whose kernel frames all have names, but none of these",
    ),
];

/// Meanings of the members of `caveats` in `.dump ObjectRef`.
pub const CAVEAT_MEMBERS: Meanings = &[
    ("file", "the file, as in `files.file`"),
    (
        "kind",
        "`\"no_handle_events\"`, `\"no_clock\"` (text of `!htrace`: [htrace.md](htrace.md); dumps: [dumps.md](dumps.md)), \
         `\"coarse_clock\"` (the system clock; events with equal timestamps are ordered by what \
         they do), `\"lost_while_recording\"`, `\"missing_in_file\"`, `\"closed_unseen\"` \
         (handles and views whose closes are missing, but which other events show to be closed), \
         `\"no_end_rundown\"`, `\"part_of_session\"` (a ring overwrote older events), \
         `\"exits_doubtful\"` (see `exit_stacks.doubtful`), \
         `\"builds_differ\"` (comparisons only: frames of modules with different builds and \
         without names are compared by module), `\"stacks_missing\"` (stacks of creates are \
         missing, if stacks are shown or filtered), `\"symbols_missing\"` (for a stack filter), \
         `\"methods_unnamed\"` (processes of .NET recorded without names of methods), \
         `\"programs_differ\"` (comparisons of dumps only: they are of two programs); \
         only in `.dump Resource`: `\"no_resource_events\"` (nothing requested was recorded), \
         `\"older_unknown\"` (a process is older than the trace), `\"processes_unknown\"` (of \
         allocators)",
    ),
    ("text", "the same in words, as on standard error"),
];
