//! Carrying out commands, whatever way they came in.

use std::{io::Write, path::Path};

use handlescope_extract::symbols::{ModuleIdentity, SymbolPath};
use handlescope_model::Trace;

use crate::{
    cancel::Cancel,
    command::{
        Command, Dump, ExtractArgs, LoadArgs, SaveArgs, Setting, SymbolPathArgs, SymbolizeArgs,
    },
    convert_time::convert_time,
    dump::dump,
    error::CommandError,
    expand::with_home,
    export::export,
    extraction::{Finish, extract_files},
    file_filter,
    filter::Wildcard,
    folder,
    help::help,
    list::list,
    load::Loading,
    messages::Messages,
    output::CommandOutput,
    query::FrameMemory,
    render::Clean,
    save::{save_for_etwanalyzer, save_loaded},
    schema::schema,
    screen::{ColorChoice, Screen},
    session::{LoadedTrace, Session},
    sql,
    symbols::{NameSearch, SymbolNotes, store_names},
};

/// A session that takes commands.
pub struct Console {
    session: Session,
    color: ColorChoice,
    cancel: Cancel,
    symbol_notes: SymbolNotes,
}

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Continue,
    /// The end.
    Quit,
}

impl Console {
    /// A console without traces, whose commands end when `cancel` asks them to.
    pub fn new(symbol_path: Option<SymbolPath>, color: ColorChoice, cancel: Cancel) -> Console {
        Console {
            session: Session::new(symbol_path),
            color,
            cancel,
            symbol_notes: SymbolNotes::default(),
        }
    }

    /// What is loaded.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What asks commands to end.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Carries out one line. Results go to `out` (standard output, for its width and colours),
    /// everything else to `messages`.
    ///
    /// # Errors
    /// When the line means nothing, what it means cannot be done, or it was cancelled.
    pub fn run(
        &mut self,
        line: &str,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        match Command::parse(line)? {
            Some(command) => self.run_command(command, out, messages),
            None => Ok(Flow::Continue),
        }
    }

    /// Carries out a command, as [`Console::run`] does.
    ///
    /// # Errors
    /// When it cannot be done, or was cancelled.
    pub fn run_command(
        &mut self,
        command: Command,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        let cancel = self.cancel.clone();
        let spinner = messages.spinner();
        let mut out = CommandOutput::new(out, &cancel, spinner.clone());
        let result = self.carry_out(command, &mut out, messages);
        spinner.stop();
        match result {
            Err(CommandError::Output { .. }) if cancel.is_cancelled() => {
                Err(CommandError::Cancelled)
            }
            result => result,
        }
    }

