//! Signs of life on standard error: the progress bar of an extraction and the spinner of a query.

use std::fmt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use handlescope_extract::ExtractObserver;
use handlescope_model::Untrusted;
use handlescope_model::guard::lock;
use indicatif::{
    BinaryBytes, HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState,
    ProgressStyle,
};

use super::margin::draw_target;

/// Template while bytes are read.
const READING: &str = "{prefix} {wide_bar} {bytes}/{total_bytes} {speed} {left:>4}";

/// Template while the archive is written. Its size is not known in advance.
const WRITING: &str = "{prefix} {spinner} {msg} {elapsed}";

/// For this long, the speed is too uncertain to estimate the remaining time.
const UNSETTLED: Duration = Duration::from_secs(1);

/// Adds the estimates to a template: the speed and the remaining time.
fn style(template: &str) -> Option<ProgressStyle> {
    let style = ProgressStyle::with_template(template).ok()?;
    let is_settled = |state: &ProgressState| state.elapsed() >= UNSETTLED;
    // A text that cannot be drawn is omitted.
    let speed = move |state: &ProgressState, text: &mut dyn fmt::Write| {
        if is_settled(state) {
            let _ = write!(text, "{}/s", BinaryBytes(state.per_sec() as u64));
        }
    };
    let left = move |state: &ProgressState, text: &mut dyn fmt::Write| {
        if is_settled(state) {
            let _ = write!(text, "{:#}", HumanDuration(state.eta()));
        }
    };
    Some(style.with_key("speed", speed).with_key("left", left))
}

/// A progress bar that disappears when dropped.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar for one file, which `activity` follows from now on. It is visible only on a terminal.
    pub fn new(file: &Path, is_watched: bool, activity: &Activity) -> Progress {
        let target = if is_watched { draw_target() } else { ProgressDrawTarget::hidden() };
        Progress::on(target, file, activity)
    }

    fn on(target: ProgressDrawTarget, file: &Path, activity: &Activity) -> Progress {
        let bar = ProgressBar::with_draw_target(None, target);
        let progress = Progress { bar };
        // The default style has a bar without a name.
        progress.style(WRITING);
        let name = file.file_name().unwrap_or(file.as_os_str());
        progress.bar.set_prefix(Untrusted(name).to_string());
        *lock(&activity.0) = Some(progress.bar.clone());
        progress
    }

    fn style(&self, template: &str) {
        if let Some(style) = style(template) {
            self.bar.set_style(style);
        }
    }
}

impl ExtractObserver for Progress {
    fn on_started(&self, total_bytes: u64) {
        self.style(READING);
        // The time before this says nothing about the speed.
        self.bar.reset_elapsed();
        self.bar.reset_eta();
        self.bar.set_length(total_bytes);
    }

