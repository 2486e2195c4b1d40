//! The prompt.

mod editor;
mod highlighter;
mod offer;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use handlescope_model::guard::lock;
use reedline::{Prompt, PromptEditMode, Reedline, Signal};

use handlescope_commands::completion::{KnownViews, SharedCompletionValues};
use handlescope_commands::console::Console;
use handlescope_commands::{CommandError, Flow, script};
use handlescope_session::cancel::{self, Cancelled, InputWait};
use handlescope_session::terminal::{Messages, standard};

use self::offer::OfferResult;
pub use highlighter::CommandHighlighter;

/// Reads commands from the terminal and runs them until `.quit` or Ctrl-D. Reports commands that fail. Ctrl-C ends the
/// running command; at the prompt it clears the line.
///
/// # Errors
/// If the terminal cannot be used.
pub fn run(
    console: &mut Console,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<(), CommandError> {
    let mut color = console.session.settings.color();
    let known = SharedCompletionValues::default();
    let mut input = if standard::is_screen() {
        let editor = editor::editor(Arc::clone(&known), color, messages);
        messages.note(".help lists the commands, Tab completes, Ctrl-D leaves");
        LineSource::Editor(Box::new(editor))
    } else {
        // The editor queries the terminal through both outputs, and would wait for an answer from a file.
        messages.note(
            ".help lists the commands, Ctrl-D leaves; Tab completes only where both results and messages go \
             to the terminal",
        );
        LineSource::Lines
    };
    // Nobody is reading an answer that goes elsewhere, so symbols are only offered at a terminal.
    console.session.offers_symbols = io::stdin().is_terminal() && standard::out().is_terminal();
    while !cancel::is_ending() {
        refresh(console, &known);
        let color_now = console.session.settings.color();
        if color_now != color
            && let LineSource::Editor(editor) = &mut input
        {
            color = color_now;
            **editor = editor::editor(Arc::clone(&known), color, messages);
        }
        let prompt = editor::FilePrompt::new(&console.session);
        let signal = cancel::waiting(InputWait::Prompt, || input.read(&prompt));
        let signal = signal.map_err(|source| CommandError::Terminal { source })?;
        match signal {
            Signal::Success(line) => {
                input.keep_history();
                let is_editor = matches!(input, LineSource::Editor(_));
                if execute_all(console, &line, is_editor, out, messages)? == Flow::Quit {
                    return Ok(());
                }
            }
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
    Err(Cancelled.into())
}

/// The source of lines.
enum LineSource {
    /// A line editor with completion and a history.
    Editor(Box<Reedline>),
    /// Plain lines from the terminal, if not all outputs go to it.
    Lines,
}

impl LineSource {
    fn read(&mut self, prompt: &dyn Prompt) -> io::Result<Signal> {
        if let LineSource::Editor(editor) = self {
            return editor.read_line(prompt);
        }
        let mut shown = standard::prompt();
        let indicator = prompt.render_prompt_indicator(PromptEditMode::Default);
        write!(shown, "{}{indicator}", prompt.render_prompt_left())?;
        let mut text = String::new();
        loop {
            shown.flush()?;
            if io::stdin().read_line(&mut text)? == 0 {
                writeln!(shown)?;
                return Ok(if text.is_empty() { Signal::CtrlD } else { Signal::Success(text) });
            }
            if !script::is_waiting(text.strip_suffix('\n').unwrap_or(&text)) {
                return Ok(Signal::Success(text));
            }
            write!(shown, "{}", prompt.render_prompt_multiline_indicator())?;
        }
    }

    /// Writes the last line at once, so that it survives a crash and other consoles find it. A history that cannot be
    /// saved does not stop the session.
    fn keep_history(&mut self) {
        if let LineSource::Editor(editor) = self {
            let _ = editor.sync_history();
        }
    }
}

/// Runs the commands in typed or pasted text, until one is cancelled.
fn execute_all(
    console: &mut Console,
    text: &str,
    is_editor: bool,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<Flow, CommandError> {
    console.cancel.reset();
    for step in script::steps(text.as_bytes()) {
        let line = step?.line;
        if execute(console, &line, out, messages)? == Flow::Quit {
            return Ok(Flow::Quit);
        }
        if console.cancel.is_cancelled() {
            break;
        }
        let accepted = offer::offer(&mut console.session, is_editor, messages);
        let accepted = accepted.map_err(|source| CommandError::Terminal { source })?;
        // Ctrl-C was an answer to the question.
        console.cancel.reset();
        if let Some(OfferResult::Always(command)) = &accepted {
            execute(console, command, out, messages)?;
        }
        // Runs the command again: it asks the server for what it needs, and its answer has names.
        if accepted.is_some() {
            execute(console, &line, out, messages)?;
        }
        if console.cancel.is_cancelled() {
            break;
        }
    }
    Ok(Flow::Continue)
}

/// Runs one command and reports errors.
fn execute(
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
            if error.is_cancelled() {
                messages.note(Cancelled);
            } else {
                messages.error(error);
            }
            Ok(Flow::Continue)
        }
    }
}

fn refresh(console: &Console, known: &SharedCompletionValues) {
    let files = &console.session.files;
    let mut known = lock(known);
    known.over_dataset = console.session.dataset.is_some();
    known.loaded = files.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    let names = files.iter().flat_map(|file| &file.snapshots).map(|snapshot| snapshot.name.clone());
    known.snapshots = names.collect::<BTreeSet<String>>().into_iter().collect();
    known.aliases = console.session.settings.aliases.clone();
    known.values = files.iter().map(|file| Arc::clone(&file.values)).collect();
    known.views = KnownViews::new(console.session.settings.sql_views());
}

#[cfg(test)]
#[cfg(unix)]
mod panic_tests;
