//! What a test and the thread that feeds its screen share.

use std::io::{Read as _, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pty_process::blocking::Pty;
use vt100::{Callbacks, Parser};

/// State that the reading thread shares with the test.
pub struct SharedScreen {
    state: Mutex<TerminalState>,
    pub changed: Condvar,
}

/// The screen, and whether a test is watching it.
pub struct TerminalState {
    pub parser: Parser<ScreenReplies>,
    /// Whether the program has closed the terminal.
    pub is_closed: bool,
    /// Whether a test is waiting for something to appear.
    pub is_watched: bool,
    /// Whether the screen has changed since that test looked.
    pub is_unseen: bool,
}

impl SharedScreen {
    pub fn new(parser: Parser<ScreenReplies>) -> Self {
        let state = TerminalState { parser, is_closed: false, is_watched: false, is_unseen: false };
        SharedScreen { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, TerminalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the other side has done something.
    fn wait<'a>(&'a self, state: MutexGuard<'a, TerminalState>) -> MutexGuard<'a, TerminalState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`SharedScreen::wait`], with a time limit.
    pub fn wait_for<'a>(
        &'a self,
        state: MutexGuard<'a, TerminalState>,
        time: Duration,
    ) -> MutexGuard<'a, TerminalState> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Lets the screen change again.
    pub fn look_away(&self, mut state: MutexGuard<'_, TerminalState>) {
        state.is_watched = false;
        drop(state);
        self.changed.notify_all();
    }
}

/// Replies that the screen owes the program, and sequences it did not understand.
#[derive(Default)]
pub struct ScreenReplies {
    pub pending: Vec<u8>,
    pub unknown: Vec<String>,
}

impl Callbacks for ScreenReplies {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        match (first, params, last) {
            // "Where is the cursor?"
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                self.pending.extend(answer.into_bytes());
            }
            _ => self.unknown.push(format!("CSI {first:?} {second:?} {params:?} {last}")),
        }
    }

    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.unknown.push(format!("control {byte:#04x}"));
    }

    fn unhandled_char(&mut self, _: &mut vt100::Screen, char: char) {
        self.unknown.push(format!("character {char:?}"));
    }
}

/// Feeds the screen until the program closes the terminal. A watching test sees each piece of the output.
pub fn read(pty: &Pty, shared: &SharedScreen) {
    let mut buffer = [0; 4096];
    loop {
        let mut terminal = pty;
        // When the other side closes, some systems report an error, others end of file.
        let count = terminal.read(&mut buffer).unwrap_or(0);
        let mut state = shared.lock();
        state.is_closed = count == 0;
        state.parser.process(&buffer[..count]);
        let answers = std::mem::take(&mut state.parser.callbacks_mut().pending);
        state.is_unseen = true;
        shared.changed.notify_all();
        while state.is_watched && state.is_unseen {
            state = shared.wait(state);
        }
        drop(state);
        if count == 0 {
            return;
        }
        // The program may have exited without waiting for the answer.
        let _ = terminal.write_all(&answers);
    }
}
