//! The prompt.

mod editor;
mod highlighter;
mod hinter;
mod history;
mod menu;
mod prompt;
mod validator;

use std::{collections::BTreeSet, io::Write, sync::Arc};

use handlescope_model::guard::lock;
use reedline::Signal;

use crate::{
    cancel::{self, Cancelled, Wait},
    commands::{CommandError, Flow},
    completion::SharedKnown,
    console::Console,
    script,
    terminal::{ColorChoice, Messages},
};

pub use highlighter::CommandHighlighter;
pub use hinter::CommandHinter;

/// Reads commands from the terminal and carries them out, until `.quit` or Ctrl-D. A command that
/// fails is reported. Ctrl-C ends the command that runs; at the prompt it clears the line.
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
    while !cancel::is_ending() {
        refresh(console, &known);
        let prompt = prompt::FilePrompt::new(&console.session);
        let signal = cancel::waiting(Wait::Prompt, || editor.read_line(&prompt));
        let signal = signal.map_err(|source| CommandError::Terminal { source })?;
        match signal {
            Signal::Success(line) => {
                // Written at once, so that it survives whatever happens, and so that consoles beside
                // this one find it. A history that cannot be kept does not stop the session.
                let _ = editor.sync_history();
                if carry_out_all(console, &line, out, messages)? == Flow::Quit {
                    return Ok(());
                }
            }
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
    Err(Cancelled.into())
}

/// Carries out the commands of what was typed or pasted, up to one that is cancelled.
fn carry_out_all(
    console: &mut Console,
    text: &str,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<Flow, CommandError> {
    console.cancel.reset();
    for step in script::steps(text.as_bytes()) {
        if carry_out(console, &step?.line, out, messages)? == Flow::Quit {
            return Ok(Flow::Quit);
        }
        if console.cancel.is_cancelled() {
            break;
        }
    }
    Ok(Flow::Continue)
}

/// Carries out one command and reports what went wrong.
fn carry_out(
    console: &mut Console,
    line: &str,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<Flow, CommandError> {
    match console.run(line, out, messages) {
        Ok(flow) => Ok(flow),
        Err(error) if error.is_broken_pipe() => Ok(Flow::Quit),
        Err(error) => {
            out.flush()?;
            match error.is_cancelled() {
                true => messages.note(Cancelled),
                false => messages.error(error),
            }
            Ok(Flow::Continue)
        }
    }
}

fn refresh(console: &Console, known: &SharedKnown) {
    let files = &console.session.files;
    let mut known = lock(known);
    known.loaded = files.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    let names = files.iter().flat_map(|file| &file.snapshots).map(|snapshot| snapshot.name.clone());
    known.snapshots = names.collect::<BTreeSet<String>>().into_iter().collect();
    known.values = files.iter().map(|file| Arc::clone(&file.values)).collect();
}

#[cfg(test)]
mod option_tests;
#[cfg(test)]
#[cfg(unix)]
mod panic_tests;
