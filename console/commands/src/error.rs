//! Errors of commands.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use handlescope_extract::ExtractError;
use handlescope_model::{ArchiveError, Reason, Untrusted, remedy};
use handlescope_record::SessionError;
use handlescope_sources::SaveError;
use handlescope_symbols::SymbolSourcesError;
use thiserror::Error;

use handlescope_fleet::FleetError;
use handlescope_fleet::dataset::DatasetError;
use handlescope_query::{NoMatch, QueryError};
use handlescope_render::{self as render, InOptions, OutputError};
use handlescope_session::cancel::Cancelled;
use handlescope_session::filter::FilterError;
use handlescope_session::grammar::ParseError;
use handlescope_session::paths::{ExpandError, OverwriteError, RootError};
use handlescope_session::settings::{AliasError, ConfigError};
use handlescope_session::suggest::followed_by;
use handlescope_session::trace::{LoadError, MappingsError, NoFile};
use handlescope_session::values::{CountedNoun, SuspectId};
use handlescope_sql::{SqlError, ViewError};

/// Why a command could not be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A line that cannot be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// No loaded trace to query.
    #[error(transparent)]
    NoFile(#[from] NoFile),
    /// Files that could not be loaded.
    #[error("{}", lines(.errors))]
    Load { errors: Vec<LoadError> },
    /// A question about a dataset that has no answer.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// A dataset together with something else.
    #[error("{}: a dataset is loaded alone; name nothing else, and use .load", Untrusted(.folder))]
    DatasetBeside { folder: PathBuf },
    /// A trace without an extract in the dataset.
    #[error("{trace}: the dataset has no extract of this trace; load the trace itself")]
    NoExtract { trace: String },
    /// Options about symbols that give no valid symbol path.
    #[error(transparent)]
    Symbols(#[from] SymbolSourcesError),
    /// A configuration file that cannot be read or written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An invalid alias.
    #[error(transparent)]
    Alias(#[from] AliasError),
    /// Invalid choice of events that acquire and release.
    #[error(transparent)]
    Mappings(#[from] MappingsError),
    /// An archive that cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file of `.sql` that cannot be read.
    #[error(
        "{}: the query cannot be read: {}; name a UTF-8 file with SQL",
        Untrusted(.path), Reason(.source)
    )]
    QueryFile { path: PathBuf, source: io::Error },
    /// A query of `.sql` that has no answer.
    #[error("{}", with_advice(.0))]
    Sql(#[from] SqlError),
    /// An interruption by Ctrl-C.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// `.unload` of something that is not loaded.
    #[error("'{}' is not loaded; .list shows what is", Untrusted(.name))]
    NotLoaded { name: String },
    /// `.unload` of a name that several loaded files have.
    #[error("'{0}' could be {1}; use a path instead", Untrusted(.name), Untrusted(.paths))]
    SeveralLoaded {
        name: String,
        /// Paths, joined by commas.
        paths: String,
    },
    /// `-events` or `-resource` name something that no trace has. The extracts were written anyway.
    #[error("{option}: no trace has an {item}{}; the extract is without it", Untrusted(.hint))]
    NotInTraces {
        option: &'static str,
        item: String,
        /// Available names.
        hint: String,
    },
    /// `.converttime` of something that is not a time.
    #[error(
        "'{}' is not a valid time; write 2024-05-10 12:46:37.5, 12:46:37, an ISO time, or \
         seconds like 13.123s",
        Untrusted(.text)
    )]
    NoTime { text: String },
    /// `.snapshot` of a time that no trace has.
    #[error(
        "'{}' is outside every loaded recording; .list shows how long they are",
        Untrusted(.text)
    )]
    NotRecorded { text: String },
    /// `.snapshot` with a time as its name.
    #[error("'{}' is a time; put a name in front of it: .snapshot NAME TIME", Untrusted(.name))]
    SnapshotName { name: String },
    /// `.diff` with something that is not a point in time.
    #[error(
        "'{}' is neither a snapshot of {} nor a time in it, like 13.123s; .snapshot lists the snapshots",
        Untrusted(.point), Untrusted(.path)
    )]
    NoPoint { point: String, path: PathBuf },
    /// `.diff` with a first point that is not before the second.
    #[error("'{}' is not before '{}'; name the earlier point first", Untrusted(.from), Untrusted(.to))]
    PointOrder { from: String, to: String },
    /// `.diff` of more than two traces.
    #[error(
        "{files} traces are loaded, but .diff compares two; choose them with -fd, or name a point \
         in time"
    )]
    CompareSeveral { files: usize },
    /// `.diff -Format` with one trace.
    #[error("-Format needs two traces to compare; .why -Format has the findings of one")]
    FindingsOfOne,
    /// `.diff` of a trace without information about handles.
    #[error(
        "{}: has no handle events, so nothing can be compared{}",
        Untrusted(.path),
        .option.as_ref().map_or_else(String::new, |option| format!("; {option} compares its allocations"))
    )]
    NothingToCompare {
        path: PathBuf,
        /// The option that compares its allocations, if it has any.
        option: Option<String>,
    },
    /// `.diff` of two traces with a filter that nothing in them passes.
    #[error("nothing was compared: {}", InOptions(.no_match))]
    NothingChosen { no_match: NoMatch },
    /// `.diff -Kind` of a trace without information about such allocations.
    #[error("{}: has no events of such allocations, so nothing can be compared", Untrusted(.path))]
    NoAllocations { path: PathBuf },
    /// A dataset that cannot be read or changed.
    #[error(transparent)]
    Dataset(DatasetError),
    /// Traces that could not be added to a dataset; each was reported separately.
    #[error("{failed} of {files} traces could not be added")]
    NotAdded { failed: usize, files: usize },
    /// A dataset with files that are not the ones that were written; each was reported separately.
    #[error("the dataset has {}", CountedNoun(*.problems, "problem"))]
    DatasetDiffers { problems: u64 },
    /// Traces that could not be extracted; each was reported separately.
    #[error("{failed} of {files} traces could not be extracted")]
    NotExtracted { failed: usize, files: usize },
    /// `.redact` of a trace that cannot be read.
    #[error(transparent)]
    Redact(ExtractError),
    /// A file that a command writes in addition to its answer cannot be written.
    #[error(
        "{}: cannot be written: {}; {}{instead}",
        Untrusted(.path), Reason(.source), remedy(.source)
    )]
    Unwritten {
        path: PathBuf,
        source: io::Error,
        /// Hint at what to name instead.
        instead: &'static str,
    },
    /// `.redact` of a trace into itself.
    #[error("{}: is the trace itself; choose another name with -o", Untrusted(.path))]
    RedactInPlace { path: PathBuf },
    /// `.symbolize` of an extract with a file that was replaced since it was loaded.
    #[error("{}: was replaced since it was loaded, so no names were stored; load it again", Untrusted(.path))]
    ExtractReplaced { path: PathBuf },
    /// A query that cannot be carried out.
    #[error(transparent)]
    Query(QueryError),
    /// `-Suspect` with an id that no trace has.
    #[error(
        "no suspect among {what} has the id {id}; .dump Why lists the ids, and an id made with \
         symbols needs the same symbols"
    )]
    NoSuspect {
        id: SuspectId,
        /// What was searched, in words: handles, allocations, or both.
        what: &'static str,
    },
    /// A filter by time in a trace without times.
    #[error(
        "{}: has no clock, so {option} cannot choose by time; leave it out, or choose other traces with -fd",
        Untrusted(.path)
    )]
    NotByTime { path: PathBuf, option: &'static str },
    /// A folder that cannot become the current one.
    #[error("{}: cannot change to this folder: {}", Untrusted(.folder), Reason(.source))]
    Folder { folder: PathBuf, source: io::Error },
    /// A folder that cannot be listed.
    #[error(transparent)]
    List(#[from] ExpandError),
    /// A root of the MCP server that is not a folder.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A recording on a system where this program cannot record.
    #[error("handlescope {command} {reason}. On Windows, these record the same:\n{instead}")]
    NotHere {
        command: &'static str,
        reason: String,
        /// Command lines, one per line.
        instead: String,
    },
    /// A session that disappeared while it recorded.
    #[error("the recording was lost: {0}")]
    Session(#[from] SessionError),
    /// A session that does not say what its clock is.
    #[error("the session does not say which clock its times use, so nothing can be shown")]
    NoClock,
    /// A trace that cannot be replayed or a window that cannot be saved.
    #[error(transparent)]
    Replay(ExtractError),
    /// A condition that cannot be watched for.
    #[error("--stop-when: {0}")]
    Condition(#[from] FilterError),
    /// A recorded trace that cannot be extracted.
    #[error(transparent)]
    Recorded(#[from] LoadError),
    /// A file that this program did not write, where a trace or a profile for WPR is to be written.
    #[error(
        "{}: already exists and was not written by handlescope; use --force to replace it, or \
         name another file",
        Untrusted(.path)
    )]
    Exists { path: PathBuf },
    /// An MCP server that cannot work.
    #[error("the MCP server failed: {reason}; check what the client sends")]
    Server { reason: String },
    /// A terminal that cannot be used for typing.
    #[error("cannot read from the terminal: {}; use -c COMMAND, or pipe commands in", Reason(.source))]
    Terminal { source: io::Error },
    /// An answer that cannot be written.
    #[error(transparent)]
    Answer(OutputError),
    /// A file that may not be replaced.
    #[error(transparent)]
    Overwrite(#[from] OverwriteError),
    /// `.save` of several traces, which would need one archive each.
    #[error("{files} traces are loaded, but an archive holds one; choose it with -fd")]
    SaveSeveral { files: usize },
    /// `.save` with a name that is not an archive's.
    #[error("{}: the file name of an archive must end with .json7z", Untrusted(.path))]
    SaveName { path: PathBuf },
    /// A picture with a name that does not give its format.
    #[error("{}: the extension selects the format; use {endings}", Untrusted(.path))]
    PictureName { path: PathBuf, endings: &'static str },
    /// A picture over time of a trace without times.
    #[error("{}: has no clock, so nothing can be shown over time; choose other traces with -fd", Untrusted(.path))]
    NoTimes { path: PathBuf },
    /// A picture of nothing.
    #[error("no picture: {reason}")]
    EmptyPicture { reason: &'static str },
    /// An archive that cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// `| PROGRAM` in a script that may not run programs.
    #[error(
        "| {}: a script runs programs only with --pipes; > FILE writes the answer into a file",
        Untrusted(.program)
    )]
    NoPrograms { program: String },
    /// `| PROGRAM` on a system without its shell.
    #[error("| {}: cannot be started: {}; > FILE writes the answer into a file", Untrusted(.program), Reason(.source))]
    NoShell { program: String, source: io::Error },
    /// A program that took an answer and failed.
    #[error("| {}: ended with {}", Untrusted(.program), .status)]
    Program { program: String, status: ExitStatus },
    /// A command that panicked. The session continues.
    #[error(
        "this is a bug in handlescope ({location}: {message}); please report it with the command line"
    )]
    Panicked {
        message: String,
        /// `file:line:column`
        location: String,
    },
    /// A mapped file lost pages while the command read it.
    #[error(
        "a file became shorter or unreadable while the command read it, so the answer may be wrong; \
         run it again when nothing writes to the file"
    )]
    FileChanged,
    /// The output cannot be written.
    #[error("cannot write the output: {}", Reason(.source))]
    Output {
        #[from]
        source: io::Error,
    },
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> CommandError {
        match error {
            OutputError::Output(source) => source.into(),
            OutputError::Cancelled(cancelled) => cancelled.into(),
            OutputError::Overwrite(refused) => refused.into(),
            error => CommandError::Answer(error),
        }
    }
}

