//! The session that all tools share, and their answers.

mod load;
mod schema;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use handlescope_model::output::temporary_folder;
use handlescope_symbols::{ServerChoice, SymbolPath, SymbolSources};
use serde::de::DeserializeSeed as _;
use serde_json::{Deserializer, Map, Value, json};
use tempfile::{SpooledTempFile, TempDir, spooled_tempfile};

use super::answer::{AnswerPage, MAX_BYTES};
use super::brief;
use super::error::ToolError;
use super::hints::{SmallSuspects, States, compared, next_in_dataset, next_of_row};
use super::input::Inputs;
use super::tools::{
    ALL, Brief, CURSOR, DETAIL, FILES, Paging, RowSpec, SIZE, TOOLS, TOP, Tool, ToolWork,
    USUAL_ROWS,
};
use super::window::{DocumentPart, IN_MEMORY, PagePosition, PageWindow};
use super::words::{as_warning, translate};
use super::worker::{Worker, WorkerQuestion};
use handlescope_commands::console::Console;
use handlescope_commands::registry::registry;
use handlescope_commands::schema::views;
use handlescope_commands::{CommandError, Context};
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::join;
use handlescope_session::paths::Roots;
use handlescope_session::terminal::{Activity, Messages, Screen};
use handlescope_session::trace::{Access, filter_of, passes};
use handlescope_session::values::joined;

/// Bytes of a document that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Loaded files that an error names.
const MAX_NAMED: usize = 20;

/// An answer, and the messages on the way to it.
type WithWarnings<T> = Result<(T, Vec<String>), ToolError>;

/// The one session of a server: the loaded traces, and what its tools may access.
pub struct ToolSession {
    console: Console,
    access: Access,
    /// Progress of the running call.
    activity: Activity,
    roots: Arc<Roots>,
    /// Symbol path to search besides the folders of `load`.
    symbol_path: SymbolPath,
    /// Folder for names of functions that may not be written elsewhere.
    scratch: Option<TempDir>,
    /// The last answer that has more pages, with the number of its question.
    kept: Option<(u64, UnfinishedAnswer)>,
    /// The process that answers queries, from the first one after a load on.
    worker: Option<Worker>,
    /// Number of loads so far: cursors from before a load are invalid.
    loads: u64,
}

/// Where names of functions are searched.
struct SymbolSearch {
    path: SymbolPath,
    /// Folders that were named by the agent: nothing in them may lead out of them.
    closed_folders: Vec<PathBuf>,
}

/// A call of a tool.
#[derive(Clone, Copy)]
struct ToolCall<'a> {
    tool: &'a Tool,
    /// The rows of its answer.
    spec: RowSpec,
    /// Whether it asks the loaded dataset.
    over_dataset: bool,
    inputs: &'a Inputs<'a>,
    arguments: &'a Map<String, Value>,
    /// The number of its question.
    question: u64,
    /// Position of its page.
    at: PagePosition,
    /// Maximum number of rows of its page.
    rows: usize,
}

/// An answer that has more pages.
enum UnfinishedAnswer {
    /// Rows of a query, which its process has: groups without an order may come in another one when they are asked for
    /// again.
    Rows,
    /// The JSON of a command.
    Document(SpooledTempFile),
}

impl ToolSession {
    /// Creates a session that reads only below these roots.
    ///
    /// # Errors
    /// When no temporary folder can be made.
    pub fn new(
        console: Console,
        roots: Arc<Roots>,
        read_only: bool,
        messages: &mut Messages<'_>,
    ) -> Result<ToolSession, CommandError> {
        let full = console.session.settings.symbol_path();
        let symbol_path = if read_only { full.without_servers() } else { full.clone() };
        if read_only && full.has_servers() {
            messages
                .note("symbol servers are not used: keeping what they send needs --allow-write");
        }
        let mut session = ToolSession {
            console,
            activity: Activity::default(),
            access: Access { roots: Some(Arc::clone(&roots)), read_only },
            roots,
            symbol_path,
            scratch: read_only.then(temporary_folder).transpose()?,
            kept: None,
            worker: None,
            loads: 0,
        };
        let kept = session.scratch.as_ref().map(|folder| folder.path().to_owned());
        session.console.session.symbol_options.symcache_folder = kept;
        if !session.symbol_path.is_empty() {
            let symbols = session.symbols_with(Vec::new())?;
            session.search(symbols);
        }
        Ok(session)
    }