    fn carry_out(
        &mut self,
        command: Command,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<Flow, CommandError> {
        let screen = Screen::stdout(self.color);
        match command {
            Command::Quit => return Ok(Flow::Quit),
            Command::Load(args) => self.load(&args, messages)?,
            Command::List => list(&self.session, out, screen)?,
            Command::Unload(names) => self.unload(&names)?,
            Command::Dir(args) => folder::list(&args, out, screen)?,
            Command::Export(args) => {
                export(&self.session, &args, &self.cancel, messages, out)?;
            }
            Command::Save(args) => self.save(&args, out, messages)?,
            Command::Schema(args) => schema(&args, out, screen)?,
            Command::Sql(args) => {
                sql::ask(&self.session, &args, &self.cancel, messages, out, screen)?;
                self.tell_symbols(false, messages);
            }
            Command::ConvertTime(args) => convert_time(&self.session, &args, out, messages)?,
            Command::Extract(args) => self.extract(&args, out, messages)?,
            Command::ChangeFolder(None) => folder::show_current(out)?,
            Command::ChangeFolder(Some(folder)) => {
                self.session.settle_paths();
                folder::change(&folder, messages)?;
            }
            Command::SymbolPath(args) => self.symbol_path(&args, out, messages)?,
            Command::Symbolize(args) => self.symbolize(&args, out, messages)?,
            Command::Set(setting) => self.set(setting, out, messages)?,
            Command::ClearScreen => screen.clear(out)?,
            Command::Help(words) => help(&words, out, screen)?,
            Command::Dump(what) => {
                if let Dump::ObjectRef(args) = &what {
                    tell_notes(&args.notes, messages);
                }
                messages.wait("searching");
                dump(&self.session, &what, &self.cancel, messages, out, screen)?;
                // The answer of that one is what there is to tell.
                self.tell_symbols(matches!(what, Dump::Symbols(_)), messages);
            }
        }
        out.flush()?;
        Ok(Flow::Continue)
    }

    /// Loads traces in place of those that are loaded, or beside them. As long as none can be loaded,
    /// the session stays as it is.
    ///
    /// # Errors
    /// Names every file that could not be loaded. When it was cancelled, the loaded traces stay as
    /// they were.
    pub fn load(
        &mut self,
        args: &LoadArgs,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        let loaded = if args.append { self.session.files() } else { &[] };
        let Loading { files, errors, .. } = Loading::run(args, loaded, &self.cancel, messages)?;
        if files.len() > 1 {
            messages.note(format_args!("loaded {} files", files.len()));
        }
        if args.append {
            self.session.add(files);
        } else if !files.is_empty() {
            self.session.load(files);
        }
        if errors.is_empty() { Ok(()) } else { Err(CommandError::Load { errors }) }
    }

    /// Shows or sets where symbols are looked for.
    fn symbol_path(
        &mut self,
        args: &SymbolPathArgs,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        match args.symbols.symbol_path()? {
            Some(path) => self.set_symbol_path(&path),
            None if args.retry => {}
            None => writeln!(out, "{}", Clean(&self.session.symbol_path().to_string()))?,
        }
        if args.retry {
            self.session.retry_symbols();
            self.symbol_notes = SymbolNotes::default();
            messages.note("symbols that were missing are looked for again");
        }
        Ok(())
    }

    /// Stores the names of all frames in loaded extracts.
    fn symbolize(
        &mut self,
        args: &SymbolizeArgs,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        let wanted = file_filter::choose(self.session.files(), &args.files, messages)?;
        let wanted: Vec<usize> = wanted.into_iter().map(|(index, _)| index).collect();
        for index in wanted {
            let Some(file) = self.session.files().get(index) else { continue };
            let (symbolizer, cancel) = (self.session.symbolizer(), &self.cancel);
            let search = NameSearch { frames: &file.frames, symbolizer, cancel };
            let line = store_names(&file.trace, search, messages)?;
            writeln!(out, "{line}")?;
            self.tell_symbols(false, messages);
            self.session.reload(index)?;
        }
        Ok(())
    }

    /// Writes a loaded trace as an archive.
    fn save(
        &mut self,
        args: &SaveArgs,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        let replaced = save_loaded(&self.session, args, &self.cancel, messages, out)?;
        self.tell_symbols(false, messages);
        if let Some(index) = replaced {
            self.session.reload(index)?;
        }
        Ok(())
    }

    /// Tells what is missing for names of functions, unless that was told already.
    fn tell_symbols(&mut self, is_told: bool, messages: &mut Messages<'_>) {
        let session = &self.session;
        if let Some(symbolizer) = session.used_symbolizer() {
            let is_served = |module: &ModuleIdentity| {
                session.files().iter().any(|file| file.frames.has_served(module))
            };
            self.symbol_notes.tell(symbolizer, messages, is_told, is_served);
        }
    }

    fn set_symbol_path(&mut self, path: &SymbolPath) {
        self.session.set_symbol_path(path);
        self.symbol_notes = SymbolNotes::default();
    }

    /// Extracts traces, which stay unloaded. What is said about symbols counts for the session.
    fn extract(
        &mut self,
        args: &ExtractArgs,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        tell_notes(&args.notes, messages);
        if let Some(path) = args.symbols.symbol_path()? {
            if !args.store_names && !args.etwanalyzer {
                messages.note(format_args!(
                "note: functions get their names when stacks are shown; the symbol path for that is \
                 .sympath {path}, or --symbol-path '{path}' in front of a command line"
            ));
            }
            self.set_symbol_path(&path);
        }
        let (session, cancel) = (&self.session, &self.cancel);
        let finish = |output: &Path, messages: &mut Messages<'_>| {
            let (trace, frames) = (Trace::open(output)?, FrameMemory::default());
            let search = NameSearch { frames: &frames, symbolizer: session.symbolizer(), cancel };
            if args.etwanalyzer {
                save_for_etwanalyzer(&trace, output, search, messages)
            } else {
                store_names(&trace, search, messages)
            }
        };
        let is_unfinished = args.store_names || args.etwanalyzer;
        let finish = is_unfinished.then_some(&finish as &Finish<'_>);
        let tally = extract_files(args, cancel, finish, out, messages)?;
        self.tell_symbols(false, messages);
        match tally.failed {
            0 => Ok(()),
            failed => Err(CommandError::NotExtracted { failed, files: tally.files }),
        }
    }

    /// Changes how the session prints, and tells what counts from now on.
    fn set(
        &mut self,
        setting: Setting,
        out: &mut dyn Write,
        messages: &mut Messages<'_>,
    ) -> Result<(), CommandError> {
        let told = self.session.settings.set(setting);
        match setting {
            // ETWAnalyzer's sentences, where ETWAnalyzer writes them.
            Setting::Clip(_) => writeln!(out, "{told}")?,
            _ => messages.note(told),
        }
        Ok(())
    }

    fn unload(&mut self, names: &[String]) -> Result<(), CommandError> {
        if names.is_empty() {
            self.session.load(Vec::new());
            return Ok(());
        }
        let names: Vec<Unloaded> = names.iter().map(|name| Unloaded::new(name)).collect();
        for name in &names {
            if !self.session.files().iter().any(|file| name.is(file)) {
                return Err(CommandError::NotLoaded { name: name.typed.to_owned() });
            }
        }
        self.session.retain(|file| !names.iter().any(|name| name.is(file)));
        Ok(())
    }
}

/// Tells which options have no effect, each once.
fn tell_notes(notes: &[&str], messages: &mut Messages<'_>) {
    for (at, note) in notes.iter().enumerate() {
        if !notes.iter().take(at).any(|told| told == note) {
            messages.note(format_args!("note: {note}"));
        }
    }
}

/// A name behind `.unload`.
struct Unloaded<'a> {
    typed: &'a str,
    wildcard: Option<Wildcard>,
}

impl Unloaded<'_> {
    fn new(typed: &str) -> Unloaded<'_> {
        Unloaded { typed, wildcard: Wildcard::new(typed).ok() }
    }

    /// Whether a file is meant: by its path as it was named, or by its file name.
    fn is(&self, file: &LoadedTrace) -> bool {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let path = file.path.to_string_lossy();
        let matches = |text: &str| self.wildcard.as_ref().is_some_and(|w| w.matches(text));
        file.path == with_home(self.typed)
            || Path::new(self.typed) == Path::new(name.as_ref())
            || matches(&path)
            || matches(&name)
    }
}
