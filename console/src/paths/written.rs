//! The files that this program wrote, in this session and before: their sizes and times, by which it is
//! seen whether they were changed since.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use handlescope_model::guard::lock;
use tempfile::NamedTempFile;

/// Files that are remembered beyond a session.
const MOST: usize = 1000;

/// Bytes of the list that are read; more was not written by this program.
const MOST_BYTES: u64 = 1 << 22;

/// Size in bytes, and nanoseconds since 1970 of the last change.
type State = (u64, u128);

/// What was written in this session, for when the list cannot be kept.
static IN_SESSION: LazyLock<Mutex<HashMap<PathBuf, State>>> = LazyLock::new(Mutex::default);

/// How old a file is that another process may have written and not remembered yet.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Whether this program wrote a file, which has its whole path, and it was not changed since.
pub(super) fn is_unchanged(path: &Path) -> bool {
    loop {
        let Some(now) = state(path) else { return false };
        let in_session = lock(&IN_SESSION).get(path).copied();
        let kept =
            || list().into_iter().rev().find(|(file, _)| file == path).map(|(_, state)| state);
        // Of two processes that write the same file, the list has what the last one wrote.
        if in_session == Some(now) || kept() == Some(now) {
            return true;
        }
        let age = fs::metadata(path).and_then(|data| data.modified()).map(|time| time.elapsed());
        if !matches!(age, Ok(Ok(age)) if age < JUST_NOW) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Remembers a file that was just written.
pub(super) fn remember(path: &Path) {
    let Some(now) = state(path) else { return };
    lock(&IN_SESSION).insert(path.to_path_buf(), now);
    let _alone = Alone::wait();
    let mut list = list();
    list.retain(|(file, _)| file != path);
    list.push((path.to_path_buf(), now));
    // Without the list, the next session asks for -Force.
    let _ = keep(list.get(list.len().saturating_sub(MOST)..).unwrap_or_default());
}

/// How long is waited for other processes that change the list; each takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The right to change the list, unless another process keeps it for long, as one that was stopped does.
struct Alone(#[expect(dead_code, reason = "it is locked until it is dropped")] Option<File>);

impl Alone {
    fn wait() -> Self {
        let open = || {
            let path = list_file()?.with_extension("lock");
            fs::create_dir_all(path.parent()?).ok()?;
            File::options().append(true).create(true).open(path).ok()
        };
        let file = open();
        let end = Instant::now() + PATIENCE;
        while let Some(Err(TryLockError::WouldBlock)) = file.as_ref().map(File::try_lock)
            && Instant::now() < end
        {
            thread::sleep(Duration::from_millis(5));
        }
        Self(file)
    }
}

fn state(path: &Path) -> Option<State> {
    let data = fs::metadata(path).ok()?;
    let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((data.len(), changed.as_nanos()))
}

/// In the platform's folder for a program's data.
fn list_file() -> Option<PathBuf> {
    Some(dirs::data_local_dir()?.join("handlescope").join("written.txt"))
}

/// A line for each file: size, time, path.
fn list() -> Vec<(PathBuf, State)> {
    let mut text = String::new();
    let file = list_file().and_then(|path| File::open(path).ok());
    let read = file.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text).ok());
    let line = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let (size, changed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((PathBuf::from(parts.next()?), (size, changed)))
    };
    read.map_or_else(Vec::new, |_| text.lines().filter_map(line).collect())
}

fn keep(list: &[(PathBuf, State)]) -> std::io::Result<()> {
    let Some(file) = list_file() else { return Ok(()) };
    let Some(folder) = file.parent() else { return Ok(()) };
    fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    for (path, (size, changed)) in list {
        // A name that a line cannot hold is remembered in this session only.
        if let Some(path) = path.to_str().filter(|path| !path.contains(['\n', '\r'])) {
            writeln!(new, "{size} {changed} {path}")?;
        }
    }
    new.persist(file)?;
    Ok(())
}