    /// Returns the progress of the running call.
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Answers a call of a tool.
    ///
    /// # Errors
    /// When the tool has no answer to these arguments, or `cancel` asks to stop.
    pub fn call(
        &mut self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
    ) -> Result<Value, ToolError> {
        self.console.cancel = cancel.clone();
        let inputs = tool.read(arguments)?;
        let over_dataset = self.is_over_dataset(tool);
        let spec = self.spec(tool, &inputs, over_dataset)?;
        let question = self.question(tool, arguments);
        let cursor = inputs.text(CURSOR);
        let at = position(question, cursor)?;
        // The first page is answered anew.
        self.kept.take_if(|_| cursor.is_none());
        let usual_rows = if tool.is_paged() { USUAL_ROWS } else { usize::MAX };
        let rows = inputs.number(TOP).unwrap_or(usual_rows);
        let inputs = &inputs;
        let call = ToolCall { tool, spec, over_dataset, inputs, arguments, question, at, rows };
        let (answer, warnings) = match tool.work {
            ToolWork::Load => self.load(&call)?,
            ToolWork::Dump { kind, paging: Paging::Window { option, left_out } }
                if !over_dataset =>
            {
                self.window(&call, kind, option, left_out)?
            }
            ToolWork::Dump { kind, .. } => self.dump(&call, kind)?,
            ToolWork::Sql => self.sql(&call)?,
            ToolWork::Schema if over_dataset => {
                (schema::schema(&call, schema::of_dataset())?, Vec::new())
            }
            ToolWork::Schema => {
                let views = views(&self.console.session.settings, &self.console.cancel)
                    .map_err(CommandError::from)?;
                (schema::schema(&call, schema::of_traces(&views))?, Vec::new())
            }
        };
        let answer = self.briefed(&call, answer)?;
        let next = |at: PagePosition| next_page(tool, arguments, question, at);
        let warnings = warnings
            .into_iter()
            .filter_map(|line| Some(self.roots.shortened(&as_warning(tool, &line)?)));
        // Those of the first page count for all.
        let warnings: Vec<String> = warnings.filter(|_| cursor.is_none()).collect();
        let bytes =
            inputs.number(SIZE).unwrap_or(if tool.is_paged() { tool.bytes } else { MAX_BYTES });
        let page = answer.page(bytes, &warnings, next)?;
        if page.get("next").is_none() || !tool.is_paged() {
            self.kept = None;
        }
        Ok(page)
    }

    /// Whether a tool asks the loaded dataset.
    fn is_over_dataset(&self, tool: &Tool) -> bool {
        self.console.session.dataset.is_some() && !matches!(tool.work, ToolWork::Load)
    }

    /// The rows of the answer to these arguments.
    ///
    /// # Errors
    /// When the tool, or one of the arguments, means nothing for what is loaded.
    fn spec(
        &self,
        tool: &Tool,
        inputs: &Inputs<'_>,
        over_dataset: bool,
    ) -> Result<RowSpec, ToolError> {
        let session = &self.console.session;
        let Some(spec) = tool.rows(over_dataset) else {
            let dataset = session.dataset.as_deref().map(|folder| self.roots.name(folder));
            let (dataset, tools) = (dataset.unwrap_or_default(), names_over_dataset());
            return Err(ToolError::OverDataset { tool: tool.name, dataset, tools });
        };
        let is_asked = over_dataset || !session.files.is_empty();
        match tool.check(inputs, over_dataset) {
            Err(_) if !is_asked => Err(ToolError::NothingLoaded),
            checked => checked.map(|()| spec),
        }
    }

    /// The numbers and names of the loaded traces that a filter leaves.
    fn traces(&self, filter: Option<&str>) -> Result<Vec<(usize, String)>, ToolError> {
        let filter = filter.map(Filter::new).transpose();
        let filter =
            filter.map_err(|error| ToolError::Filter { name: FILES, reason: error.to_string() })?;
        let files = self.console.session.files.iter().enumerate();
        let is_selected = |path: &Path| filter.as_ref().is_none_or(|filter| passes(filter, path));
        let selected = files.filter(|(_, file)| is_selected(&file.path));
        Ok(selected.map(|(number, file)| (number, self.roots.name(&file.path))).collect())
    }

