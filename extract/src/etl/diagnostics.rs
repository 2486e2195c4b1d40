//! Diagnostics for lost, damaged and left-out data, counted by kind with the location of the first.

use std::collections::BTreeMap;

use handlescope_model::tables::Warning;

macro_rules! warning_kinds {
    ($($(#[$doc:meta])* $kind:ident => $text:literal, $one:literal, $many:literal,)+) => {
        /// Kinds of damage, loss and omission.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WarningKind {
            $($(#[$doc])* $kind,)+
        }

        impl WarningKind {
            /// All kinds, in the order they are stored.
            const ALL: &[Self] = &[$(Self::$kind,)+];

            /// Returns the text under which the kind is stored. These texts must not change.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)+
                }
            }

            /// Returns nouns for one finding and for several. The first is empty if findings are not counted.
            fn nouns(self) -> [&'static str; 2] {
                match self {
                    $(Self::$kind => [$one, $many],)+
                }
            }
        }
    };
}

warning_kinds! {
    /// The last buffer is cut; its complete events were read.
    TruncatedBuffer => "truncated buffer", "truncated buffer", "truncated buffers",
    /// A malformed buffer header; the reader continued at the next buffer.
    BadBuffer => "bad buffer", "buffer with an invalid header", "buffers with invalid headers",
    /// The rest of a compressed file after a malformed buffer header.
    UnreadableRest => "unreadable rest of file", "unreadable rest of a compressed file", "unreadable rests of compressed files",
    /// A buffer of zeros in a file that was not preallocated.
    EmptyBuffer => "empty buffer", "buffer of zeros", "buffers of zeros",
    /// A buffer that is in the file more than once; the copies were left out.
    DuplicateBuffer => "copy of a buffer left out", "duplicate buffer, skipped", "duplicate buffers, skipped",
    /// A compressed buffer that claims to hold more than a buffer of the session; it was left out.
    OversizedBuffer => "compressed buffer larger than the session's buffers, left out", "compressed buffer larger than the session's buffers, skipped", "compressed buffers larger than the session's buffers, skipped",
    /// A buffer type that holds no events this program reads.
    UnknownBufferType => "buffer of unknown type", "buffer of an unknown type", "buffers of unknown types",
    /// A compressed buffer that does not expand as it should; its complete events were read.
    BadCompression => "badly compressed buffer", "buffer that cannot be decompressed completely", "buffers that cannot be decompressed completely",
    /// An event that cannot be framed; the rest of its buffer was left out.
    BadEvent => "bad event, rest of buffer left out", "invalid event, the rest of its buffer skipped", "invalid events, the rest of their buffers skipped",
    /// An event older than one that was read before it.
    OutOfOrder => "event out of order", "event out of order", "events out of order",
    /// Buffers overlap in time so widely that they could not all be merged.
    MergeOverflow => "too many overlapping buffers", "overlap of too many buffers", "overlaps of too many buffers",
    /// Fewer buffers in the file than the session wrote.
    MissingBuffers => "missing buffers", "missing buffer", "missing buffers",
    /// The session was never closed, so its end is unknown.
    NotClosed => "session was not closed", "", "the session was never stopped, so its end time is unknown",
    /// A payload shorter than its event needs.
    ShortPayload => "undecodable event", "event too short to decode", "events too short to decode",
    /// A schema, map or manifest of events that lies about its size, is not well-formed, or one too many.
    BadMetadata => "metadata of events that cannot be read, left out", "unreadable event description, skipped", "unreadable event descriptions, skipped",
    /// Single events that were left out because there are too many.
    TooManyEvents => "event of a provider left out because there are too many", "provider event skipped, because there are too many", "provider events skipped, because there are too many",
    /// Events whose description came too late, so that they were not kept until it came.
    TooManyUndescribed => "event left out because its description came too late and there are too many", "event skipped, because there are too many and its description came late", "events skipped, because there are too many and their descriptions came late",
    /// Events that a window forgot before their description came.
    ForgottenUndescribed => "event forgotten before its description came, because the window is shorter", "event that left the window before its description came", "events that left the window before their descriptions came",
    /// Names of allocators beyond the limit.
    TooManyAllocators => "event of an allocator that is not named because there are too many", "event without the name of its allocator, because there are too many", "events without the names of their allocators, because there are too many",
    /// A buffer marked as having lost events.
    LossFlag => "buffer marked with loss", "buffer marked as having lost events", "buffers marked as having lost events",
    /// A record of lost events.
    LossRecord => "record of lost events", "record of lost events", "records of lost events",
    /// Stacks of a key whose frames were never written.
    UnresolvedStackKey => "stack key without frames", "stack key without frames", "stack keys without frames",
    /// A stack that belongs to a later event than any in the file.
    StackFromFuture => "stack of an unknown event", "stack of an unknown event", "stacks of unknown events",
    /// Events of pid 0.
    PidZero => "handle event of pid 0", "handle event with process id 0, skipped", "handle events with process id 0, skipped",
    /// An extract of ETWAnalyzer without the handle part.
    NoHandles => "no handle data in this extract", "", "no handle data in this extract",
    /// An extract of ETWAnalyzer without the stacks part, though it has handles.
    NoStacks => "no stacks in this extract", "", "no stacks in this extract",
    /// An extract of ETWAnalyzer without the start of the session.
    NoStart => "no session start in this extract, so that absolute times are unknown", "", "no session start in this extract, so absolute times are unknown",
    /// Events of a process that is not known, with no System process to take them.
    UnknownProcess => "handle event of an unknown process", "handle event of an unknown process", "handle events of unknown processes",
    /// Processes whose start is missing, after another one with their pid whose end is missing, where no event shows when.
    DoubtfulPid => "process id given again while events are missing, its handles may be of either process", "process id reused while events are missing, so its handles may belong to either process", "process ids reused while events are missing, so their handles may belong to either process",
    /// Events with a stack number that is not in the extract.
    UnknownStack => "handle event with an unknown stack", "handle event with an unknown stack", "handle events with unknown stacks",
    /// Objects that were left out because row numbers end.
    TooMany => "object left out because there are too many events", "object skipped, because there are too many events", "objects skipped, because there are too many events",
    /// Bytes of an extract that are not UTF-8, and halves of surrogate pairs.
    NoText => "no character in a text of this extract, replaced by U+FFFD", "invalid character in a text of this extract, replaced by U+FFFD", "invalid characters in texts of this extract, replaced by U+FFFD",
    /// An extract that another version of this program wrote.
    OtherVersion => "written by another version of handlescope; what ETWAnalyzer does not support is left out; extract the trace again", "", "written by another version of handlescope; what ETWAnalyzer does not support is left out; extract the trace again",
    /// A reference to a handle that was not open, in text of `!htrace`.
    BadReference => "reference to an invalid handle (BAD REF); .dump Stack has its stack", "reference to an invalid handle (BAD REF); .dump Stack has its stack", "references to invalid handles (BAD REF); .dump Stack has their stacks",
    /// An entry of `!htrace` without frames.
    EntryWithoutStack => "entry of !htrace without a stack", "!htrace entry without a stack", "!htrace entries without a stack",
    /// An entry of `!htrace` without thread and process; the kernel debugger prints none.
    EntryWithoutIds => "entry of !htrace without thread and process", "!htrace entry without thread and process", "!htrace entries without thread and process",
    /// A stack in text with more frames than are read.
    DeepStack => "frame of a stack of more than 1024, left out", "stack frame beyond the limit of 1024, skipped", "stack frames beyond the limit of 1024, skipped",
    /// A malformed first line of an entry.
    BadLine => "entry of !htrace that cannot be read, left out", "unreadable !htrace entry, skipped", "unreadable !htrace entries, skipped",
    /// The last line of a text that looks cut.
    CutLine => "line cut at the end of the text, left out", "line cut off at the end of the text, skipped", "lines cut off at the end of the text, skipped",
    /// A listing of `!htrace` without its last line.
    CutListing => "output of !htrace without its last line, perhaps cut", "!htrace output without its last line, perhaps cut off", "!htrace outputs without their last lines, perhaps cut off",
    /// A listing of `!htrace` whose last line counts other entries.
    EntryCountMismatch => "output of !htrace with another number of entries than it says", "!htrace output with another number of entries than its last line says", "!htrace outputs with another number of entries than their last lines say",
    /// A line in a listing that is too long.
    LongLine => "line longer than 64 KiB, its rest left out", "line longer than 64 KiB, its rest skipped", "lines longer than 64 KiB, their rest skipped",
    /// Bytes in a text that are not characters.
    LossyText => "line with bytes that are not characters, replaced by U+FFFD", "line with invalid characters, replaced by U+FFFD", "lines with invalid characters, replaced by U+FFFD",
    /// A snapshot of `!htrace` that the text allows at several places.
    UncertainSnapshot => "snapshot of !htrace that may stand at several places, the last of which was taken", "!htrace snapshot with several possible places; the last was taken", "!htrace snapshots with several possible places; the last was taken",
    /// A handle value that was opened twice in a row.
    ReopenedHandle => "handle value opened again without a close, so that the close is missing", "handle value opened again without a close, so a close is missing", "handle values opened again without a close, so closes are missing",
    /// A handle opened and not closed that the list of open handles in a dump lacks.
    OpenNotListed => "handle opened that the dump does not list as open, so that the close is missing", "opened handle that the dump does not list as open, so its close is missing", "opened handles that the dump does not list as open, so their closes are missing",
    /// A handle closed at last that the list of open handles in a dump has.
    ListedAfterClose => "handle that the dump lists as open after its close, so that an open is missing", "handle that the dump lists as open after its close, so an open is missing", "handles that the dump lists as open after their closes, so opens are missing",
    /// A line in a table of handles that is no row of it.
    BadListLine => "line of a table of handles that cannot be read, left out", "unreadable line in the table of handles, skipped", "unreadable lines in the table of handles, skipped",
    /// A handle of a process that a list has twice.
    ListedAgain => "handle listed again, left out", "handle listed again, skipped", "handles listed again, skipped",
    /// A summary of handles by type whose last line counts others.
    ListCountMismatch => "summary of handles with another number than it says", "summary with another number of handles than its last line says", "summaries with another number of handles than their last lines say",
    /// Handles that a summary counts beyond the limit.
    TooManyListed => "handle beyond the limit of a summary, left out", "handle of a summary beyond the limit of 1048576, skipped", "handles of a summary beyond the limit of 1048576, skipped",
    /// Operations of a dump whose order nothing decides.
    UndecidedOrder => "order of the handle operations in a dump not decided, newest first assumed", "", "the dump does not show the order of its handle operations; they are read as !htrace prints them, newest first",
    /// A stream or a directory of a dump that ends after the file.
    CutStream => "stream of a dump cut at the end of the file", "stream of the dump cut off at the end of the file", "streams of the dump cut off at the end of the file",
    /// Entries that a stream of a dump claims and does not have, or that are too many.
    MissingEntries => "entry of a dump that is not in its stream", "entry that a stream of the dump counts but does not have", "entries that a stream of the dump counts but does not have",
    /// A handle or an operation in a dump that cannot be read.
    BadDumpEntry => "entry of a dump that cannot be read, left out", "unreadable handle or operation in the dump, skipped", "unreadable handles or operations in the dump, skipped",
    /// The name of a type or an object in a dump that cannot be read.
    BadDumpName => "name in a dump that cannot be read, left out", "unreadable name of a type or object in the dump, skipped", "unreadable names of types or objects in the dump, skipped",
    /// Object information whose chain leads out of the dump, or back to itself.
    BadObjectInformation => "object information in a dump whose chain does not end", "broken or circular chain of object information in the dump", "broken or circular chains of object information in the dump",
    /// A module in a dump, or the identity of its PDB, that cannot be read.
    BadDumpModule => "module of a dump that cannot be read, left out", "unreadable module or PDB identity in the dump, skipped", "unreadable modules or PDB identities in the dump, skipped",
    /// A close whose object was never seen.
    CloseWithoutObject => "close of a handle opened before the trace", "close of a handle opened before the trace", "closes of handles opened before the trace",
    /// A close that its process did not open, of a value that several other processes have for the object.
    DoubtfulClose => "close by a thread of another process, of one of several handles", "close by a thread of another process that may belong to several handles", "closes by threads of other processes that may belong to several handles",
    /// A duplicate for a child process that does not start in the trace.
    DuplicateWithoutChild => "duplicate for a child process that does not start", "duplicate for a child process that does not start in the trace", "duplicates for child processes that do not start in the trace",
    /// A delete whose object was never seen or already complete.
    DeleteWithoutObject => "delete of an unknown object", "delete of an unknown object", "deletes of unknown objects",
    /// A reference change whose object was never seen or already complete.
    ReferenceWithoutObject => "reference change of an unknown object", "reference change of an unknown object", "reference changes of unknown objects",
    /// An unmap without its map.
    UnmapWithoutMap => "unmap of a view mapped before the trace", "unmap of a view mapped before the trace", "unmaps of views mapped before the trace",
    /// Image identity records without their image event.
    IdentityWithoutImage => "image identity without image", "image identity without an image event", "image identities without image events",
}

/// Kinds that mean events are missing. Archives contain their texts, which must not change.
const LOSSES: [WarningKind; 24] = [
    WarningKind::TruncatedBuffer,
    WarningKind::BadBuffer,
    WarningKind::UnreadableRest,
    WarningKind::OversizedBuffer,
    WarningKind::UnknownBufferType,
    WarningKind::BadCompression,
    WarningKind::BadEvent,
    WarningKind::MergeOverflow,
    WarningKind::MissingBuffers,
    WarningKind::LossFlag,
    WarningKind::LossRecord,
    WarningKind::UnknownProcess,
    WarningKind::DoubtfulPid,
    WarningKind::TooMany,
    WarningKind::BadLine,
    WarningKind::CutLine,
    WarningKind::CutListing,
    WarningKind::EntryCountMismatch,
    WarningKind::BadListLine,
    WarningKind::ListCountMismatch,
    WarningKind::TooManyListed,
    WarningKind::CutStream,
    WarningKind::MissingEntries,
    WarningKind::BadDumpEntry,
];

/// Whether a stored warning kind means that events are missing.
pub fn is_loss(kind: &str) -> bool {
    LOSSES.iter().any(|loss| loss.text() == kind)
}

/// Kinds that mean provider events are missing that may acquire and release resources. Their texts must not change
/// either.
const LOSSES_OF_PROVIDERS: [WarningKind; 2] =
    [WarningKind::TooManyUndescribed, WarningKind::ForgottenUndescribed];

/// Whether a stored warning kind means that provider events are missing that may acquire and release resources.
pub fn is_loss_of_provider(kind: &str) -> bool {
    let rest = |loss: &WarningKind| kind.strip_prefix(loss.text());
    LOSSES_OF_PROVIDERS.iter().any(|loss| rest(loss).is_some_and(|rest| rest.starts_with(':')))
}

/// Returns nouns for one and for several findings of a stored warning kind, and the rest of the kind, which names a
/// provider. The first noun is empty if findings are not counted. `None` for a kind of another version.
pub fn finding_nouns(kind: &str) -> Option<([&'static str; 2], &str)> {
    WarningKind::ALL.iter().find_map(|known| {
        let rest = kind.strip_prefix(known.text())?;
        (rest.is_empty() || rest.starts_with(": ")).then_some((known.nouns(), rest))
    })
}

/// Number of occurrences, and the location of the first.
#[derive(Debug, Clone, Copy)]
struct Finding {
    count: u64,
    first_offset: Option<u64>,
}

/// Findings of a trace that are worth a warning.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    findings: BTreeMap<WarningKind, Finding>,
    /// Findings about individual providers.
    of_providers: BTreeMap<(WarningKind, String), u64>,
}

impl Diagnostics {
    /// Counts a single finding.
    pub fn count(&mut self, kind: WarningKind, offset: Option<u64>) {
        self.add(kind, 1, offset);
    }

    /// Counts several findings at once; zero counts as none.
    pub fn add(&mut self, kind: WarningKind, count: u64, offset: Option<u64>) {
        if count == 0 {
            return;
        }
        let finding =
            self.findings.entry(kind).or_insert(Finding { count: 0, first_offset: offset });
        finding.count += count;
        finding.first_offset = match (finding.first_offset, offset) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Counts several events of a provider.
    pub fn add_of(&mut self, kind: WarningKind, provider: &str, count: u64) {
        *self.of_providers.entry((kind, provider.to_owned())).or_default() += count;
    }

    /// Adds the findings of another collection.
    pub fn merge(&mut self, further: &Self) {
        for ((kind, provider), count) in &further.of_providers {
            self.add_of(*kind, provider, *count);
        }
        for (kind, finding) in &further.findings {
            self.add(*kind, finding.count, finding.first_offset);
        }
    }

    /// Returns the findings as table rows, in a fixed order of kinds.
    pub fn warnings(&self) -> Vec<Warning> {
        self.findings
            .iter()
            .map(|(kind, finding)| Warning {
                kind: kind.text().to_owned(),
                count: finding.count,
                first_offset: finding.first_offset,
                first_line: None,
            })
            .chain(self.of_providers.iter().map(|((kind, provider), count)| Warning {
                kind: format!("{}: {provider}", kind.text()),
                count: *count,
                first_offset: None,
                first_line: None,
            }))
            .collect()
    }

    /// Returns the number of occurrences of a kind.
    pub fn of(&self, kind: WarningKind) -> u64 {
        self.findings.get(&kind).map_or(0, |finding| finding.count)
    }
}
