//! The `handlescope` program in a terminal: a pseudo-terminal with a terminal emulator as its screen.
//!
//! Nothing here sleeps. A thread feeds the program's output to the emulator, and tests wait until the screen shows what
//! they expect.

mod shared;
mod view;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{self, Pty};
use vt100::{Cell, Color, Parser};

use crate::binary::{handlescope, handlescope_path};
use shared::{ScreenReplies, SharedScreen, TerminalState, read};
pub use view::ScreenView;
use view::scrolled;

/// Writes a configuration if there is none, so that the prompt offers no downloads.
fn decline_symbols(command: &Command) {
    let is_handlescope = command.get_program() == handlescope_path();
    if is_handlescope && command.get_args().any(|argument| argument == "-c") {
        return;
    }
    let folder = command.get_envs().find(|(name, _)| *name == "XDG_CONFIG_HOME");
    let Some((_, Some(folder))) = folder else { return };
    let settings = Path::new(folder).join("handlescope/handlescope.toml");
    if !settings.exists() {
        fs::create_dir_all(settings.with_file_name("")).expect("a folder for the configuration");
        fs::write(&settings, "symbol-download = \"never\"\n").expect("a configuration");
    }
}

/// Maximum time that a test waits for the screen. Only a failing test waits that long.
const DEADLINE: Duration = Duration::from_secs(60);

/// Number of lines kept above the screen.
const SCROLLBACK: usize = 2_000;

/// Keys that are not characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalKey {
    Tab,
    Enter,
    Escape,
    /// Arrow up, and arrow down.
    Up,
    Down,
    /// Control and a lower-case letter.
    Ctrl(char),
}

impl TerminalKey {
    /// Returns the bytes that a terminal sends for the key.
    fn bytes(self) -> Vec<u8> {
        match self {
            TerminalKey::Tab => b"\t".to_vec(),
            TerminalKey::Enter => b"\r".to_vec(),
            TerminalKey::Escape => b"\x1b".to_vec(),
            TerminalKey::Up => b"\x1b[A".to_vec(),
            TerminalKey::Down => b"\x1b[B".to_vec(),
            TerminalKey::Ctrl(letter) => vec![letter as u8 & 0x1f],
        }
    }
}

