//! The part of documents about the traces of an answer, for handles or allocations.

mod stack;

use std::rc::Rc;

use handlescope_model::StackIdx;
use serde::{Serialize, Serializer};

pub use self::stack::{StackJson, frame_columns};
use crate::table::{ColumnDeclaration, Columns};
use crate::time::utc;
use handlescope_query::{About, ExitStacks, Frames, Totals, TraceAnswer, TrimmedStacks};
use handlescope_session::trace::Caveat;

/// A trace in a document, for handles or allocations.
pub struct TraceJson<'a> {
    summary: TraceSummary<'a>,
    pub numbers: StackOffset,
    /// The stacks that the answer refers to.
    stacks: Vec<StackIdx>,
    frames: Option<&'a Frames<'a>>,
    trims: Option<&'a TrimmedStacks>,
}

/// The offset of a trace's stacks in a document. It is added to a stack's row, so that stacks of several traces get
/// different numbers.
#[derive(Debug, Clone, Copy)]
pub struct StackOffset(u64);

impl StackOffset {
    pub fn of(self, stack: StackIdx) -> u64 {
        self.0 + u64::from(stack.0)
    }
}

/// The traces of a document.
pub type DocumentTraces<'a> = Rc<[TraceJson<'a>]>;

/// Returns the traces of some answers, with the numbers of their stacks.
pub fn traces<'a, 't: 'a, T: TraceAnswer<'t> + 'a>(
    answers: impl IntoIterator<Item = &'a T>,
) -> DocumentTraces<'a> {
    let mut first_stack = 0;
    let traces = answers.into_iter().map(|answer| {
        let (about, (totals, exit_stacks)) = (answer.about(), answer.totals().unzip());
        let numbers = StackOffset(first_stack);
        first_stack += about.stack_count as u64;
        TraceJson {
            summary: TraceSummary { about, totals, exit_stacks: exit_stacks.flatten() },
            numbers,
            stacks: answer.stacks(),
            frames: answer.frames(),
            trims: answer.trims(),
        }
    });
    traces.collect()
}

impl<'a> TraceJson<'a> {
    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'a>)> {
        let TraceJson { numbers, frames, trims, .. } = *self;
        let bases = &self.summary.about.bases;
        self.stacks.iter().map(move |&stack| {
            (numbers.of(stack).to_string(), StackJson { frames, bases, stack, trims })
        })
    }
}

/// The stacks of traces, by number.
struct StacksJson<'a>(DocumentTraces<'a>);

impl Serialize for StacksJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().flat_map(TraceJson::stacks))
    }
}

/// A document about traces, and its other contents.
pub struct OfTraces<'a, T> {
    pub traces: DocumentTraces<'a>,
    pub rest: T,
}

impl<'a, T: 'a> Columns<'a, OfTraces<'a, T>> {
    /// Adds the traces.
    pub fn files(&mut self, meaning: &'static str) -> &mut ColumnDeclaration<'a, OfTraces<'a, T>> {
        self.member("files", meaning, |of| {
            file_columns().parts_of(of.traces.iter().map(|trace| trace.summary).collect())
        })
        .for_programs()
    }

    /// Adds the stacks that the answers refer to, if they are shown.
    pub fn stacks(&mut self, meaning: &'static str, are_shown: impl Fn(&T) -> bool + 'a) {
        self.member_if("stacks", meaning, move |of| {
            are_shown(&of.rest).then(|| StacksJson(DocumentTraces::clone(&of.traces)))
        });
    }

    /// Adds the caveats of the answers, and the reason if nothing matches.
    pub fn caveats(&mut self, meaning: &'static str, no_match: &'static str) {
        let caveats = self.member("caveats", meaning, |of| {
            let caveats = of.traces.iter().flat_map(|trace| {
                let about = trace.summary.about;
                about.caveats.iter().map(|caveat| (about.index, caveat))
            });
            caveat_columns().parts_of(caveats.collect())
        });
        caveats.for_programs();
        self.no_match(no_match, |of| {
            let mut abouts = of.traces.iter().map(|trace| trace.summary.about);
            abouts.find_map(|about| Some((about.index, about.no_match.as_ref()?)))
        });
    }
}

/// A trace, and the sums over what passed in it, for an answer about handles.
#[derive(Clone, Copy)]
pub struct TraceSummary<'a> {
    about: &'a About<'a>,
    totals: Option<Totals>,
    exit_stacks: Option<ExitStacks>,
}

/// Declares the facts about a trace.
pub fn header_columns<'a>() -> Columns<'a, TraceSummary<'a>> {
    const SESSION: &str =
        "start and end of the recording; null, like all times, in a trace without a clock";
    const LOST: &str = "what the recording lost; if closes were lost, leaks are doubtful";
    let mut columns = Columns::<TraceSummary<'a>>::default();
    columns.member("file", "index", |trace| trace.about.index);
    columns.member("path", "the file name as given when it was loaded", |trace| {
        trace.about.path.to_string_lossy().into_owned()
    });
    columns
        .member("session_start_utc", SESSION, |trace| trace.about.info.start_filetime().map(utc));
    columns
        .member("session_end_utc", SESSION, |trace| trace.about.info.session_end_filetime.map(utc));
    columns.member("events_lost", LOST, |trace| Some(trace.about.info.losses()?.0));
    columns.member("buffers_lost", LOST, |trace| Some(trace.about.info.losses()?.1));
    columns
}

