//! Parses lines into listings: the output of each `!htrace`, line by line.

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_model::rules::handle_slot;

use super::frame::FrameLine;
use super::grammar::{ListingKind, PromptCommands, Statement};
use super::handle::{self, HandleOutput};
use super::history::HandleHistory;
use super::output::{CommandStep, Output, assign_owners};
use super::tables::Entries;
use crate::operations::{Operation, OperationEntry};
use crate::text::{TextLine, tidy, without_marks};

/// Maximum number of frames read of a stack. Debuggers keep 16, the kernel a few more.
const MAX_FRAMES: usize = 1 << 10;

/// Length of an offset as debuggers print it, for 32 and 64 bits.
const OFFSET_DIGITS: [usize; 2] = ["0x00000000".len(), "0x0000000000000000".len()];

/// Reads lines in sequence. Offsets in `findings` are line numbers.
#[derive(Default)]
pub struct HtraceParser {
    entries: Entries,
    findings: Diagnostics,
    /// The entry being read.
    entry: Option<PartialEntry>,
    /// Entries of the listing so far, newest first; `None` for unreadable ones.
    listing: Vec<Option<OperationEntry>>,
    /// Number of entries that tracing holds, from the end of a listing.
    parsed: Option<u64>,
    /// Command at the last prompt.
    typed: Option<PromptCommands>,
    /// Whether the program may have run since the last step.
    running: CommandState,
    steps: Vec<CommandStep>,
    /// The `!handle` output being read, and that of earlier commands.
    handles: HandleOutput,
    handle_listings: Vec<handle::HandleListing>,
    /// Whether the program may have run since the last `!handle`.
    running_since_handles: CommandState,
    /// Kernel address of the process whose handles the kernel debugger lists.
    kernel_process: Option<u64>,
    /// What the last lines say about snapshots.
    taking: Taking,
    /// Length of the last offset in characters.
    offset_digits: Option<usize>,
    number: u64,
}

/// Where we are in the output of a snapshot command. `-enable`, `-snapshot` and `-diff` all report that a snapshot was
/// taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Taking {
    #[default]
    Nothing,
    /// Tracing starts. Its snapshot follows; nothing was traced before.
    Beginning,
    /// A snapshot was taken, and nothing has followed yet.
    Taken,
    /// A listing of handles opened since the previous snapshot, with the number of events since then if the text has
    /// it.
    Difference(Option<u64>),
}

/// Which commands were typed since the last step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CommandState {
    /// None seen.
    #[default]
    Unknown,
    /// Only commands that leave the program stopped.
    Stopped,
    MayRun,
}

impl CommandState {
    fn after(self, prompt: PromptCommands) -> Self {
        if prompt.runs || self == Self::MayRun { Self::MayRun } else { Self::Stopped }
    }
}

/// An entry being read.
struct PartialEntry {
    handle: u64,
    operation: Operation,
    thread: Option<u32>,
    process: Option<u32>,
    line: u64,
}

impl HtraceParser {
    /// Takes the next line.
    pub fn line(&mut self, line: &TextLine<'_>) {
        self.number = line.number;
        let was_in_listing = self.is_in_listing();
        self.read(line);
        if !was_in_listing && !self.is_in_listing() {
            return;
        }
        if line.is_long {
            self.find(WarningKind::LongLine);
        }
        if line.text.contains(char::REPLACEMENT_CHARACTER) {
            self.find(WarningKind::LossyText);
        }
    }

    fn is_in_listing(&self) -> bool {
        self.entry.is_some() || !self.listing.is_empty()
    }

    fn read(&mut self, line: &TextLine<'_>) {
        let text = tidy(&line.text);
        if !self.understands(&text, line)
            && let Some(text) = without_marks(&text)
        {
            self.understands(text, line);
        }
    }

    /// Takes a line; `text` is what the debugger printed. Returns whether the line is known.
    fn understands(&mut self, text: &str, line: &TextLine<'_>) -> bool {
        if self.entry.is_some()
            && let Some(frame) = FrameLine::parse(text)
        {
            self.frame(&frame, line);
            return true;
        }
        if handle::header(text).is_some() && self.handles.is_empty() {
            self.end_command();
        }
        if self.handles.line(text, &line.text, &mut self.entries.open) {
            return true;
        }
        let statement = Statement::parse(text);
        let is_known = statement.is_some();
        self.statement(statement, line);
        is_known
    }

