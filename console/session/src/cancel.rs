//! Handles Ctrl-C and the other signals that end a program, by asking the running command to stop.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::process::Child;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

pub use handlescope_model::{Cancel, Cancelled, Poll};
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGQUIT};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Signals that end a program by default.
#[cfg(unix)]
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// The last signal received; 0 if none.
static LAST: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The [`InputWait`] the program is in; 0 if none.
static WAIT: AtomicU8 = AtomicU8::new(0);

/// Counts starts and ends of writes to standard output and standard error, so it is odd while a write waits for its
/// reader.
static WRITES: AtomicUsize = AtomicUsize::new(0);

/// Process id of the pager, or of another program we wait for; 0 if none.
static PAGER: AtomicU32 = AtomicU32::new(0);

/// Input the program waits for while no command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWait {
    /// The next line of a script.
    Script = 1,
    /// A line at the prompt, or a person reading in a pager: Ctrl-C is a key there.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only asked on Unix"))]
    Prompt = 2,
}

/// Returns a cancel that these signals set from now on, instead of ending the program. The running command stops; after
/// any signal but Ctrl-C, the program ends too.
///
/// A second signal ends the program at once if the first was not answered. So does any signal while the program waits
/// for input or for a reader that takes nothing.
///
/// # Errors
/// If the system does not let the program handle the signals.
pub fn on_signals() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    for signal in SIGNALS {
        // The order matters: the first handler checks what the others set on the previous signal.
        flag::register_conditional_shutdown(signal, status_of(signal).into(), cancel.flag())?;
        flag::register_usize(signal, Arc::clone(&LAST), signal as usize)?;
        flag::register(signal, cancel.flag())?;
    }
    #[cfg(unix)]
    unix::end_while_waiting(cancel.clone())?;
    Ok(cancel)
}

/// Returns the exit status of a program ended by a signal: 128 plus the signal number, like shells. Without a signal,
/// returns that of Ctrl-C.
pub fn status() -> u8 {
    status_of(last().unwrap_or(SIGINT))
}

fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Whether a signal came that ends the program, not just a command.
pub fn is_ending() -> bool {
    ends_wait(last(), InputWait::Prompt as u8)
}

/// The last signal received, if any.
fn last() -> Option<i32> {
    Some(LAST.load(Ordering::SeqCst) as i32).filter(|signal| *signal != 0)
}

/// Whether `signal` ends the program while it is in this wait.
fn ends_wait(signal: Option<i32>, wait: u8) -> bool {
    let is_key = signal == Some(SIGINT) && wait == InputWait::Prompt as u8;
    signal.is_some() && wait != 0 && !is_key
}

/// Waits for a pager or another program that takes an answer. A signal ends it together with this program; on a
/// terminal, Ctrl-C is a key for it.
pub fn waiting_for<T>(pager: &mut Child, wait: impl FnOnce(&mut Child) -> T) -> T {
    let input = if io::stdin().is_terminal() { InputWait::Prompt } else { InputWait::Script };
    PAGER.store(pager.id(), Ordering::SeqCst);
    let waited = waiting(input, || wait(pager));
    PAGER.store(0, Ordering::SeqCst);
    waited
}

/// Waits for input. A signal during the wait ends the program.
pub fn waiting<T>(wait: InputWait, input: impl FnOnce() -> T) -> T {
    WAIT.store(wait as u8, Ordering::SeqCst);
    // A signal that arrived earlier did not end a wait, and there may be no second one.
    #[cfg(unix)]
    if ends_wait(last(), wait as u8) {
        unix::end();
    }
    let input = input();
    WAIT.store(0, Ordering::SeqCst);
    input
}

/// Writes to standard output or standard error. The reader may have stopped reading.
pub fn writing<T>(write: impl FnOnce() -> T) -> T {
    WRITES.fetch_add(1, Ordering::SeqCst);
    let written = write();
    WRITES.fetch_add(1, Ordering::SeqCst);
    written
}

/// An output that fails as soon as `cancel` is set.
pub struct UntilCancelled<'a, W> {
    out: W,
    cancel: &'a Cancel,
}

impl<'a, W: Write> UntilCancelled<'a, W> {
    pub fn new(out: W, cancel: &'a Cancel) -> Self {
        Self { out, cancel }
    }

    /// Fails once cancelled, but not with [`io::ErrorKind::Interrupted`], because writers retry that.
    fn check(&self) -> io::Result<()> {
        self.cancel.check().map_err(io::Error::other)
    }
}