    /// Leaves of the rows of a page what its reader asks first, unless it asks for the details.
    fn briefed(&self, call: &ToolCall<'_>, answer: AnswerPage) -> Result<AnswerPage, ToolError> {
        let ToolCall { tool, spec, over_dataset, inputs, arguments, .. } = *call;
        let traces = self.traces(inputs.text(FILES))?;
        let dataset = self.console.session.dataset.as_deref().filter(|_| over_dataset);
        let has_detail = inputs.flag(DETAIL) || !inputs.texts("tables").is_empty();
        let (left_out, repeated) = (spec.left_out(has_detail), spec.left_out_of_document());
        let files = &self.console.session.files;
        let document = |document: &mut Map<String, Value>| {
            brief::document(document, &repeated);
            if spec.brief == Brief::Compared && !over_dataset {
                brief::name_compared(document, &traces);
            }
            document.get_mut("no_match").into_iter().for_each(|value| translate(tool, value));
            if let Some(folder) = dataset {
                document.insert("dataset".to_owned(), self.roots.name(folder).into());
            } else if tool.is_about_traces() {
                let names = traces.iter().map(|(_, name)| name.as_str());
                document.insert("traces".to_owned(), names.collect());
            }
        };
        let answer = answer.map(document, |row| {
            let number = row["file"].as_u64().and_then(|number| usize::try_from(number).ok());
            let asked = number.or_else(|| compared(row, &traces));
            let file = asked.filter(|_| files.len() > 1).and_then(|file| filter_of(files, file));
            let next = if over_dataset {
                next_in_dataset(tool, row)
            } else {
                next_of_row(tool, row, arguments, file)
            };
            match spec.brief {
                Brief::Suspects if !has_detail => brief::suspect(row, &left_out),
                Brief::Tables => {
                    brief::table(row, &left_out);
                    translate(tool, row);
                }
                Brief::Values => brief::values(row),
                Brief::Suspects | Brief::Rows | Brief::Compared => brief::row(row, &left_out),
            }
            if spec.brief == Brief::Compared || (over_dataset && spec.brief == Brief::Rows) {
                brief::round_all(row);
            }
            let Some(row) = row.as_object_mut() else { return };
            if spec.brief != Brief::Values {
                row.remove("file");
                let position = number.and_then(|number| position_of(number, &traces));
                row.extend(position.map(|position| ("file".to_owned(), position.into())));
            }
            row.extend(next.map(|next| ("next".to_owned(), next)));
        });
        Ok(answer)
    }

