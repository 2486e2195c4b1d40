//! The session that all tools share, and their answers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Read, Seek, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use handlescope_model::Untrusted;
use handlescope_model::output::temporary_folder;
use handlescope_symbols::{ServerChoice, SymbolPath, SymbolSources};
use serde::de::DeserializeSeed as _;
use serde_json::{Deserializer, Map, Value, json};
use tempfile::{SpooledTempFile, TempDir, spooled_tempfile};

use super::answer::{Answer, MAX_BYTES};
use super::brief;
use super::error::ToolError;
use super::hints::{SmallSuspects, as_warning, next_of_row, translate};
use super::input::Inputs;
use super::tools::{
    ALL, Brief, CURSOR, DETAIL, FILES, LoadedFile, Paging, SIZE, TOP, Tool, USUAL_ROWS, Work,
    file_columns, relation_columns,
};
use super::window::{IN_MEMORY, Names, Part, Position, Window};
use super::worker::{Question, Worker};
use handlescope_commands::console::Console;
use handlescope_commands::load::load;
use handlescope_commands::registry::REGISTRY;
use handlescope_commands::schema::views;
use handlescope_commands::{CommandError, Context};
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::join;
use handlescope_session::paths::Roots;
use handlescope_session::suggest;
use handlescope_session::terminal::{Activity, Messages, Screen};
use handlescope_session::trace::{Access, LoadArgs, filter_of, passes};
use handlescope_sql::{Relation, Views};

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
    kept: Option<(u64, Kept)>,
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
struct Call<'a> {
    tool: &'a Tool,
    inputs: &'a Inputs<'a>,
    arguments: &'a Map<String, Value>,
    /// The number of its question.
    question: u64,
    /// Position of its page.
    at: Position,
    /// Maximum number of rows of its page.
    rows: usize,
}