    fn statement(&mut self, statement: Option<Statement<'_>>, line: &TextLine<'_>) {
        match statement {
            None => {}
            Some(Statement::Entry { handle, operation, rest }) => {
                self.end_entry();
                self.end_snapshot();
                let (thread, process, line) = (None, None, line.number);
                self.entry = Some(PartialEntry { handle, operation, thread, process, line });
                if let Some(Statement::Ids { thread, process }) = Statement::parse(rest) {
                    self.ids(thread, process);
                }
            }
            Some(Statement::Ids { thread, process }) if line.is_ended => self.ids(thread, process),
            Some(Statement::Ids { .. }) if self.entry.is_some() => {
                self.leave_out(WarningKind::CutLine);
            }
            Some(Statement::BadIds) if self.entry.is_some() => {
                self.leave_out(WarningKind::BadLine);
            }
            Some(Statement::Ids { .. } | Statement::BadIds) => {}
            Some(Statement::BadEntry) => {
                self.end_entry();
                self.leave_out(WarningKind::BadLine);
            }
            Some(Statement::Rule) => self.end_entry(),
            Some(Statement::Parsed(parsed)) => {
                self.end_entry();
                self.parsed = Some(parsed);
            }
            Some(Statement::Count { parsed, count }) => {
                self.parsed = parsed.or(self.parsed);
                self.end_listing(Some(count));
            }
            Some(Statement::KernelProcess(address)) => {
                self.end_listing(None);
                self.kernel_process = Some(address);
            }
            Some(Statement::Program { pid, path }) => self.entries.program(pid, path),
            Some(Statement::Enabled) => {
                self.end_command();
                self.step(Output::Enabled);
                self.taking = Taking::Beginning;
            }
            Some(Statement::Snapshot) => {
                let is_first = self.taking == Taking::Beginning;
                self.end_command();
                self.taking = if is_first { Taking::Nothing } else { Taking::Taken };
            }
            Some(Statement::SincePrevious { new }) => match self.taking {
                Taking::Difference(known) if !self.is_in_listing() => {
                    self.taking = Taking::Difference(known.or(new));
                }
                _ => {
                    self.end_listing(None);
                    self.taking = Taking::Difference(new);
                }
            },
            Some(Statement::Prompt(typed)) => {
                self.end_command();
                self.typed = Some(typed);
                self.running = self.running.after(typed);
                self.running_since_handles = self.running_since_handles.after(typed);
            }
            Some(Statement::Break) => self.end_command(),
        }
    }

    /// Adds the output of a command.
    fn step(&mut self, output: Output) {
        let may_have_run = self.running != CommandState::Stopped;
        if let Some(last) = self.handle_listings.last_mut()
            && last.steps == self.steps.len()
        {
            last.may_run = self.running_since_handles != CommandState::Stopped;
        }
        self.steps.push(CommandStep { output, may_have_run });
        // The program may run after the output of a command that resumes it.
        let runs = self.typed.is_some_and(|typed| typed.runs);
        self.running = if runs { CommandState::MayRun } else { CommandState::Unknown };
    }

    /// Ends the output of a command.
    fn end_command(&mut self) {
        self.end_listing(None);
        self.end_snapshot();
        self.taking = Taking::Nothing;
        self.end_handles();
    }

    /// Ends the output of `!handle`.
    fn end_handles(&mut self) {
        let mut output = std::mem::take(&mut self.handles);
        output.end_handle();
        if output.handles.is_empty() && output.counts.is_empty() {
            return;
        }
        let is_of_type = self.typed.is_some_and(|typed| typed.is_of_type);
        self.handle_listings.push(handle::HandleListing::new(output, is_of_type, self.steps.len()));
        self.running_since_handles = CommandState::Unknown;
    }

    /// Ends a snapshot that was not part of a difference.
    fn end_snapshot(&mut self) {
        if self.taking == Taking::Taken {
            self.step(Output::Snapshot);
            self.taking = Taking::Nothing;
        }
    }

