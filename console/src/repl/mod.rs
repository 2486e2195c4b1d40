//! The prompt.

mod completer;
mod editor;
mod filter_values;
mod highlighter;
mod hinter;
mod history;
mod paths;
mod prompt;
mod sql_completer;
mod values;

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use reedline::Signal;

use crate::{
    cancel::Cancelled,
    console::{Console, Flow},
    error::CommandError,
    messages::Messages,
    screen::ColorChoice,
};

pub use completer::{CommandCompleter, complete};
pub use highlighter::CommandHighlighter;
pub use hinter::CommandHinter;
pub(crate) use paths::starts_with;
pub use values::TraceValues;

/// What completion knows about the session, kept up to date between two commands.
#[derive(Debug, Default)]
pub struct Known {
    /// Paths of the loaded traces.
    pub loaded: Vec<String>,
    /// What the loaded traces offer.
    pub values: Vec<Arc<TraceValues>>,
}

/// [`Known`], shared with the line editor.
pub type SharedKnown = Arc<Mutex<Known>>;

/// Reads commands from the terminal and carries them out, until `.quit` or Ctrl-D. A command that
/// fails is told. Ctrl-C ends the command that runs; at the prompt it clears the line.
///
/// # Errors
/// When the terminal cannot be used.
pub fn run(
    console: &mut Console,
    color: ColorChoice,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<(), CommandError> {
    let known = SharedKnown::default();
    let mut editor = editor::editor(Arc::clone(&known), color, messages);
    messages.note(".help lists the commands, Tab completes, Ctrl-D leaves");
    loop {
        refresh(console, &known);
        let prompt = prompt::FilePrompt::new(console.session());
        let signal =
            editor.read_line(&prompt).map_err(|source| CommandError::Terminal { source })?;
        match signal {
            Signal::Success(line) => {
                // Written at once, so that it survives whatever happens, and so that consoles beside
                // this one find it. A history that cannot be kept is no reason to stop.
                let _ = editor.sync_history();
                if carry_out(console, &line, out, messages)? == Flow::Quit {
                    return Ok(());
                }
            }
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
}

/// Carries out one line and tells what went wrong.
fn carry_out(
    console: &mut Console,
    line: &str,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<Flow, CommandError> {
    console.cancel().reset();
    match console.run(line, out, messages) {
        Ok(flow) => Ok(flow),
        Err(error) if error.is_broken_pipe() => Ok(Flow::Quit),
        Err(error) => {
            out.flush()?;
            match error {
                CommandError::Cancelled => messages.note(Cancelled),
                error => messages.error(error),
            }
            Ok(Flow::Continue)
        }
    }
}

fn refresh(console: &Console, known: &SharedKnown) {
    let files = console.session().files();
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    known.loaded = files.iter().map(|file| file.path.display().to_string()).collect();
    known.values = files.iter().map(|file| Arc::clone(&file.values)).collect();
}