    /// Returns a number that identifies a question, whatever the page.
    fn question(&self, tool: &Tool, arguments: &Map<String, Value>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.loads, tool.name).hash(&mut hasher);
        let is_asked =
            |name: &str, value: &Value| name != TOP && name != CURSOR && !value.is_null();
        for (name, value) in arguments.iter().filter(|(name, value)| is_asked(name, value)) {
            (name, value.to_string()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Prints a kind.
    fn dump(&mut self, call: &ToolCall<'_>, kind: &str) -> WithWarnings<AnswerPage> {
        let ToolCall { tool, spec, over_dataset, inputs, question, at, rows, .. } = *call;
        let (mut text, warnings) = match self.kept.take() {
            Some((of, UnfinishedAnswer::Document(text))) if of == question => (text, Vec::new()),
            _ => self.printed(kind, &inputs.options(over_dataset), over_dataset)?,
        };
        let mut states = States::default();
        let mut count_states = |row: &Value| states.count(row);
        let counts: Option<&mut dyn FnMut(&Value) -> bool> =
            if spec.brief == Brief::Compared { Some(&mut count_states) } else { None };
        let window = PageWindow { names: tool.names, first: at, count: rows, counts };
        let has_all = inputs.flag(ALL) || inputs.text("suspect").is_some();
        let mut part = match spec.brief {
            Brief::Suspects if !has_all => self.large_suspects(&mut text, call)?,
            _ => self.part(&mut text, window)?,
        };
        states.describe(&mut part.document);
        self.kept = Some((question, UnfinishedAnswer::Document(text)));
        let total = part.total;
        Ok((AnswerPage::new(part, tool.names, at, total), warnings))
    }

    /// Reads suspects without those that say next to nothing beside the others.
    fn large_suspects(
        &self,
        text: &mut SpooledTempFile,
        call: &ToolCall<'_>,
    ) -> Result<DocumentPart, ToolError> {
        let ToolCall { tool, arguments, at: first, rows: count, .. } = *call;
        let mut small = SmallSuspects::default();
        let mut count_small = |suspect: &Value| {
            small.count(suspect);
            true
        };
        let names = tool.names;
        self.part(text, PageWindow { names, first, count: 0, counts: Some(&mut count_small) })?;
        let mut is_shown = |suspect: &Value| !small.has(suspect);
        let mut part =
            self.part(text, PageWindow { names, first, count, counts: Some(&mut is_shown) })?;
        small.describe(&mut part.document, arguments);
        Ok(part)
    }

    /// Prints only the rows of the page, with an option that counts rows.
    fn window(
        &mut self,
        call: &ToolCall<'_>,
        kind: &str,
        option: &str,
        counted: &str,
    ) -> WithWarnings<AnswerPage> {
        let ToolCall { tool, inputs, at, rows: top, .. } = *call;
        let skip = at.row;
        // It counts those of each file.
        let is_one = self.console.session.files.len() == 1;
        let (take, left) = if is_one { (top, skip) } else { (top.saturating_add(skip), 0) };
        let mut options = inputs.options(false);
        options.extend([option.to_owned(), take.to_string(), left.to_string()]);
        let (mut text, warnings) = self.printed(kind, &options, false)?;
        let first = PagePosition { row: skip - left, ..at };
        let window = PageWindow { names: tool.names, first, count: top, counts: None };
        let mut part = self.part(&mut text, window)?;
        let left_out = part.document.remove("left_out");
        let left_out = left_out.and_then(|left| left.get(counted)?.as_u64()).unwrap_or_default();
        let total = part.total + usize::try_from(left_out).unwrap_or(usize::MAX);
        Ok((AnswerPage::new(part, tool.names, at, total), warnings))
    }

    /// The JSON of a kind with these options, and the messages.
    fn printed(
        &mut self,
        kind: &str,
        options: &[String],
        over_dataset: bool,
    ) -> WithWarnings<SpooledTempFile> {
        let registry = registry(over_dataset);
        let head = [".dump", kind, "-json"].map(str::to_owned);
        let (line, tokens) = join(&[&head[..], options].concat());
        let rest = tokens.get(2..).unwrap_or_default();
        let entered = registry.entered(".dump", &line, rest);
        let unknown = || ToolError::Bug { reason: format!("there is no kind {kind}") };
        let kind = registry.kind(kind).ok_or_else(unknown)?;
        let command = kind.parse(&entered).map_err(CommandError::from)?;
        self.written(|context| command.run(context))
    }

    /// Reads of a document what a page may show.
    fn part(
        &self,
        text: &mut SpooledTempFile,
        window: PageWindow<'_>,
    ) -> Result<DocumentPart, ToolError> {
        text.rewind()?;
        let cancel = &self.console.cancel;
        let text = BufReader::with_capacity(READ_BYTES, CancellableText { text, cancel });
        let part = window.deserialize(&mut Deserializer::from_reader(text));
        cancel.check().map_err(|_| ToolError::Cancelled)?;
        Ok(part?)
    }

    /// Runs a query, or reads further rows of the last one, in a process of its own.
    fn sql(&mut self, call: &ToolCall<'_>) -> WithWarnings<AnswerPage> {
        let ToolCall { tool, over_dataset, inputs, question, at, rows, .. } = *call;
        self.traces(inputs.text(FILES))?;
        if self.console.session.files.is_empty() && !over_dataset {
            return Err(ToolError::NothingLoaded);
        }
        let kept = self.kept.take();
        let is_kept = matches!(kept, Some((of, UnfinishedAnswer::Rows)) if of == question);
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.console.session)?,
        };
        let query = inputs.text("query").filter(|_| !is_kept).map(str::to_owned);
        let files = inputs.text(FILES).map(str::to_owned);
        let asked = WorkerQuestion { query, files, first: at.row, count: rows };
        let answer = worker.ask(&asked, &self.console.cancel);
        if !matches!(
            answer,
            Err(ToolError::QueryEnded
                | ToolError::Cancelled
                | ToolError::Query { has_ended: true, .. })
        ) {
            self.worker = Some(worker);
        }
        let (part, total) = answer?;
        self.kept = Some((question, UnfinishedAnswer::Rows));
        Ok((AnswerPage::new(part, tool.names, at, total), Vec::new()))
    }