impl<W: Write> Write for UntilCancelled<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.out.flush()
    }
}

/// The input of a script. While it is read, the program counts as waiting for the next line.
pub struct ScriptInput<R>(pub R);

impl<R: Read> Read for ScriptInput<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        waiting(InputWait::Script, || self.0.read(bytes))
    }
}

impl<R: BufRead> BufRead for ScriptInput<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        waiting(InputWait::Script, || self.0.fill_buf())
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal, Write};
    use std::sync::atomic::Ordering;
    use std::sync::{Mutex, mpsc};
    use std::thread;
    use std::time::Duration;

    use handlescope_model::guard::lock;
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
    use signal_hook::consts::SIGINT;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level;

    use super::{
        Cancel, Cancelled, InputWait, PAGER, SIGNALS, WAIT, WRITES, ends_wait, last, status,
    };

    /// Settings of the terminal before the prompt changed them.
    static TERMINAL: Mutex<Option<Termios>> = Mutex::new(None);

    /// How long a reader may take for the rest of a line.
    const PATIENCE: Duration = Duration::from_millis(200);

    /// Starts the thread that ends the program when a signal comes while it waits.
    #[expect(clippy::disallowed_methods, reason = "only asks what it is")]
    pub fn end_while_waiting(cancel: Cancel) -> io::Result<()> {
        let stdin = io::stdin();
        *lock(&TERMINAL) = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten();
        // On a terminal, Ctrl-C discards pending output.
        let is_screen = io::stdout().is_terminal();
        let mut signals = Signals::new(SIGNALS)?;
        thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                let wait = WAIT.load(Ordering::SeqCst);
                if ends_wait(Some(signal), wait) {
                    end();
                }
                // The program we wait for handles Ctrl-C as it likes, several times if it goes on.
                if PAGER.load(Ordering::SeqCst) != 0 && wait == InputWait::Prompt as u8 {
                    cancel.reset();
                }
                // Watches until the command or the program has ended.
                while cancel.is_cancelled() && !(is_screen && last() == Some(SIGINT)) {
                    let writes = WRITES.load(Ordering::SeqCst);
                    thread::sleep(PATIENCE);
                    if writes % 2 == 1 && writes == WRITES.load(Ordering::SeqCst) {
                        end_with_output_stuck();
                    }
                    if ends_wait(last(), WAIT.load(Ordering::SeqCst)) {
                        end();
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Ends the program, reports it in a script, and restores the terminal.
    #[expect(clippy::disallowed_methods, reason = "only ends a line, or is one word")]
    pub fn end() -> ! {
        let mut stderr = io::stderr();
        let pager = i32::try_from(PAGER.load(Ordering::SeqCst)).ok().and_then(Pid::from_raw);
        let _ = pager.map(|pager| kill_process(pager, Signal::TERM));
        // Stays locked until exit, because two threads may get here.
        let terminal = lock(&TERMINAL);
        let _ = match &*terminal {
            Some(terminal) => {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
                // The shell's prompt starts on a new line.
                writeln!(stderr)
            }
            None => writeln!(stderr, "{Cancelled}"),
        };
        std::process::exit(status().into())
    }

    /// Ends the program while a thread is in the middle of a write. A normal exit would wait for that write.
    #[expect(clippy::disallowed_methods, reason = "only one word")]
    fn end_with_output_stuck() -> ! {
        let (sender, receiver) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _ = writeln!(io::stderr(), "{Cancelled}");
            drop(sender);
        });
        // Standard error may be the same pipe.
        let _ = receiver.recv_timeout(PATIENCE / 2);
        low_level::exit(status().into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_signal_ends_a_wait_but_ctrl_c_at_the_prompt() {
        for wait in [InputWait::Script, InputWait::Prompt] {
            assert!(!ends_wait(None, wait as u8), "no signal came");
            for signal in [SIGTERM, SIGHUP, SIGQUIT] {
                assert!(ends_wait(Some(signal), wait as u8), "{signal} {wait:?}");
                assert!(!ends_wait(Some(signal), 0), "a command runs, and stops by itself");
            }
        }
        assert!(ends_wait(Some(SIGINT), InputWait::Script as u8));
        assert!(!ends_wait(Some(SIGINT), InputWait::Prompt as u8), "there it is a key");
    }
}