impl From<QueryError> for CommandError {
    fn from(error: QueryError) -> CommandError {
        match error {
            QueryError::NoClock { path, criterion } => {
                CommandError::NotByTime { path, option: render::option(criterion) }
            }
            QueryError::NoSuspect { id, what } => CommandError::NoSuspect { id, what },
            error => CommandError::Query(error),
        }
    }
}

impl From<DatasetError> for CommandError {
    fn from(error: DatasetError) -> CommandError {
        match error {
            DatasetError::Query(error) => error.into(),
            DatasetError::Cancelled(error) => error.into(),
            error => CommandError::Dataset(error),
        }
    }
}

impl CommandError {
    /// Whether the user pressed Ctrl-C, no matter where it was noticed.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            CommandError::Cancelled(_)
                | CommandError::Query(QueryError::Cancelled(_))
                | CommandError::Fleet(FleetError::Cancelled(_))
                | CommandError::Sql(
                    SqlError::Cancelled(_) | SqlError::View(ViewError::Cancelled(_))
                )
                | CommandError::Save(SaveError::Cancelled(_))
                | CommandError::Redact(ExtractError::Cancelled(_))
        )
    }

    /// Turns a refusal to replace a file into an error that names the option of the command line.
    pub fn from_command_line(error: OverwriteError) -> CommandError {
        match error {
            OverwriteError::Exists { path } => CommandError::Exists { path },
            error => error.into(),
        }
    }

    /// Whether the reader of the output has gone, which is not a failure.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CommandError::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

