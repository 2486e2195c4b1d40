//! Queries of the tool `sql`, each in a process of its own: whatever a query does, it cannot end the server.
//!
//! The process is this program with the command line of the server and `--worker`. It opens the extracts that the server
//! has loaded, answers queries in lines of JSON, and keeps the rows of the last one for further pages. It ends a query that
//! takes too much memory, and ends with the server.

use std::env;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::PathBuf;
use std::process::{self, Child, ChildStdin, Command, Stdio};
use std::slice::from_ref;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use handlescope_model::Trace;
use handlescope_symbols::SymbolPath;
use polars::prelude::{ChunkApply, Column, DataFrame, IntoColumn, PolarsResult};
use serde::de::DeserializeSeed as _;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Map, Value};
use tempfile::spooled_tempfile;

use super::error::ToolError;
use super::window::{DocumentPart, IN_MEMORY, MemberNames, PagePosition, PageWindow, WindowRow};
use handlescope_commands::console::Console;
use handlescope_commands::registry::REGISTRY;
use handlescope_commands::sql::{self, QuerySource, Sql, SqlArgs};
use handlescope_commands::{Command as _, CommandError};
use handlescope_render as render;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::{Quotes, Token};
use handlescope_session::settings::Display;
use handlescope_session::terminal::{Messages, Screen, standard};
use handlescope_session::trace::{LoadedTrace, Session};
use handlescope_session::values::{Format, JsonMode};
use handlescope_sql::SqlError;

/// Memory that a query may take, bytes: as much as an extraction.
const MAX_MEMORY: u64 = 1 << 30;

/// The longest text of a row that is read: a page has no room for it.
const MAX_TEXT: usize = 1 << 20;

/// Time between two checks for the end of the call.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The rows of a query in its document.
const ROWS: MemberNames = MemberNames { rows: "rows", list: None };

/// The traces of a session, and where names of functions are searched.
#[derive(Serialize, Deserialize)]
struct WorkerSetup {
    /// Each with the name by which it was loaded, and the file with its tables.
    files: Vec<(PathBuf, PathBuf)>,
    /// The folder of the dataset that is loaded in place of traces.
    dataset: Option<PathBuf>,
    symbol_path: String,
    closed_folders: Vec<PathBuf>,
    symcache_folder: Option<PathBuf>,
}

/// A question to the process.
#[derive(Serialize, Deserialize)]
pub struct WorkerQuestion {
    /// The query; `None` for further rows of the last one.
    pub query: Option<String>,
    /// The filter on paths.
    pub files: Option<String>,
    pub first: usize,
    pub count: usize,
}

/// Some rows of a query.
#[derive(Serialize, Deserialize)]
struct RowPage {
    total: usize,
    document: Map<String, Value>,
    /// Each with whether it was cut.
    rows: Vec<(Value, bool)>,
}

/// A line of the process.
#[derive(Serialize, Deserialize)]
enum WorkerReply {
    Page(RowPage),
    Refused(String),
    /// Like [`WorkerReply::Refused`], and the process ends.
    Ended(String),
}

/// The process that answers queries.
pub struct Worker {
    process: Child,
    input: ChildStdin,
    replies: Receiver<String>,
}

