//! The prompt.

mod completer;
mod editor;
mod filter_values;
mod highlighter;
mod hinter;
mod paths;
mod prompt;
mod values;

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use reedline::Signal;

use crate::{
    console::{Console, Flow},
    error::CommandError,
    messages::Messages,
    screen::ColorChoice,
};

pub use completer::CommandCompleter;
pub use highlighter::CommandHighlighter;
pub use hinter::CommandHinter;
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
/// fails is told; Ctrl-C clears the line.
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
            Signal::Success(line) => match console.run(&line, out, messages) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Quit) => return Ok(()),
                Err(error) if error.is_broken_pipe() => return Ok(()),
                Err(error) => {
                    out.flush()?;
                    messages.error(error);
                }
            },
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
}

fn refresh(console: &Console, known: &SharedKnown) {
    let files = console.session().files();
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    known.loaded = files.iter().map(|file| file.path.display().to_string()).collect();
    known.values = files.iter().map(|file| Arc::clone(&file.values)).collect();
}
