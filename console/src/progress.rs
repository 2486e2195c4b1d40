//! The progress bar of an extraction, on standard error.

use std::path::Path;

use handlescope_extract::ExtractObserver;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// While bytes are read.
const READING: &str = "{prefix} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta:>4}";

/// While the archive is written, whose size is not known before.
const WRITING: &str = "{prefix} {spinner} {msg} {elapsed}";

/// A progress bar that goes away when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for one file, invisible unless somebody watches.
    pub(crate) fn new(file: &Path, is_watched: bool) -> Progress {
        let target =
            if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_prefix(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
        Progress(bar)
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }
}

impl ExtractObserver for Progress {
    fn on_started(&self, total_bytes: u64) {
        self.0.set_length(total_bytes);
        self.style(READING);
    }

    fn on_progress(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    fn on_phase(&self, name: &str) {
        self.style(WRITING);
        self.0.set_message(name.to_owned());
        self.0.enable_steady_tick(std::time::Duration::from_millis(100));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_are_understood() {
        for template in [READING, WRITING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