    /// Returns the entries and findings after the last line.
    pub fn finish(mut self) -> (Entries, Diagnostics) {
        self.end_command();
        let outputs = self.steps.iter_mut().map(|step| &mut step.output);
        assign_owners(outputs, |process| self.entries.is_pid(process));
        let mut listings = std::mem::take(&mut self.handle_listings);
        handle::place(&mut listings, &self.steps, || self.entries.only_process());
        let steps = self.steps.len();
        self.entries.history = HandleHistory::new(std::mem::take(&mut self.steps));
        let known = self.entries.history.known();
        self.entries.has_all_open = handle::add(&listings, known, steps, &mut self.entries.open);
        self.findings.add(WarningKind::UncertainSnapshot, self.entries.history.uncertain, None);
        (self.entries, self.findings)
    }

    fn find(&mut self, kind: WarningKind) {
        self.findings.count(kind, Some(self.number));
    }

    /// Discards the current entry because of a malformed line.
    fn leave_out(&mut self, kind: WarningKind) {
        self.find(kind);
        self.entry = None;
        self.listing.push(None);
    }

    fn ids(&mut self, thread: Option<u32>, process: Option<u32>) {
        if let Some(entry) = &mut self.entry {
            entry.thread = entry.thread.or(thread);
            entry.process = entry.process.or(process);
        }
    }

    fn frame(&mut self, frame: &FrameLine<'_>, line: &TextLine<'_>) {
        let digits = frame.offset_digits;
        let is_usual = match self.offset_digits {
            Some(before) => before == digits,
            None => OFFSET_DIGITS.contains(&digits),
        };
        // A last line without line break may be cut off; then its offset has another length than before.
        if !line.is_ended && !is_usual {
            return self.find(WarningKind::CutLine);
        }
        self.offset_digits = Some(digits);
        if self.entries.depth() < MAX_FRAMES {
            self.entries.frame(frame);
        } else {
            self.find(WarningKind::DeepStack);
        }
    }

    /// Ends the current entry.
    fn end_entry(&mut self) {
        let Some(PartialEntry { handle, operation, thread, process, line }) = self.entry.take()
        else {
            return;
        };
        let (stack, addresses) = self.entries.take_stack();
        let find = |findings: &mut Diagnostics, kind| findings.count(kind, Some(line));
        if stack.is_none() {
            find(&mut self.findings, WarningKind::EntryWithoutStack);
        }
        if process.is_none() {
            find(&mut self.findings, WarningKind::EntryWithoutIds);
        }
        if operation == Operation::BadReference {
            find(&mut self.findings, WarningKind::BadReference);
        }
        let process = self.entries.process(process, self.kernel_process);
        let thread = thread.unwrap_or_default();
        let entry = OperationEntry {
            handle: handle_slot(handle),
            shown_handle: handle,
            operation,
            thread,
            process,
            caller: None,
            stack,
            addresses,
        };
        self.listing.push(Some(entry));
    }

    /// Ends a listing. `count` is the number of entries stated in its last line.
    fn end_listing(&mut self, count: Option<u64>) {
        self.end_entry();
        self.kernel_process = self.kernel_process.filter(|_| count.is_none());
        let read = self.listing.len() as u64;
        match count {
            None if read > 0 => self.find(WarningKind::CutListing),
            Some(count) if count != read => self.find(WarningKind::EntryCountMismatch),
            _ => {}
        }
        let parsed = self.parsed.take();
        let mut listing = std::mem::take(&mut self.listing);
        listing.reverse();
        if let Taking::Difference(new) = self.taking {
            let opens = listing.into_iter().flatten().collect();
            self.step(Output::Difference { new, opens });
            self.taking = Taking::Nothing;
        } else if !listing.is_empty() || parsed.is_some() {
            let is_cut = count != Some(read);
            let requested = self.typed.and_then(|typed| typed.listing);
            let is_all = match requested {
                Some(requested) => requested == ListingKind::All,
                None => parsed == Some(read) || has_several_handles(&listing),
            };
            if !is_all {
                let is_limited = requested == Some(ListingKind::Handle { is_limited: true });
                let entries = listing.into_iter().flatten().collect();
                self.step(Output::Some { entries, traced: parsed.filter(|_| !is_limited) });
            } else if !listing.is_empty() {
                self.step(Output::All { entries: listing, is_cut });
            }
        }
    }
}

/// Whether a listing has more than one handle value.
fn has_several_handles(listing: &[Option<OperationEntry>]) -> bool {
    let mut handles = listing.iter().flatten().map(|entry| entry.handle);
    let first = handles.next();
    handles.any(|handle| Some(handle) != first)
}