/// Declares the facts about a trace, and the sums over what passed in it.
pub fn file_columns<'a>() -> Columns<'a, TraceSummary<'a>> {
    let mut columns = header_columns();
    columns.member_if(
        "totals",
        "sums over the objects and events of this trace that passed, see below",
        |trace| Some(totals_columns().part(trace.totals?)),
    );
    columns.part_if(
        "exit_stacks",
        "only with `-LeakAtExit` and function names (`-ShowStack` or a stack filter): what the \
         stacks of closes at process exit prove:",
        exit_stack_columns(),
        |trace| trace.exit_stacks,
    );
    columns
}

fn exit_stack_columns<'a>() -> Columns<'a, ExitStacks> {
    let mut columns = Columns::<ExitStacks>::default();
    columns.member("closes", "all such closes of the objects that passed", |stacks| stacks.closes);
    columns.member(
        "confirmed",
        "those with `ExSweepHandleTable`, `ObKillProcess` or `PspExitProcess` on the stack",
        |stacks| stacks.confirmed,
    );
    columns.member(
        "doubtful",
        "those before the process end whose kernel frames all have names, but none of these",
        |stacks| stacks.doubtful,
    );
    columns
}

/// Declares the sums over the objects and events that passed.
pub fn totals_columns<'a>() -> Columns<'a, Totals> {
    const OBJECTS: &str = "objects with a creation, and with an end, after the filters";
    const HANDLES: &str = "handle events";
    const VIEWS: &str = "views mapped and unmapped";
    const BYTES: &str = "their bytes";
    let mut columns = Columns::<Totals>::default();
    columns.member("objects_created", OBJECTS, |totals| totals.objects_created).for_programs();
    columns.member("objects_destroyed", OBJECTS, |totals| totals.objects_destroyed).for_programs();
    columns.member("handles_created", HANDLES, |totals| totals.handles_created);
    columns.member("handles_closed", HANDLES, |totals| totals.handles_closed).for_programs();
    columns.member("handles_duplicated", HANDLES, |totals| totals.handles_duplicated);
    columns
        .member("ref_changes", "reference and dereference events", |totals| totals.ref_changes)
        .for_programs();
    columns.member("map_count", VIEWS, |totals| totals.map_count).for_programs();
    columns.member("unmap_count", VIEWS, |totals| totals.unmap_count).for_programs();
    columns.member("map_size", BYTES, |totals| totals.map_size).for_programs();
    columns.member("unmap_size", BYTES, |totals| totals.unmap_size).for_programs();
    columns.member("leaked_handles", "creates, duplicates and maps with `leaked` true", |totals| {
        totals.leaked_handles
    });
    columns.member("leaked_views", "the maps among these", |totals| totals.leaked_views);
    columns.member(
        "closed_at_exit",
        "creates, duplicates and maps with `closed_at_exit` true; with `-Leak`, which omits them, \
         those that `-LeakAtExit` would keep",
        |totals| totals.closed_at_exit,
    );
    columns.member(
        "closed_unseen",
        "creates, duplicates and maps with `closed_unseen` not null; with `-Leak` and \
         `-LeakAtExit`, which omit them, those that would be listed otherwise",
        |totals| totals.closed_unseen,
    );
    columns
}

/// A caveat and the number of its file.
pub type CaveatRow<'a> = (usize, &'a Caveat);

/// Declares the columns of a caveat.
pub fn caveat_columns<'a>() -> Columns<'a, CaveatRow<'a>> {
    let mut columns = Columns::<CaveatRow<'a>>::default();
    columns.member("file", "the file, as in `files.file`", |(file, _)| *file);
    columns.member(
        "kind",
        "`\"no_handle_events\"`, `\"no_clock\"` (text of `!htrace`, dumps: \
         [other-sources.md](other-sources.md)), `\"coarse_clock\"` (the system clock; events with \
         equal timestamps are ordered by what they do), `\"lost_while_recording\"`, \
         `\"missing_in_file\"`, `\"closed_unseen\"` (handles and views that other events show to be \
         closed, although the close is missing), `\"no_end_rundown\"`, `\"part_of_session\"` (a \
         ring overwrote older events), `\"exits_doubtful\"` (see `exit_stacks.doubtful`), \
         `\"builds_differ\"` (comparisons only: frames of modules with different builds and without \
         names are compared by module), `\"stacks_missing\"` (stacks of creates are missing, if \
         stacks are shown or filtered), `\"symbols_missing\"` (for a stack filter), \
         `\"methods_unnamed\"` (processes of .NET recorded without names of methods), \
         `\"programs_differ\"` (comparisons of dumps only: they are of two programs); only in \
         `.dump Resource`: `\"no_resource_events\"` (nothing requested was recorded), \
         `\"older_unknown\"` (a process is older than the trace), `\"processes_unknown\"` (of \
         allocators)",
        |(_, caveat)| caveat.kind,
    );
    columns.member("text", "the same in words, as on standard error", |(_, caveat)| {
        caveat.text.as_str()
    });
    columns
}