impl Worker {
    /// Starts a process for the loaded traces.
    pub fn start(session: &Session) -> io::Result<Worker> {
        let mut process = Command::new(env::current_exe()?)
            .args(env::args_os().skip(1))
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (sender, replies) = channel();
        thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .map(|line| sender.send(line))
                .take_while(Result::is_ok)
                .for_each(drop);
        });
        let mut worker = Worker { process, input, replies };
        let file = |file: &LoadedTrace| (file.path.clone(), file.trace.path().to_owned());
        let options = &session.symbol_options;
        worker.send(&WorkerSetup {
            files: session.files.iter().map(file).collect(),
            dataset: session.dataset.clone(),
            symbol_path: session.settings.symbol_path().text().to_owned(),
            closed_folders: options.closed_folders.clone(),
            symcache_folder: options.symcache_folder.clone(),
        })?;
        Ok(worker)
    }

    fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.input, message)?;
        self.input.write_all(b"\n")
    }

    /// Asks for rows, and returns them with the number of all.
    ///
    /// # Errors
    /// When the query has no answer, `cancel` asks to stop, or the process has ended.
    pub fn ask(
        &mut self,
        question: &WorkerQuestion,
        cancel: &Cancel,
    ) -> Result<(DocumentPart, usize), ToolError> {
        self.send(question)?;
        let reply = loop {
            match self.replies.recv_timeout(LOOK_EVERY) {
                Ok(reply) => break serde_json::from_str(&reply)?,
                Err(RecvTimeoutError::Disconnected) => return Err(ToolError::QueryEnded),
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    return Err(ToolError::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let page: RowPage = match reply {
            WorkerReply::Page(page) => page,
            WorkerReply::Refused(reason) => {
                return Err(ToolError::Query { reason, has_ended: false });
            }
            WorkerReply::Ended(reason) => return Err(ToolError::Query { reason, has_ended: true }),
        };
        let rows =
            page.rows.into_iter().map(|(value, is_cut)| WindowRow { value, length: 0, is_cut });
        let part = DocumentPart {
            document: page.document,
            rows: rows.collect(),
            ..DocumentPart::default()
        };
        Ok((part, page.total))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended already is only waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers the queries of a server until it ends.
///
/// # Errors
/// When the extracts cannot be opened, or the server has gone.
pub fn serve(mut console: Console) -> Result<(), CommandError> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        io::stdin()
            .lock()
            .lines()
            .map_while(Result::ok)
            .map(|line| sender.send(line))
            .take_while(Result::is_ok)
            .for_each(drop);
        // The server has gone, and waits for no answer.
        process::exit(0);
    });
    let Ok(setup) = lines.recv() else { return Ok(()) };
    let mut opened = open(&mut console, &setup);
    let mut frame = DataFrame::empty();
    for line in lines {
        let reply = match &mut opened {
            Ok(()) => reply(&mut console, &mut frame, &line),
            Err(error) => WorkerReply::Ended(error.to_string()),
        };
        let mut out = standard::out();
        serde_json::to_writer(&mut out, &reply).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        out.flush()?;
        if matches!(reply, WorkerReply::Ended(_)) {
            break;
        }
    }
    Ok(())
}

fn open(console: &mut Console, setup: &str) -> Result<(), CommandError> {
    let setup: WorkerSetup = serde_json::from_str(setup).map_err(io::Error::from)?;
    let session = &mut console.session;
    for (path, archive) in setup.files {
        session.files.push(LoadedTrace::new(path, Trace::open(&archive)?));
    }
    session.symbol_options.closed_folders = setup.closed_folders;
    session.symbol_options.symcache_folder = setup.symcache_folder;
    session.set_symbol_path(&SymbolPath::parse(&setup.symbol_path));
    match setup.dataset {
        Some(folder) => session.open_dataset(folder),
        None => session.search_beside_files(),
    }
    Ok(())
}

fn reply(console: &mut Console, frame: &mut DataFrame, line: &str) -> WorkerReply {
    let page = serde_json::from_str(line)
        .map_err(|error| CommandError::from(io::Error::from(error)))
        .and_then(|question| page(console, frame, &question));
    match page {
        Ok(page) => WorkerReply::Page(page),
        // It goes on to take memory.
        Err(error @ CommandError::Sql(SqlError::TooMuchMemory { .. })) => {
            WorkerReply::Ended(error.to_string())
        }
        Err(error) => WorkerReply::Refused(error.to_string()),
    }
}

fn page(
    console: &mut Console,
    frame: &mut DataFrame,
    question: &WorkerQuestion,
) -> Result<RowPage, CommandError> {
    if let Some(query) = &question.query {
        *frame = DataFrame::empty();
        *frame = answer(console, query, question.files.as_deref())?;
    }
    let first = i64::try_from(question.first).unwrap_or(i64::MAX);
    let rows = shortened(&frame.slice(first, question.count)).map_err(SqlError::from)?;
    let table = render::frame(rows, "");
    let mut text = spooled_tempfile(IN_MEMORY);
    let json = Format::Json(JsonMode::Lines);
    table.write_as(json, &Display::default(), &Cancel::default(), &mut text)?;
    text.rewind()?;
    let first = PagePosition::default();
    let window = PageWindow { names: ROWS, first, count: question.count, counts: None };
    let text = &mut Deserializer::from_reader(BufReader::new(text));
    let part = window.deserialize(text).map_err(io::Error::from)?;
    let rows = part.rows.into_iter().map(|row| (row.value, row.is_cut)).collect();
    Ok(RowPage { total: frame.height(), document: part.document, rows })
}

/// Runs a query. The text is one word in quotes, so that nothing in it is an option or a file.
fn answer(
    console: &mut Console,
    query: &str,
    files: Option<&str>,
) -> Result<DataFrame, CommandError> {
    let token = Token { text: query.to_owned(), span: 0..query.len(), quotes: Quotes::Closed };
    let entered = REGISTRY.entered(".sql", query, from_ref(&token));
    let mut args: SqlArgs = Sql::parse(&entered)?;
    // Not the name of a file with one.
    args.query = QuerySource::Text(query.to_owned());
    args.max_memory = Some(MAX_MEMORY);
    // The server has looked whether it is valid.
    args.shared.files = files.and_then(|files| Filter::new(files).ok()).into_iter().collect();
    let mut frame = DataFrame::empty();
    let mut lines = Vec::new();
    let mut messages = Messages::new(&mut lines, Screen::PLAIN);
    console.with_context(&mut io::sink(), &mut messages, |context| {
        frame = sql::answer(&args, context)?;
        Ok(())
    })?;
    Ok(frame)
}

/// Rows whose texts are not longer than what is read of them.
fn shortened(rows: &DataFrame) -> PolarsResult<DataFrame> {
    let shortened = |column: &Column| match column.str() {
        Ok(texts) => texts
            .apply_values(|text| {
                text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text).into()
            })
            .into_column(),
        Err(_) => column.clone(),
    };
    DataFrame::new(rows.height(), rows.columns().iter().map(shortened).collect())
}
