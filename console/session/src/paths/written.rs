//! Remembers the files this program wrote, in this session and earlier ones. Their sizes and times tell whether they
//! changed since.

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

/// How many files are remembered beyond a session.
const MAX_FILES: usize = 1000;

/// Bytes of the list that are read; anything longer was not written by this program.
const MAX_BYTES: u64 = 1 << 22;

/// Above this many bytes, the list is cut to the remembered files.
const LONG: u64 = 1 << 18;

/// Size in bytes, and last change in nanoseconds since 1970.
type FileState = (u64, u128);

/// Files written in this session, in case the list cannot be kept.
static IN_SESSION: LazyLock<Mutex<HashMap<PathBuf, FileState>>> = LazyLock::new(Mutex::default);

/// Another process may have written a file younger than this and not remembered it yet.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Whether this program wrote a file and nobody changed it since. `path` is the full path.
pub fn is_unchanged(path: &Path) -> bool {
    loop {
        let Some(now) = state(path) else { return false };
        let in_session = lock(&IN_SESSION).get(path).copied();
        // If several processes write the same file, the list has the state after the last write.
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
    // If several processes write the same file, each remembers the state it sees.
    let lock_file = exclusive_lock("written.lock");
    let Some(now) = state(path) else { return };
    lock(&IN_SESSION).insert(path.to_path_buf(), now);
    // Without the list, the next session asks for -Force.
    let length = add(path, now).unwrap_or_default();
    if length > LONG && lock_file.is_some() {
        let _ = cut();
    }
}

/// How long to wait for other processes that change the same file; each takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Locks a file that processes read and then write. `None` if another process keeps it for long, for example because it
/// was suspended.
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

fn state(path: &Path) -> Option<FileState> {
    let data = fs::metadata(path).ok()?;
    let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((data.len(), changed.as_nanos()))
}

/// Path of the list, in the platform's data folder for programs.
fn list_file() -> Option<PathBuf> {
    Some(dirs::data_local_dir()?.join("handlescope").join("written.txt"))
}

/// Reads the list. It has one line per file: size, time, path.
fn list() -> Vec<(PathBuf, FileState)> {
    let mut text = String::new();
    let file = list_file().and_then(|path| File::open(path).ok());
    let read = file.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text).ok());
    read.map(|_| text.lines())
        .into_iter()
        .flatten()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let (size, changed) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some((PathBuf::from(fields.next()?), (size, changed)))
        })
        .collect()
}

/// Returns the line of a file; `None` if a line cannot hold its name, which is then remembered only in this session.
fn line(path: &Path, state: FileState) -> Option<String> {
    let (size, changed) = state;
    let path = path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    Some(format!("{size} {changed} {path}\n"))
}

/// Adds a file to the list in one write, so that lines of other processes survive. Returns the size of the list in
/// bytes.
fn add(path: &Path, now: FileState) -> Option<u64> {
    let mut file = File::options().append(true).create(true).open(list_file()?).ok()?;
    file.write_all(line(path, now)?.as_bytes()).ok()?;
    file.metadata().ok().map(|data| data.len())
}

/// Cuts the list to the most recent files, with the last state of each.
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
