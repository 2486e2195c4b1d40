//! What servers are known not to have, so that it is not asked for at every start.
//!
//! A text file in the cache folder, one line each: seconds since 1970, address of the server, file
//! name, index, divided by tabs. Lines are appended, several sessions may do so at once.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use handlescope_model::guard::lock;
use rustc_hash::FxHashMap;
use tempfile::NamedTempFile;

use super::identity::StoreKey;

const FILE_NAME: &str = "handlescope-missing.tsv";
/// A longer file is not ours, or has grown for years; it is begun anew.
const MAX_BYTES: u64 = 1 << 26;

/// The list, read when it is first needed.
pub(super) struct MissingFiles {
    file: Option<PathBuf>,
    max_age: Duration,
    /// When it was found out, in seconds since 1970, by the rest of the line.
    known: Mutex<Option<FxHashMap<String, u64>>>,
}

impl MissingFiles {
    /// With `folder`, the list outlives the session.
    pub(super) fn new(folder: Option<PathBuf>, max_age: Duration) -> Self {
        Self { file: folder.map(|folder| folder.join(FILE_NAME)), max_age, known: Mutex::default() }
    }

    /// Whether the server did not have the file not long ago.
    pub(super) fn contains(&self, server: &str, key: &StoreKey) -> bool {
        let mut known = lock(&self.known);
        let known = known.get_or_insert_with(|| self.load());
        known.get(&line(server, key)).is_some_and(|since| self.is_fresh(*since))
    }

    /// That it can not be kept for the next session is not worth a message.
    pub(super) fn insert(&self, server: &str, key: &StoreKey) {
        if self.max_age.is_zero() {
            return;
        }
        let (line, now) = (line(server, key), now());
        if let Some(file) = &self.file {
            let append = || -> io::Result<()> {
                fs::create_dir_all(file.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
                let mut file = OpenOptions::new().create(true).append(true).open(file)?;
                file.write_all(format!("{now}\t{line}\n").as_bytes())
            };
            let _ = append();
        }
        let mut known = lock(&self.known);
        known.get_or_insert_with(|| self.load()).insert(line, now);
    }

    /// Asks for everything again.
    pub(super) fn clear(&self) {
        *lock(&self.known) = Some(FxHashMap::default());
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }

    fn load(&self) -> FxHashMap<String, u64> {
        let mut known = FxHashMap::default();
        let Some(file) = &self.file else { return known };
        if fs::metadata(file).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
            let _ = fs::remove_file(file);
        }
        let text = fs::read(file).unwrap_or_default();
        let mut lines = 0_usize;
        for entry in String::from_utf8_lossy(&text).lines() {
            lines += 1;
            if let Some((since, line)) = entry.split_once('\t')
                && let Ok(since) = since.parse()
                && self.is_fresh(since)
            {
                known.insert(line.to_owned(), since);
            }
        }
        if lines > 2 * known.len() {
            let _ = self.rewrite(&known);
        }
        known
    }

    /// Drops what is out of date.
    fn rewrite(&self, known: &FxHashMap<String, u64>) -> io::Result<()> {
        let file = self.file.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let mut new = NamedTempFile::new_in(file.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        let lines = known.iter().map(|(line, since)| format!("{since}\t{line}\n"));
        new.write_all(lines.collect::<String>().as_bytes())?;
        new.persist(file)?;
        Ok(())
    }

    /// A time in the future is that of a clock set back since.
    fn is_fresh(&self, since: u64) -> bool {
        now().checked_sub(since).is_some_and(|age| age < self.max_age.as_secs())
    }
}

fn line(server: &str, key: &StoreKey) -> String {
    // A key has no control characters; the text of a symbol path may have some.
    let server = server.replace(char::is_control, " ");
    format!("{}\t{}\t{}", server.trim_end_matches('/'), key.name.to_lowercase(), key.index)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const SERVER: &str = "https://x/symbols";

    fn key(name: &str) -> StoreKey {
        StoreKey { name: name.into(), index: "0155FE84C0001EB157C6858E85D46B4C1a".into() }
    }

    fn list(folder: &TempDir) -> MissingFiles {
        MissingFiles::new(Some(folder.path().to_owned()), DAY)
    }

    #[test]
    fn a_file_is_missing_on_one_server_and_in_the_next_session_too() {
        let folder = tempfile::tempdir().expect("temporary folder");
        list(&folder).insert(SERVER, &key("a.pdb"));
        let next = list(&folder);
        assert!(next.contains(SERVER, &key("a.pdb")));
        assert!(next.contains("https://x/symbols/", &key("A.pdb")));
        assert!(!next.contains(SERVER, &key("b.pdb")));
        assert!(!next.contains("https://y", &key("a.pdb")));
        next.clear();
        assert!(!next.contains(SERVER, &key("a.pdb")));
        assert!(!list(&folder).contains(SERVER, &key("a.pdb")));
    }

    #[test]
    fn old_future_and_damaged_lines_count_for_nothing_and_go() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join(FILE_NAME);
        let entry = |since: u64, name: &str| format!("{since}\t{}\n", line(SERVER, &key(name)));
        let (old, future) = (now() - 2 * DAY.as_secs(), now() + DAY.as_secs());
        let mut text = entry(old, "a.pdb") + &entry(future, "b.pdb") + "\0garbage\n\t\n";
        text += &entry(now(), "c.pdb");
        fs::write(&file, &text).expect("list");
        let list = list(&folder);
        let missing = ["a.pdb", "b.pdb", "c.pdb"].map(|name| list.contains(SERVER, &key(name)));
        assert_eq!(missing, [false, false, true]);
        assert_eq!(fs::read_to_string(&file).expect("list").lines().count(), 1);
    }

    #[test]
    fn without_an_age_or_a_folder_nothing_is_kept() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let list = MissingFiles::new(Some(folder.path().to_owned()), Duration::ZERO);
        list.insert(SERVER, &key("a.pdb"));
        assert!(!list.contains(SERVER, &key("a.pdb")));
        let list = MissingFiles::new(None, DAY);
        list.insert(SERVER, &key("a.pdb"));
        assert!(list.contains(SERVER, &key("a.pdb")));
    }
}
