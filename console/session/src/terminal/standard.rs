//! Standard output and standard error. Nothing else opens them; `clippy.toml` enforces that. So everything printed goes
//! through this folder: results through `Neutral`, messages through [`Messages`](super::Messages).

use std::fs::{self, File};
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cancel::writing;

/// The program's terminal, wherever its output goes.
const TERMINAL: &str = if cfg!(windows) { "CONOUT$" } else { "/dev/tty" };

/// Whether standard output was closed when the program started, as by `>&-`.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn out() -> Stdout {
    io::stdout()
}

/// Standard error.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn error() -> Stderr {
    io::stderr()
}

/// Whether both standard output and standard error are the terminal.
pub fn is_screen() -> bool {
    out().is_terminal() && error().is_terminal()
}

/// Returns the stream where a person can see a prompt, if there is one.
pub fn prompt() -> Box<dyn Write> {
    match (error().is_terminal(), out().is_terminal()) {
        (true, _) => Box::new(error()),
        (false, true) => Box::new(out()),
        (false, false) => match File::options().write(true).open(TERMINAL) {
            Ok(terminal) => Box::new(terminal),
            Err(_) => Box::new(io::sink()),
        },
    }
}

/// Standard output, where results go.
pub struct Results(Stdout);

/// Returns standard output for results. If it is closed, writing fails instead of going nowhere.
pub fn results() -> Results {
    Results(out())
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if WAS_CLOSED.load(Ordering::Relaxed) {
            return Err(io::Error::other("standard output is closed"));
        }
        // Bytes left in the buffer would be written when the program ends. At that point no signal ends the wait for a
        // reader.
        writing(|| {
            let written = self.0.write(bytes)?;
            self.0.flush()?;
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        writing(|| self.0.flush())
    }
}

/// Checks whether standard output is open. Must be called before `main`: Rust's runtime opens `/dev/null` in its place
/// (`std::sys::pal::unix::init`), after which nobody can tell.
pub extern "C" fn look_before_main() {
    let folder = Path::new("/dev/fd");
    let is_closed = folder.is_dir() && fs::symlink_metadata(folder.join("1")).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}