/// A running program and its screen.
pub struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    shared: Arc<SharedScreen>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts the program with these arguments in a terminal of this size. It runs in `home`, in the same clean
    /// environment as [`handlescope`].
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn spawn(columns: u16, rows: u16, arguments: &[&str], home: &Path) -> Self {
        let mut command = handlescope(home);
        command.args(arguments);
        Self::start(command, columns, rows)
    }

    /// Starts a command in a terminal of this size, which calls itself xterm unless the command says otherwise. Without
    /// a configuration, the prompt does not offer to download symbols.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        decline_symbols(&command);
        let (pty, program_side) = blocking::open().expect("a pseudo-terminal can be opened");
        pty.resize(Size::new(rows, columns)).expect("a terminal can have any size");
        let child =
            blocking::Command::from(command).spawn(program_side).expect("the program starts");
        let parser =
            Parser::new_with_callbacks(rows, columns, SCROLLBACK, ScreenReplies::default());
        let shared = Arc::new(SharedScreen::new(parser));
        let pty = Arc::new(pty);
        let reader = thread::spawn({
            let (pty, shared) = (Arc::clone(&pty), Arc::clone(&shared));
            move || read(&pty, &shared)
        });
        Self { child, pty, shared, reader: Some(reader) }
    }

    /// Types a text.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn send(&self, text: &str) {
        self.write(text.as_bytes());
    }

    /// Presses a key.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn press(&self, key: TerminalKey) {
        self.write(&key.bytes());
    }

    fn write(&self, bytes: &[u8]) {
        (&*self.pty).write_all(bytes).expect("the terminal takes what is typed");
    }

    /// Waits until the screen is as expected.
    ///
    /// # Panics
    /// If it is not in time, or the program exits first; the message shows the screen.
    #[track_caller]
    pub fn wait_until(&self, expected: &str, is_so: impl FnMut(&ScreenView<'_>) -> bool) {
        let state = self.watch(expected, is_so);
        self.shared.look_away(state);
    }

    /// Presses a key that makes the program busy, and another one as soon as the screen is as expected. A program with
    /// more output than the terminal can hold cannot have finished by then, however slow this test is.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`]; also if the terminal is gone.
    #[track_caller]
    pub fn press_while_busy(
        &self,
        start: TerminalKey,
        expected: &str,
        is_so: impl FnMut(&ScreenView<'_>) -> bool,
        key: TerminalKey,
    ) {
        self.shared.lock().is_watched = true;
        self.press(start);
        let state = self.watch(expected, is_so);
        self.press(key);
        self.shared.look_away(state);
    }

    /// Waits until the screen is as expected, and freezes it. While waiting, the screen changes only after the test has
    /// looked, so that nothing is missed on a busy machine.
    #[track_caller]
    fn watch(
        &self,
        expected: &str,
        mut is_so: impl FnMut(&ScreenView<'_>) -> bool,
    ) -> MutexGuard<'_, TerminalState> {
        let deadline = Instant::now() + DEADLINE;
        let mut state = self.shared.lock();
        state.is_watched = true;
        loop {
            let (is_closed, view) = (state.is_closed, ScreenView::new(state.parser.screen_mut()));
            if is_so(&view) {
                return state;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if is_closed || left.is_zero() {
                let what = if is_closed { "but the program ended:" } else { "the screen is" };
                let message = format!("waited for {expected}, {what}\n{view}");
                self.shared.look_away(state);
                panic!("{message}");
            }
            state.is_unseen = false;
            self.shared.changed.notify_all();
            state = self.shared.wait_for(state, left);
        }
    }

    /// Waits until a text is on the screen.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`].
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |view| view.lines().any(|line| line.contains(text)));
    }

    /// Waits until the line before the cursor is exactly this text.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`].
    #[track_caller]
    pub fn wait_for_line(&self, text: &str) {
        self.wait_until(&format!("the line {text:?}"), |view| view.before_cursor() == text);
    }

    /// Types a line after the prompt, presses Enter and waits for the next prompt.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`].
    #[track_caller]
    pub fn run(&self, prompt: &str, line: &str) {
        self.wait_for_line(prompt);
        self.send(line);
        self.wait_for_line(&format!("{prompt}{line}"));
        self.enter(prompt);
    }

    /// Presses Enter and waits for a prompt below the line.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`].
    #[track_caller]
    pub fn enter(&self, prompt: &str) {
        self.press_for_prompt(TerminalKey::Enter, prompt);
    }

    /// Presses a key that ends the line, and waits for a prompt below it.
    ///
    /// # Panics
    /// See [`Terminal::wait_until`].
    #[track_caller]
    pub fn press_for_prompt(&self, key: TerminalKey, prompt: &str) {
        let row = self.view(|view| view.cursor_row());
        self.press(key);
        self.wait_until(&format!("the next prompt {prompt:?}"), |view| {
            view.cursor_row() > row && view.before_cursor() == prompt
        });
    }

    /// Returns what `look` finds on the screen.
    pub fn view<T>(&self, look: impl FnOnce(&ScreenView<'_>) -> T) -> T {
        look(&ScreenView::new(self.shared.lock().parser.screen_mut()))
    }

    /// Returns all lines the program has written, without trailing spaces.
    #[must_use]
    pub fn transcript(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.each_row(|view, row| lines.push(view.line(row)));
        lines
    }

    /// Returns the text with a foreground or background colour, line by line.
    #[must_use]
    pub fn colored(&self) -> Vec<String> {
        let mut colored = Vec::new();
        self.each_row(|view, row| {
            let is_colored =
                |cell: &&Cell| cell.fgcolor() != Color::Default || cell.bgcolor() != Color::Default;
            let text: String = view.cells(row).filter(is_colored).map(Cell::contents).collect();
            colored.extend(Some(text).filter(|text| !text.is_empty()));
        });
        colored
    }

    /// Returns the rows of lines that were too wide for the screen and continued in the next row.
    #[must_use]
    pub fn too_wide(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.each_row(|view, row| {
            lines.extend(view.screen.row_wrapped(row).then(|| view.line(row)));
        });
        lines
    }

    /// Calls `look` for every row, from the first one on.
    fn each_row(&self, mut look: impl FnMut(&ScreenView<'_>, u16)) {
        let mut state = self.shared.lock();
        let screen = state.parser.screen_mut();
        let above = scrolled(screen);
        for up in (1..=above).rev() {
            screen.set_scrollback(up);
            look(&ScreenView { screen, above }, 0);
        }
        screen.set_scrollback(0);
        for row in 0..screen.size().0 {
            look(&ScreenView { screen, above }, row);
        }
    }

    /// Returns sequences that the program wrote and the terminal does not understand.
    #[must_use]
    pub fn not_understood(&self) -> Vec<String> {
        self.shared.lock().parser.callbacks().unknown.clone()
    }

    /// Waits for the program to exit and returns its exit status; `None` if a signal ended it.
    ///
    /// # Panics
    /// If it does not exit in time; the message shows the screen.
    #[must_use]
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        let deadline = Instant::now() + DEADLINE;
        let mut state = self.shared.lock();
        while !state.is_closed {
            let left = deadline.saturating_duration_since(Instant::now());
            let view = ScreenView::new(state.parser.screen_mut());
            assert!(!left.is_zero(), "the program does not end, the screen is\n{view}");
            state = self.shared.wait_for(state, left);
        }
        drop(state);
        self.child.wait().expect("the program can be waited for").code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed while watching no longer looks.
        self.shared.look_away(self.shared.lock());
        // This is harmless if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
