//! The files that this program wrote, in this session and before: their sizes and times, by which it is
//! seen whether they were changed since.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use handlescope_model::guard::lock;
use handlescope_model::output::folder_of;
use tempfile::NamedTempFile;

/// Files that are remembered beyond a session.
const MAX_FILES: usize = 1000;

/// Bytes of the list that are read; more was not written by this program.
const MAX_BYTES: u64 = 1 << 22;

/// Bytes of the list from which on it is cut to the files that are remembered.
const LONG: u64 = 1 << 18;

/// Size in bytes, and nanoseconds since 1970 of the last change.
type State = (u64, u128);

/// Files written in this session, for when the list cannot be kept.
static IN_SESSION: LazyLock<Mutex<HashMap<PathBuf, State>>> = LazyLock::new(Mutex::default);

/// Age below which another process may have written a file and not remembered it yet.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Whether this program wrote a file, which has its whole path, and it was not changed since.
pub fn is_unchanged(path: &Path) -> bool {
    loop {
        let Some(now) = state(path) else { return false };
        let in_session = lock(&IN_SESSION).get(path).copied();
        // If several processes write the same file, the list has the state of the last write.
        let last = || list().into_iter().rfind(|(file, _)| file == path);
        if in_session == Some(now) || last().is_some_and(|(_, state)| state == now) {
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
pub fn remember(path: &Path) {
    // If several processes write the same file, each remembers the state that it sees.
    let lock_file = exclusive_lock("written.lock");
    let Some(now) = state(path) else { return };
    lock(&IN_SESSION).insert(path.to_path_buf(), now);
    // Without the list, the next session asks for -Force.
    let length = add(path, now).unwrap_or_default();
    if length > LONG && lock_file.is_some() {
        let _ = cut();
    }
}

/// Longest wait for other processes that change the same file; each takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// A lock of a file that processes read and then write, unless another one keeps it for long, as one that was stopped
/// does.
pub fn exclusive_lock(name: &str) -> Option<File> {
    let path = dirs::data_local_dir()?.join("handlescope").join(name);
    fs::create_dir_all(path.parent()?).ok()?;
    let file = File::options().append(true).create(true).open(path).ok()?;
    let end = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(_) => return None,
        }
    }
}

fn state(path: &Path) -> Option<State> {
    let data = fs::metadata(path).ok()?;
    let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((data.len(), changed.as_nanos()))
}

/// Path of the list, in the platform's folder for a program's data.
fn list_file() -> Option<PathBuf> {
    Some(dirs::data_local_dir()?.join("handlescope").join("written.txt"))
}

/// A line for each file: size, time, path.
fn list() -> Vec<(PathBuf, State)> {
    let mut text = String::new();
    let file = list_file().and_then(|path| File::open(path).ok());
    let read = file.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text).ok());
    let lines = read.map(|_| text.lines()).into_iter().flatten().filter_map(|line| {
        let mut fields = line.splitn(3, ' ');
        let (size, changed) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((PathBuf::from(fields.next()?), (size, changed)))
    });
    lines.collect()
}

/// The line of a file; `None` for a name that a line cannot hold, which is remembered in this session only.
fn line(path: &Path, state: State) -> Option<String> {
    let (size, changed) = state;
    let path = path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    Some(format!("{size} {changed} {path}\n"))
}

/// Adds a file to the list by one write, which loses nothing that others add, and returns the bytes of the list.
fn add(path: &Path, now: State) -> Option<u64> {
    let mut file = File::options().append(true).create(true).open(list_file()?).ok()?;
    file.write_all(line(path, now)?.as_bytes()).ok()?;
    file.metadata().ok().map(|data| data.len())
}

/// Cuts the list to the last state of each of the last files.
fn cut() -> std::io::Result<()> {
    let Some(file) = list_file() else { return Ok(()) };
    let mut seen = HashSet::new();
    let mut last: Vec<_> = list()
        .into_iter()
        .rev()
        .filter(|(path, _)| seen.insert(path.clone()))
        .take(MAX_FILES)
        .collect();
    last.reverse();
    let mut new = NamedTempFile::new_in(folder_of(&file))?;
    for (path, state) in last {
        new.write_all(line(&path, state).unwrap_or_default().as_bytes())?;
    }
    new.persist(file)?;
    Ok(())
}
