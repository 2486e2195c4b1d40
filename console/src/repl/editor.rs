//! The line editor: keys, menu, history.

use std::path::PathBuf;

use nu_ansi_term::{Color, Style};
use reedline::{
    ColumnarMenu, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Reedline,
    ReedlineEvent, ReedlineMenu, default_emacs_keybindings,
};

use super::{CommandCompleter, CommandHighlighter, CommandHinter, SharedKnown};
use crate::{
    messages::Messages,
    screen::{ColorChoice, Screen},
};

const MENU: &str = "completion";

/// Lines that are remembered.
const HISTORY_LINES: usize = 10_000;

/// A line editor with everything the console offers.
pub(super) fn editor(
    known: SharedKnown,
    color: ColorChoice,
    messages: &mut Messages<'_>,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let is_colored = Screen::stderr(color).color;
    let dim = if is_colored { Style::new().fg(Color::DarkGray) } else { Style::new() };
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        .with_columns(4)
        .with_description_text_style(dim);
    let mut editor = Reedline::create()
        .with_completer(Box::new(CommandCompleter::new(known)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_highlighter(Box::new(CommandHighlighter))
        .with_hinter(Box::new(CommandHinter::new(dim)))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_ansi_colors(is_colored);
    // As shells have it: what starts with a blank is not remembered, so blank lines are not either.
    editor = editor.with_history_exclusion_prefix(Some(" ".into()));
    match history() {
        Some(Ok(history)) => editor = editor.with_history(Box::new(history)),
        Some(Err(error)) => messages.note(format_args!("the history cannot be kept: {error}")),
        None => {}
    }
    editor
}

/// The history of all sessions, in the platform's folder for a program's data; none where there is
/// no such folder.
fn history() -> Option<reedline::Result<FileBackedHistory>> {
    let file: PathBuf = dirs::data_local_dir()?.join("handlescope").join("history.txt");
    Some(FileBackedHistory::with_file(HISTORY_LINES, file))
}
