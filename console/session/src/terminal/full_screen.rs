//! Takes over the whole terminal, for views that refresh themselves.

use std::io::{self, Stdout};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

use super::standard;

/// The terminal of standard output. Dropping it restores the previous state.
pub struct FullScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// A pressed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPress {
    Letter(char),
    Up,
    Down,
    PageUp,
    PageDown,
    /// Escape, or Ctrl-C.
    Leave,
}

impl FullScreen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// If the terminal cannot do that.
    pub fn enter() -> io::Result<FullScreen> {
        enable_raw_mode()?;
        // From here on, an error drops it and restores the terminal.
        let mut screen =
            FullScreen { terminal: Terminal::new(CrosstermBackend::new(standard::out()))? };
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen)?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }

    /// Returns the next key; `None` if none comes within `wait`, or for any other event.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn key(&mut self, wait: Duration) -> io::Result<Option<KeyPress>> {
        if !event::poll(wait)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key),
            _ => None,
        })
    }
}

fn pressed(key: KeyEvent) -> Option<KeyPress> {
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => KeyPress::Leave,
        KeyCode::Char(letter) => KeyPress::Letter(letter.to_ascii_lowercase()),
        KeyCode::Up => KeyPress::Up,
        KeyCode::Down => KeyPress::Down,
        KeyCode::PageUp => KeyPress::PageUp,
        KeyCode::PageDown => KeyPress::PageDown,
        KeyCode::Esc => KeyPress::Leave,
        _ => return None,
    })
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // There is nowhere left to report an error.
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
