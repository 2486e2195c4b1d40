//! `-Ignore` and `-Ignored`: known leaks, which answers leave out but count.

use std::path::PathBuf;
use std::sync::Arc;

use handlescope_session::grammar::value::{FILE, SWITCH};
use handlescope_session::grammar::{Opt, to};
use handlescope_session::settings::{IgnoreEntry, IgnoreList, Ignoring, Settings};
use handlescope_session::terminal::Messages;

use super::Has;
use crate::CommandError;

/// `-Ignore` and `-Ignored`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IgnoreArgs {
    /// Files of known leaks, in addition to those in the configuration file.
    files: Vec<PathBuf>,
    shows_ignored: bool,
}

impl IgnoreArgs {
    /// Reads the known leaks, and reports expired entries.
    ///
    /// # Errors
    /// If a file cannot be read, or has other contents.
    pub fn read(
        &self,
        settings: &Settings,
        messages: &mut Messages<'_>,
    ) -> Result<Ignoring, CommandError> {
        let mut list = settings.ignored.clone();
        for file in &self.files {
            list.extend(IgnoreList::open(file)?);
        }
        for entry in list.entries() {
            if let Some(day) = entry.expired() {
                messages.caveat(format!(
                    "{entry}: expired on {day} and ignores nothing; remove it or set a later day"
                ));
            }
        }
        Ok(Ignoring { list, shows_ignored: self.shows_ignored })
    }

    /// Whether the answer shows only the known leaks.
    pub fn shows_ignored(&self) -> bool {
        self.shows_ignored
    }
}

/// Warns about entries that ignored nothing in traces that were analysed completely; `used` are the entries that did.
pub fn warn_of_unused<'e>(
    list: &IgnoreList,
    used: impl Iterator<Item = &'e Arc<IgnoreEntry>>,
    messages: &mut Messages<'_>,
) {
    let used: Vec<&Arc<IgnoreEntry>> = used.collect();
    let is_unused = |entry: &&Arc<IgnoreEntry>| !used.iter().any(|used| Arc::ptr_eq(used, entry));
    for entry in list.active().filter(is_unused) {
        messages.caveat(format!(
            "{entry}: ignores nothing here; an entry must match all create stacks of a suspect"
        ));
    }
}

pub const fn ignore_option<A: Has<IgnoreArgs>>() -> Opt<A> {
    Opt {
        names: &["-Ignore"],
        help: "leave out the known leaks in this file, too",
        details: "A file has [[ignore]] tables with the filters program, type, function and stack, \
                  a reason, and perhaps a last day; the tables in handlescope.toml always apply. \
                  Ignored leaks are counted, and fail no gate. The option may be given several \
                  times.",
        example: "-Ignore known.toml",
        take: to(&(FILE, |args, file| args.part().files.push(file))),
    }
}

pub const fn ignored_option<A: Has<IgnoreArgs>>() -> Opt<A> {
    Opt {
        names: &["-Ignored"],
        help: "only the known leaks that are left out otherwise, with their reasons",
        details: "Known leaks are listed in handlescope.toml and in the files of -Ignore. They fail no gate.",
        example: "-Ignored",
        take: to(&(SWITCH, |args, ()| args.part().shows_ignored = true)),
    }
}