    fn on_progress(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    fn on_phase(&self, name: &str) {
        self.style(WRITING);
        self.bar.set_message(name.to_owned());
        self.bar.enable_steady_tick(std::time::Duration::from_millis(100));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The text of a progress bar, for places that cannot draw one. Clones share the bar.
#[derive(Clone, Default)]
pub struct Activity(Arc<Mutex<Option<ProgressBar>>>);

impl Activity {
    /// Returns the current file and how far it is; `None` while there is no progress bar.
    pub fn text(&self) -> Option<String> {
        let bar = lock(&self.0).clone().filter(|bar| !bar.is_finished())?;
        let (file, phase) = (bar.prefix(), bar.message());
        Some(match bar.length() {
            Some(total) if phase.is_empty() => {
                format!("{file}: {} of {}", HumanBytes(bar.position()), HumanBytes(total))
            }
            _ => format!("{file}: {phase}"),
        })
    }
}

/// Template while the end is unknown.
const WAITING: &str = "{spinner} {msg} {elapsed}";

/// How long a command may take before a spinner shows that it is still running.
const DRAW_DELAY: Duration = Duration::from_millis(200);

/// Time between two frames of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// A spinner that appears if something takes long, and leaves no trace. Clones share the spinner.
#[derive(Clone, Default)]
pub struct Spinner(Arc<Mutex<Option<Spinning>>>);

/// A running spinner, visible or not yet.
struct Spinning {
    bar: ProgressBar,
    /// Nothing is sent; dropping it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Spinner {
    /// Starts the spinner.
    pub fn start(&self, message: &'static str) {
        self.stop();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(WAITING) {
            bar.set_style(style);
        }
        bar.set_message(message);
        let (stop, stopped) = channel();
        let seen = bar.clone();
        let thread = std::thread::Builder::new().spawn(move || spin(&seen, &stopped));
        // Without a thread there is no spinner; that is not a failure.
        *self.lock() = thread.ok().map(|thread| Spinning { bar, stop, thread });
    }

    /// Replaces the text beside the spinner, if there is one.
    pub fn show(&self, message: String) {
        if let Some(spinning) = self.lock().as_ref() {
            spinning.bar.set_message(message);
        }
    }

    /// Removes the spinner, if there is one. It is gone from the screen once this returns.
    pub fn stop(&self) {
        let Some(Spinning { stop, thread, .. }) = self.lock().take() else { return };
        drop(stop);
        let _ = thread.join();
    }

    /// Runs something that writes to the terminal, with the spinner out of the way.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        let bar = self.lock().as_ref().map(|spinning| spinning.bar.clone());
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Spinning>> {
        lock(&self.0)
    }
}

/// Shows a spinner after a delay, until its sender is dropped.
fn spin(bar: &ProgressBar, stopped: &Receiver<()>) {
    let is_running = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !is_running(DRAW_DELAY) {
        return;
    }
    bar.set_draw_target(draw_target());
    loop {
        bar.tick();
        if !is_running(TICK) {
            break;
        }
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;

    #[test]
    fn all_templates_are_understood() {
        for template in [READING, WRITING, WAITING] {
            assert!(style(template).is_some(), "{template}");
        }
    }

    /// A terminal that keeps everything drawn.
    #[derive(Debug, Clone, Default)]
    struct Pictures(Arc<Mutex<String>>);

    impl TermLike for Pictures {
        fn width(&self) -> u16 {
            80
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            lock(&self.0).push_str(text);
            Ok(())
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_has_a_name_from_the_start_and_an_estimate_after_a_second() {
        let pictures = Pictures::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(pictures.clone()), 255);
        let progress = Progress::on(target, Path::new("traces/a.etl"), &Activity::default());
        progress.on_started(100 << 20);
        let drawn = |bytes: u64| {
            std::thread::sleep(Duration::from_millis(50));
            progress.on_progress(bytes);
            progress.bar.force_draw();
            std::mem::take(&mut *lock(&pictures.0))
        };
        let early = drawn(1 << 20);
        assert!(early.contains("1.00 MiB/100.00 MiB") && !early.contains("/s"), "{early}");
        for line in early.lines().map(str::trim).filter(|line| !line.is_empty()) {
            assert!(line.starts_with("a.etl "), "{line}");
        }
        std::thread::sleep(UNSETTLED);
        let late = drawn(50 << 20);
        assert!(late.contains("MiB/s"), "{late}");
    }

    #[test]
    fn an_activity_is_what_the_progress_bar_would_show() {
        let activity = Activity::default();
        assert_eq!(activity.text(), None);
        let progress = Progress::new(Path::new("traces/a.etl"), false, &activity.clone());
        progress.on_started(2048);
        progress.on_progress(1024);
        assert_eq!(activity.text().as_deref(), Some("a.etl: 1.00 KiB of 2.00 KiB"));
        progress.on_phase("writing");
        assert_eq!(activity.text().as_deref(), Some("a.etl: writing"));
        drop(progress);
        assert_eq!(activity.text(), None);
    }

    #[test]
    fn a_spinner_can_be_stopped_at_any_time_and_used_again() {
        let spinner = Spinner::default();
        spinner.stop();
        spinner.start("searching");
        spinner.start("searching");
        assert_eq!(spinner.clone().aside(|| 7), 7);
        spinner.clone().stop();
        assert!(spinner.lock().is_none());
        assert_eq!(spinner.aside(|| 7), 7);
    }
}
