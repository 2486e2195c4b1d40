//! The tool `load`: traces, or a dataset, below the roots.

use std::io;
use std::iter;
use std::mem;
use std::path::PathBuf;

use handlescope_fleet::dataset::Dataset;
use handlescope_model::Untrusted;
use serde_json::{Map, Value};

use super::{MAX_NAMED, ToolCall, ToolSession, WithWarnings};
use crate::answer::AnswerPage;
use crate::brief;
use crate::error::ToolError;
use crate::rows::{LoadedFile, file_columns};
use crate::window::{MemberNames, PagePosition, PageWindow};
use handlescope_commands::CommandError;
use handlescope_commands::load::load;
use handlescope_session::paths::RootError;
use handlescope_session::trace::LoadArgs;

impl ToolSession {
    /// Loads traces or a dataset, and answers with what is loaded.
    ///
    /// # Errors
    /// When nothing can be loaded: what was loaded before stays.
    pub(super) fn load(&mut self, call: &ToolCall<'_>) -> WithWarnings<AnswerPage> {
        let ToolCall { tool, inputs, at, rows, .. } = *call;
        let folders = self.real(inputs.texts("symbols"))?;
        let symbols = self.symbols_with(folders)?;
        let queries = self.queries(inputs.texts("paths"))?;
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
        let answer = match &self.console.session.dataset {
            Some(folder) => {
                let traces = Dataset::open(folder).and_then(|dataset| dataset.traces());
                let file = LoadedFile {
                    number: 0,
                    path: self.roots.name(folder),
                    is_temporary: false,
                    dataset_traces: Some(traces.map_err(CommandError::from)?.len() as u64),
                };
                return Ok((tool.answer(file_columns(), iter::once(file), at, rows)?, warnings));
            }
            None => {
                let files = &self.console.session.files;
                let loaded = (0_u32..).zip(files).map(|(number, file)| LoadedFile {
                    number,
                    path: self.roots.name(&file.path),
                    is_temporary: file.is_temporary(),
                    dataset_traces: None,
                });
                tool.answer(file_columns(), loaded, at, rows)?
            }
        };
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
        let before =
            if args.append { Vec::new() } else { mem::take(&mut self.console.session.files) };
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

    /// The names of the loaded traces or of the dataset, for an error.
    fn names_of_loaded(&self) -> String {
        let files = &self.console.session.files;
        let paths = files.iter().map(|file| &file.path).chain(&self.console.session.dataset);
        let mut loaded: Vec<String> =
            paths.map(|path| Untrusted(path).to_string()).take(MAX_NAMED).collect();
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
        let (mut text, _) = self.printed("Symbols", &[], false)?;
        let mut symbols = brief::SymbolsBrief::default();
        let names = MemberNames { rows: "symbols", list: None };
        let mut count = |module: &Value| {
            symbols.count(module);
            true
        };
        let counts: Option<&mut dyn FnMut(&Value) -> bool> = Some(&mut count);
        self.part(
            &mut text,
            PageWindow { names, first: PagePosition::default(), count: 0, counts },
        )?;
        Ok(Some(symbols.described()))
    }

    /// Resolves names of files, folders and, while a dataset is loaded, ids of its traces.
    fn queries(&self, names: &[String]) -> Result<Vec<PathBuf>, CommandError> {
        let has_dataset = self.console.session.dataset.is_some();
        let query = |name: &String| match self.roots.resolve(name) {
            Err(RootError::Missing { .. }) if has_dataset && is_hex(name) => Ok(name.into()),
            path => path,
        };
        names.iter().map(|name| Ok(query(name)?)).collect()
    }

    /// Resolves names of files and folders within the roots.
    fn real(&self, names: &[String]) -> Result<Vec<PathBuf>, CommandError> {
        names.iter().map(|name| Ok(self.roots.resolve(name)?)).collect()
    }
}

/// Whether a text can be the beginning of the id of a trace.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}