    /// A search of these folders, and then of the symbol path of the command line or the environment.
    fn symbols_with(&self, closed_folders: Vec<PathBuf>) -> Result<SymbolSearch, CommandError> {
        let rest =
            Some(self.symbol_path.text().to_owned()).filter(|_| !self.symbol_path.is_empty());
        let servers = rest.map(ServerChoice::Path).into_iter().collect();
        let cache = self.scratch.as_ref().map(|folder| folder.path().to_owned());
        let folders = closed_folders.clone();
        let path = SymbolSources { servers, cache, folders }.symbol_path()?;
        Ok(SymbolSearch { path, closed_folders })
    }

    fn search(&mut self, symbols: SymbolSearch) {
        self.console.session.symbol_options.closed_folders = symbols.closed_folders;
        self.console.session.set_symbol_path(&symbols.path);
    }

    /// Runs something that writes a document, and returns its JSON and the messages.
    fn written(
        &mut self,
        work: impl FnOnce(&mut Context<'_, '_>) -> Result<(), CommandError>,
    ) -> WithWarnings<SpooledTempFile> {
        let mut out = spooled_tempfile(IN_MEMORY);
        let (result, warnings) = self.run(&mut out, work);
        result?;
        Ok((out, warnings))
    }

    /// Runs something with the session, and returns its messages as lines.
    fn run(
        &mut self,
        out: &mut dyn Write,
        work: impl FnOnce(&mut Context<'_, '_>) -> Result<(), CommandError>,
    ) -> (Result<(), CommandError>, Vec<String>) {
        let mut lines = Vec::new();
        let mut messages =
            Messages::new(&mut lines, Screen::PLAIN).with_activity(self.activity.clone());
        let result = self.console.with_context(out, &mut messages, work).map(drop);
        let lines = String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect();
        (result, lines)
    }
}

/// The tools that answer over a dataset.
fn names_over_dataset() -> String {
    let names: Vec<String> = TOOLS
        .iter()
        .filter(|tool| tool.is_paged() && tool.rows(true).is_some())
        .map(|tool| tool.name.to_owned())
        .collect();
    joined(&names)
}

/// Position of a trace among those that are asked; `None` where it is the only one.
fn position_of(number: usize, traces: &[(usize, String)]) -> Option<usize> {
    let position = traces.iter().position(|(known, _)| *known == number);
    position.filter(|_| traces.len() > 1)
}

/// Position of a page, from a cursor that belongs to this question.
fn position(question: u64, cursor: Option<&str>) -> Result<PagePosition, ToolError> {
    let Some(cursor) = cursor else { return Ok(PagePosition::default()) };
    let read = || {
        let (of, at) = cursor.split_once('-')?;
        let (row, element) = at.split_once('.')?;
        let is_of_question = u64::from_str_radix(of, 16).ok()? == question;
        let position = PagePosition { row: row.parse().ok()?, element: element.parse().ok()? };
        Some(position).filter(|_| is_of_question)
    };
    read().ok_or(ToolError::Cursor)
}

/// The call of the next page.
fn next_page(
    tool: &Tool,
    arguments: &Map<String, Value>,
    question: u64,
    at: PagePosition,
) -> Value {
    let mut arguments = arguments.clone();
    arguments.retain(|_, value| !value.is_null());
    arguments.insert(CURSOR.to_owned(), format!("{question:x}-{}.{}", at.row, at.element).into());
    json!({"tool": tool.name, "arguments": arguments})
}

/// The text of a document that is read until the call is cancelled.
struct CancellableText<'a> {
    text: &'a mut SpooledTempFile,
    cancel: &'a Cancel,
}

impl Read for CancellableText<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        self.text.read(bytes)
    }
}