/// An answer that has more pages.
enum Kept {
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
            messages.note(
                "symbol servers are not used: what they send is kept, which needs --allow-write",
            );
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
        let question = self.question(tool, arguments);
        let cursor = inputs.text(CURSOR);
        let at = position(question, cursor)?;
        // The first page is answered anew.
        self.kept.take_if(|_| cursor.is_none());
        let usual_rows = if tool.is_paged() { USUAL_ROWS } else { usize::MAX };
        let rows = inputs.number(TOP).unwrap_or(usual_rows);
        let call = Call { tool, inputs: &inputs, arguments, question, at, rows };
        let (answer, warnings) = match tool.work {
            Work::Load => self.load(&call)?,
            Work::Dump { kind, paging: Paging::Window { option, left_out } } => {
                self.window(&call, kind, option, left_out)?
            }
            Work::Dump { kind, paging: Paging::Document } => self.dump(&call, kind)?,
            Work::Sql => self.sql(&call)?,
            Work::Schema => {
                let views = views(&self.console.session.settings, &self.console.cancel)
                    .map_err(CommandError::from)?;
                (schema(&call, &views)?, Vec::new())
            }
        };
        let answer = self.briefed(&call, answer)?;
        let next = |at: Position| next_page(tool, arguments, question, at);
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
    fn briefed(&self, call: &Call<'_>, answer: Answer) -> Result<Answer, ToolError> {
        let Call { tool, inputs, arguments, .. } = *call;
        let traces = self.traces(inputs.text(FILES))?;
        let has_rows_of_traces = !matches!(tool.work, Work::Schema | Work::Load);
        let has_detail = inputs.flag(DETAIL) || !inputs.texts("tables").is_empty();
        let (left_out, repeated) = (tool.left_out(has_detail), tool.left_out_of_document());
        let files = &self.console.session.files;
        let document = |document: &mut Map<String, Value>| {
            brief::document(document, &repeated);
            document.get_mut("no_match").into_iter().for_each(|value| translate(tool, value));
            if has_rows_of_traces {
                let names = traces.iter().map(|(_, name)| name.as_str());
                document.insert("traces".to_owned(), names.collect());
            }
        };
        let answer = answer.map(document, |row| {
            let number = row["file"].as_u64().and_then(|number| usize::try_from(number).ok());
            let file = number.filter(|_| files.len() > 1).and_then(|file| filter_of(files, file));
            let next = next_of_row(tool, row, arguments, file);
            match tool.brief {
                Brief::Suspects if !has_detail => brief::suspect(row, &left_out),
                Brief::Tables => brief::table(row, &left_out),
                Brief::Values => brief::values(row),
                Brief::Suspects | Brief::Rows => brief::row(row, &left_out),
            }
            let Some(row) = row.as_object_mut() else { return };
            if tool.brief != Brief::Values {
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

    fn load(&mut self, call: &Call<'_>) -> WithWarnings<Answer> {
        let Call { tool, inputs, at, rows, .. } = *call;
        let folders = self.real(inputs.texts("symbols"))?;
        let symbols = self.symbols_with(folders)?;
        let queries = self.real(inputs.texts("paths"))?;
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let args = LoadArgs {
            append: inputs.flag("append"),
            recursive: inputs.flag("recursive"),
            access: self.access.clone(),
            ..LoadArgs::replacing(queries.into_iter().map(text).collect())
        };
        let mut warnings = self.loaded(&args)?;
        self.loads += 1;
        self.kept = None;
        self.worker = None;
        if !symbols.closed_folders.is_empty() {
            self.search(symbols);
        }
        let files = &self.console.session.files;
        let loaded = (0_u32..).zip(files).map(|(number, file)| LoadedFile {
            number,
            path: self.roots.name(&file.path),
            is_temporary: file.is_temporary(),
        });
        let answer = tool.answer(file_columns(), loaded, at, rows)?;
        let symbols = self.symbols().unwrap_or_else(|error| {
            warnings.push(error.to_string());
            None
        });
        let note = |document: &mut Map<String, Value>| {
            document.extend(symbols.map(|symbols| ("symbols".to_owned(), symbols)));
        };
        Ok((answer.map(note, |_| {}), warnings))
    }

    /// Loads traces, and returns what limits their answers. Files that cannot be loaded beside others are among it.
    ///
    /// # Errors
    /// When nothing can be loaded, or the call was cancelled: the loaded traces are then those from before.
    fn loaded(&mut self, args: &LoadArgs) -> Result<Vec<String>, ToolError> {
        let before = match args.append {
            true => Vec::new(),
            false => mem::take(&mut self.console.session.files),
        };
        let kept = self.console.session.files.len();
        let (result, mut warnings) = self.run(&mut io::sink(), |context| load(args, context));
        let has_new = self.console.session.files.len() > kept;
        match result {
            Ok(()) => Ok(warnings),
            Err(CommandError::Load { errors }) if has_new => {
                warnings.extend(errors.iter().map(|error| format!("warning: not loaded: {error}")));
                Ok(warnings)
            }
            Err(error) => {
                if !args.append {
                    self.console.session.files = before;
                    self.console.session.search_beside_files();
                }
                let error = Box::new(error);
                Err(ToolError::Load { error, loaded: self.names_of_loaded() })
            }
        }
    }

    /// The names of the loaded traces, for an error.
    fn names_of_loaded(&self) -> String {
        let files = &self.console.session.files;
        let names = files.iter().map(|file| Untrusted(&file.path).to_string());
        let mut loaded: Vec<String> = names.take(MAX_NAMED).collect();
        match files.len().saturating_sub(MAX_NAMED) {
            0 if loaded.is_empty() => loaded.push("nothing".to_owned()),
            0 => {}
            more => loaded.push(format!("and {more} more")),
        }
        loaded.join(", ")
    }

    /// How many frames of the loaded traces have names, and which modules lack them; `None` where symbol servers would be
    /// asked.
    fn symbols(&mut self) -> Result<Option<Value>, ToolError> {
        if self.console.session.settings.symbol_path().has_servers() && !self.access.read_only {
            return Ok(None);
        }
        let (mut text, _) = self.printed("Symbols", &[])?;
        let mut symbols = brief::Symbols::default();
        let names = Names { rows: "symbols", list: None };
        let mut count = |module: &Value| {
            symbols.count(module);
            true
        };
        let counts: Option<&mut dyn FnMut(&Value) -> bool> = Some(&mut count);
        self.part(&mut text, Window { names, first: Position::default(), count: 0, counts })?;
        Ok(Some(symbols.described()))
    }

    /// Prints a kind.
    fn dump(&mut self, call: &Call<'_>, kind: &str) -> WithWarnings<Answer> {
        let Call { tool, inputs, question, at, rows, .. } = *call;
        let (mut text, warnings) = match self.kept.take() {
            Some((of, Kept::Document(text))) if of == question => (text, Vec::new()),
            _ => self.printed(kind, &inputs.options())?,
        };
        let window = Window { names: tool.names, first: at, count: rows, counts: None };
        let has_all = inputs.flag(ALL) || inputs.text("suspect").is_some();
        let part = match tool.brief {
            Brief::Suspects if !has_all => self.large_suspects(&mut text, call)?,
            _ => self.part(&mut text, window)?,
        };
        self.kept = Some((question, Kept::Document(text)));
        let total = part.total;
        Ok((Answer::new(part, tool.names, at, total), warnings))
    }

    /// Reads suspects without those that say next to nothing beside the others.
    fn large_suspects(
        &self,
        text: &mut SpooledTempFile,
        call: &Call<'_>,
    ) -> Result<Part, ToolError> {
        let Call { tool, arguments, at: first, rows: count, .. } = *call;
        let mut small = SmallSuspects::default();
        let mut count_small = |suspect: &Value| {
            small.count(suspect);
            true
        };
        let names = tool.names;
        self.part(text, Window { names, first, count: 0, counts: Some(&mut count_small) })?;
        let mut is_shown = |suspect: &Value| !small.has(suspect);
        let mut part =
            self.part(text, Window { names, first, count, counts: Some(&mut is_shown) })?;
        small.describe(&mut part.document, arguments);
        Ok(part)
    }

    /// Prints only the rows of the page, with an option that counts rows.
    fn window(
        &mut self,
        call: &Call<'_>,
        kind: &str,
        option: &str,
        counted: &str,
    ) -> WithWarnings<Answer> {
        let Call { tool, inputs, at, rows: top, .. } = *call;
        let skip = at.row;
        // It counts those of each file.
        let is_one = self.console.session.files.len() == 1;
        let (take, left) = if is_one { (top, skip) } else { (top.saturating_add(skip), 0) };
        let mut options = inputs.options();
        options.extend([option.to_owned(), take.to_string(), left.to_string()]);
        let (mut text, warnings) = self.printed(kind, &options)?;
        let first = Position { row: skip - left, ..at };
        let window = Window { names: tool.names, first, count: top, counts: None };
        let mut part = self.part(&mut text, window)?;
        let left_out = part.document.remove("left_out");
        let left_out = left_out.and_then(|left| left.get(counted)?.as_u64()).unwrap_or_default();
        let total = part.total + usize::try_from(left_out).unwrap_or(usize::MAX);
        Ok((Answer::new(part, tool.names, at, total), warnings))
    }

    /// The JSON of a kind with these options, and the messages.
    fn printed(&mut self, kind: &str, options: &[String]) -> WithWarnings<SpooledTempFile> {
        let head = [".dump", kind, "-json"].map(str::to_owned);
        let (line, tokens) = join(&[&head[..], options].concat());
        let rest = tokens.get(2..).unwrap_or_default();
        let entered = REGISTRY.entered(".dump", &line, rest);
        let unknown = || ToolError::Bug { reason: format!("there is no kind {kind}") };
        let kind = REGISTRY.kind(kind).ok_or_else(unknown)?;
        let command = kind.parse(&entered).map_err(CommandError::from)?;
        self.written(|context| command.run(context))
    }

    /// Reads of a document what a page may show.
    fn part(&self, text: &mut SpooledTempFile, window: Window<'_>) -> Result<Part, ToolError> {
        text.rewind()?;
        let cancel = &self.console.cancel;
        let text = BufReader::with_capacity(READ_BYTES, Watched { text, cancel });
        let part = window.deserialize(&mut Deserializer::from_reader(text));
        cancel.check().map_err(|_| ToolError::Cancelled)?;
        Ok(part?)
    }

    /// Runs a query, or reads further rows of the last one, in a process of its own.
    fn sql(&mut self, call: &Call<'_>) -> WithWarnings<Answer> {
        let Call { tool, inputs, question, at, rows, .. } = *call;
        self.traces(inputs.text(FILES))?;
        if self.console.session.files.is_empty() {
            return Err(ToolError::NothingLoaded);
        }
        let kept = self.kept.take();
        let is_kept = matches!(kept, Some((of, Kept::Rows)) if of == question);
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.console.session)?,
        };
        let query = inputs.text("query").filter(|_| !is_kept).map(str::to_owned);
        let files = inputs.text(FILES).map(str::to_owned);
        let asked = Question { query, files, first: at.row, count: rows };
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
        self.kept = Some((question, Kept::Rows));
        Ok((Answer::new(part, tool.names, at, total), Vec::new()))
    }

    /// Resolves names of files and folders within the roots.
    fn real(&self, names: &[String]) -> Result<Vec<PathBuf>, CommandError> {
        names.iter().map(|name| Ok(self.roots.resolve(name)?)).collect()
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

/// Position of a trace among those that are asked; `None` where it is the only one.
fn position_of(number: usize, traces: &[(usize, String)]) -> Option<usize> {
    let position = traces.iter().position(|(known, _)| *known == number);
    position.filter(|_| traces.len() > 1)
}

/// Position of a page, from a cursor that belongs to this question.
fn position(question: u64, cursor: Option<&str>) -> Result<Position, ToolError> {
    let Some(cursor) = cursor else { return Ok(Position::default()) };
    let read = || {
        let (of, at) = cursor.split_once('-')?;
        let (row, element) = at.split_once('.')?;
        let is_of_question = u64::from_str_radix(of, 16).ok()? == question;
        let position = Position { row: row.parse().ok()?, element: element.parse().ok()? };
        Some(position).filter(|_| is_of_question)
    };
    read().ok_or(ToolError::Cursor)
}

/// The call of the next page.
fn next_page(tool: &Tool, arguments: &Map<String, Value>, question: u64, at: Position) -> Value {
    let mut arguments = arguments.clone();
    arguments.retain(|_, value| !value.is_null());
    arguments.insert(CURSOR.to_owned(), format!("{question:x}-{}.{}", at.row, at.element).into());
    json!({"tool": tool.name, "arguments": arguments})
}

/// The tables and views that are named, or all.
///
/// # Errors
/// Names the first that is neither.
fn schema(call: &Call<'_>, views: &Views) -> Result<Answer, ToolError> {
    let Call { tool, inputs, at, rows, .. } = *call;
    let names = inputs.texts("tables");
    let named = names.iter().flat_map(|names| names.split(',')).map(str::trim);
    let mut relations = Vec::new();
    for name in named {
        let relation = views.relation(name).ok_or_else(|| {
            let hint = suggest::nearest(name, views.relations().map(Relation::name));
            let hint = hint.map(suggest::did_you_mean);
            let hint = hint.unwrap_or_else(|| "; schema without `tables` lists them".to_owned());
            ToolError::NoTable { name: name.to_owned(), hint }
        })?;
        if !relations.contains(&relation) {
            relations.push(relation);
        }
    }
    if relations.is_empty() {
        relations.extend(views.relations());
    }
    Ok(tool.answer(relation_columns(), relations.into_iter(), at, rows)?)
}

/// The text of a document that is read until the call is cancelled.
struct Watched<'a> {
    text: &'a mut SpooledTempFile,
    cancel: &'a Cancel,
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        self.text.read(bytes)
    }
}
