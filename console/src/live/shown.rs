//! The table on a terminal, and its keys.

use std::time::Duration;

use handlescope_model::Untrusted;

use super::picture::{TableOrder, draw_table, draw_text};
use super::state::{Live, TICK, quietly};
use handlescope_commands::CommandError;
use handlescope_commands::console::Console;
use handlescope_query::OpenGroup;
use handlescope_session::terminal::{FullScreen, KeyPress, Messages};

/// Number of lines that a page scrolls.
const PAGE: usize = 20;

/// The state of the screen.
#[derive(Default)]
pub struct ScreenState {
    groups: Vec<OpenGroup>,
    /// Index of the first group on the screen.
    first: usize,
    order: TableOrder,
    /// The answer of `.why`, and the index of its first line on the screen.
    text: Option<(Vec<String>, usize)>,
    message: String,
}

/// Shows the table until q is pressed.
pub fn run(
    live: &mut Live,
    console: &mut Console,
    messages: &mut Messages<'_>,
) -> Result<(), CommandError> {
    let terminal = |source| CommandError::Terminal { source };
    let mut shown = ScreenState::default();
    let mut screen = FullScreen::enter().map_err(terminal)?;
    let mut is_last = false;
    while !console.cancel.is_cancelled() {
        live.receive()?;
        // After the end, refreshes once more, with all events.
        if !is_last && let Some(groups) = live.refreshed(console)? {
            shown.groups = groups;
            shown.order.sort(&mut shown.groups);
            is_last = live.has_ended();
        }
        screen.draw(|frame| shown.draw(live, frame)).map_err(terminal)?;
        let wait = if live.has_ended() { TICK } else { Duration::ZERO };
        if let Some(key) = screen.key(wait).map_err(terminal)?
            && shown.handle_key(key, live, console)
        {
            break;
        }
    }
    drop(screen);
    live.stop()?;
    if !shown.message.is_empty() {
        messages.note(&shown.message);
    }
    Ok(())
}

impl ScreenState {
    fn draw(&self, live: &Live, frame: &mut ratatui::Frame<'_>) {
        match &self.text {
            Some((lines, first)) => draw_text(frame, lines, *first),
            None => {
                let mut heading = live.heading();
                if !self.message.is_empty() {
                    heading.message.clone_from(&self.message);
                }
                let first = self.first.min(self.groups.len().saturating_sub(1));
                draw_table(frame, &heading, &self.groups, first, self.order);
            }
        }
    }

    /// Handles a key; returns whether it asks to quit.
    fn handle_key(&mut self, key: KeyPress, live: &mut Live, console: &mut Console) -> bool {
        if let Some((lines, first)) = &mut self.text {
            match key {
                KeyPress::Leave | KeyPress::Letter('q' | 'w') => self.text = None,
                key => *first = scrolled(*first, lines.len(), key),
            }
            return false;
        }
        match key {
            KeyPress::Leave | KeyPress::Letter('q') => return true,
            KeyPress::Letter('s') => {
                self.message = match live.save(&console.cancel) {
                    Ok(path) => format!("saved {}", Untrusted(path)),
                    Err(error) => format!("error: {error}"),
                };
            }
            KeyPress::Letter('w') => match why(live, console) {
                Ok(text) => self.text = Some((text.lines().map(str::to_owned).collect(), 0)),
                Err(error) => self.message = format!("error: {error}"),
            },
            KeyPress::Letter(letter) => {
                if let Some(order) = TableOrder::from_letter(letter) {
                    self.order = order;
                    order.sort(&mut self.groups);
                }
            }
            key => self.first = scrolled(self.first, self.groups.len(), key),
        }
        false
    }
}

/// Returns the first line to show after a key, of `count` lines.
fn scrolled(first: usize, count: usize, key: KeyPress) -> usize {
    let last = count.saturating_sub(1);
    match key {
        KeyPress::Up => first.saturating_sub(1),
        KeyPress::Down => (first + 1).min(last),
        KeyPress::PageUp => first.saturating_sub(PAGE),
        KeyPress::PageDown => (first + PAGE).min(last),
        KeyPress::Leave | KeyPress::Letter(_) => first,
    }
}

/// Returns the answer of `.why` for all events so far.
fn why(live: &mut Live, console: &mut Console) -> Result<String, CommandError> {
    live.load(console)?;
    let mut text = Vec::new();
    quietly(|messages| console.run(".why", &mut text, messages))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