fn lines(errors: &[LoadError]) -> String {
    errors.iter().map(LoadError::to_string).collect::<Vec<_>>().join("\n")
}

/// Adds advice to an error message.
fn with_advice(error: &SqlError) -> String {
    match error {
        SqlError::Query { .. } => followed_by(error, ".help sql lists the tables and has examples"),
        SqlError::TooManyRows => {
            format!("{error}; choose some with -fd; .help sql lists the tables and has examples")
        }
        SqlError::TooMuchMemory { .. } => format!("{error}, or raise the limit with -MaxMemory"),
        SqlError::JoinTooLarge { .. }
        | SqlError::View(_)
        | SqlError::Archive(_)
        | SqlError::Dataset { .. }
        | SqlError::Cancelled(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandError;

    #[test]
    fn an_error_is_followed_by_what_may_help() {
        for (error, expected) in [
            (
                SqlError::Query { reason: "no table 'x'".to_owned() },
                "no table 'x'; .help sql lists the tables and has examples",
            ),
            (
                SqlError::TooManyRows,
                "too many rows in all files together; choose some with -fd; .help sql lists the tables and \
                 has examples",
            ),
            (
                SqlError::TooMuchMemory { most: 2048 },
                "the query needs more than 2.00 KiB of memory; filter rows and columns before joins and ORDER BY, or raise the limit with -MaxMemory",
            ),
        ] {
            assert_eq!(CommandError::from(error).to_string(), expected);
        }
    }
}
