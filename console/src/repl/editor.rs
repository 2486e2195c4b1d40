//! The line editor: keys, menu, history.

use std::sync::Arc;

use handlescope_model::Reason;
use reedline::{
    ColumnarMenu, Emacs, InputMode, KeyCode, KeyModifiers, MenuBuilder, Reedline, ReedlineEvent,
    ReedlineMenu, default_emacs_keybindings,
};

use super::{
    highlighter::CommandHighlighter, hinter::CommandHinter, history::LineHistory, menu::QuietMenu,
    validator::QueryValidator,
};
use crate::completion::{CommandCompleter, SharedKnown};
use crate::terminal::{ColorChoice, Messages, Role, Screen};

const MENU: &str = "completion";

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
    let dim = if is_colored { Role::Hint } else { Role::Plain }.style();
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        // A table after the cursor decides the columns in front of it.
        .with_input_mode(InputMode::FullBuffer)
        .with_columns(4)
        .with_description_text_style(dim);
    let mut editor = Reedline::create()
        .with_completer(Box::new(CommandCompleter::new(Arc::clone(&known))))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(QuietMenu(menu))))
        .with_validator(Box::new(QueryValidator))
        .use_bracketed_paste(true)
        .with_highlighter(Box::new(CommandHighlighter::new(Arc::clone(&known))))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_ansi_colors(is_colored);
    // Without colours a hint would look like typed text.
    if is_colored {
        editor = editor.with_hinter(Box::new(CommandHinter::new(known)));
    }
    match LineHistory::open() {
        Some(Ok(history)) => editor = editor.with_history(Box::new(history)),
        Some(Err(error)) => {
            messages.note(format_args!("the history cannot be kept: {}", Reason(&error.into())));
        }
        None => {}
    }
    editor
}
