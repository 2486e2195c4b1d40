//! Remembers which files servers lack, or have only in an unusable form, so that not every session requests them again.
//!
//! It is a text file in our cache folder with tab-separated lines: seconds since 1970, `missing` or `refused`, server
//! address, file name, index. Lines are appended, possibly by several sessions at once.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use handlescope_model::OutputFile;
use handlescope_model::guard::lock;
use rustc_hash::FxHashMap;

use crate::identity::{StoreKey, private_folder};
use crate::options::SymbolizerOptions;
use crate::path::without_secrets;

const FILE_NAME: &str = "missing.tsv";
/// Maximum size of the file. A larger one is not ours or has grown for years, and is replaced.
const MAX_BYTES: u64 = 1 << 26;

/// Reasons not to ask a server for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The server does not have the file.
    Missing,
    /// The server sent a damaged file, or one from another build. That may be fixed soon.
    Refused,
}

impl Absence {
    const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Refused => "refused",
        }
    }

    fn new(word: &str) -> Option<Self> {
        [Self::Missing, Self::Refused].into_iter().find(|absence| absence.word() == word)
    }
}

/// The reason and when it was noted, in seconds since 1970.
type AbsenceNote = (Absence, u64);

/// The list of absent files, read on first use.
pub struct MissingFiles {
    file: Option<PathBuf>,
    missing_for: Duration,
    refused_for: Duration,
    /// Entries by server, name and index.
    known: Mutex<Option<FxHashMap<String, AbsenceNote>>>,
}

impl MissingFiles {
    /// Creates the list; with `cache`, it outlives the session.
    pub fn new(cache: Option<PathBuf>, options: &SymbolizerOptions) -> Self {
        Self {
            file: cache.map(|cache| private_folder(&cache).join(FILE_NAME)),
            missing_for: options.missing_for,
            refused_for: options.refused_for,
            known: Mutex::default(),
        }
    }

    /// Returns why a file is not requested from a server now, if so.
    pub fn get(&self, server: &str, key: &StoreKey) -> Option<Absence> {
        let mut known = lock(&self.known);
        let known = known.get_or_insert_with(|| self.load());
        let (absence, _) = known.get(&line(server, key)).filter(|known| self.is_fresh(**known))?;
        Some(*absence)
    }

    /// Reads what other sessions have added meanwhile.
    pub fn reload(&self) {
        let added = self.load();
        lock(&self.known).get_or_insert_default().extend(added);
    }

    /// Records an absent file. If it cannot be saved for the next session, that is not reported.
    pub fn insert(&self, server: &str, key: &StoreKey, absence: Absence) {
        if self.age_of(absence).is_zero() {
            return;
        }
        let (line, now) = (line(server, key), now());
        if let Some(file) = &self.file {
            let append = || -> io::Result<()> {
                fs::create_dir_all(file.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
                let mut file = OpenOptions::new().create(true).append(true).open(file)?;
                file.write_all(entry(&line, (absence, now)).as_bytes())
            };
            let _ = append();
        }
        let mut known = lock(&self.known);
        known.get_or_insert_with(|| self.load()).insert(line, (absence, now));
    }

    /// Forgets all entries, so that all files can be requested again.
    pub fn clear(&self) {
        *lock(&self.known) = Some(FxHashMap::default());
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }

    fn load(&self) -> FxHashMap<String, AbsenceNote> {
        let mut known = FxHashMap::default();
        let Some(file) = &self.file else { return known };
        if fs::metadata(file).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
            let _ = fs::remove_file(file);
        }
        let text = fs::read(file).unwrap_or_default();
        let mut lines = 0_usize;
        for entry in String::from_utf8_lossy(&text).lines() {
            lines += 1;
            if let Some((since, rest)) = entry.split_once('\t')
                && let Some((word, line)) = rest.split_once('\t')
                && let Some(new) = Absence::new(word).zip(since.parse().ok())
                && self.is_fresh(new)
            {
                known.insert(line.to_owned(), new);
            }
        }
        if lines > 2 * known.len() {
            let _ = self.rewrite(&known);
        }
        known
    }

    /// Rewrites the file without expired entries.
    fn rewrite(&self, known: &FxHashMap<String, AbsenceNote>) -> io::Result<()> {
        let file = self.file.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let mut new = OutputFile::beside(file)?;
        let lines = known.iter().map(|(line, known)| entry(line, *known));
        new.write_all(lines.collect::<String>().as_bytes())?;
        new.persist(file)
    }

    /// Whether an entry still counts. A time in the future comes from a clock that was set back since, so it does not.
    fn is_fresh(&self, (absence, since): AbsenceNote) -> bool {
        now().checked_sub(since).is_some_and(|age| age < self.age_of(absence).as_secs())
    }

    fn age_of(&self, absence: Absence) -> Duration {
        match absence {
            Absence::Missing => self.missing_for,
            Absence::Refused => self.refused_for,
        }
    }
}

fn entry(line: &str, (absence, since): AbsenceNote) -> String {
    format!("{since}\t{}\t{line}\n", absence.word())
}

fn line(server: &str, key: &StoreKey) -> String {
    // A key has no control characters, but the text of a symbol path may have some.
    let server = without_secrets(server).replace(char::is_control, " ");
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
        with_ages(Some(folder.path().to_owned()), DAY)
    }

    fn with_ages(cache: Option<PathBuf>, missing_for: Duration) -> MissingFiles {
        let options = SymbolizerOptions { missing_for, ..SymbolizerOptions::default() };
        MissingFiles::new(cache, &options)
    }

    #[test]
    fn a_file_is_missing_on_a_single_server_and_in_the_next_session_too() {
        let folder = tempfile::tempdir().expect("temporary folder");
        list(&folder).insert(SERVER, &key("a.pdb"), Absence::Missing);
        let next = list(&folder);
        let missing = Some(Absence::Missing);
        assert_eq!(next.get(SERVER, &key("a.pdb")), missing);
        assert_eq!(next.get("https://x/symbols/", &key("A.pdb")), missing);
        assert_eq!(next.get(SERVER, &key("b.pdb")), None);
        assert_eq!(next.get("https://y", &key("a.pdb")), None);
        next.clear();
        assert_eq!(next.get(SERVER, &key("a.pdb")), None);
        assert_eq!(list(&folder).get(SERVER, &key("a.pdb")), None);
    }

    #[test]
    fn a_refused_file_is_requested_again_in_minutes() {
        let folder = tempfile::tempdir().expect("temporary folder");
        list(&folder).insert(SERVER, &key("a.pdb"), Absence::Refused);
        assert_eq!(list(&folder).get(SERVER, &key("a.pdb")), Some(Absence::Refused));
        let file = private_folder(folder.path()).join(FILE_NAME);
        let line = line(SERVER, &key("a.pdb"));
        for (minutes, is_known) in [(9, true), (11, false)] {
            fs::write(&file, entry(&line, (Absence::Refused, now() - minutes * 60))).expect("list");
            assert_eq!(list(&folder).get(SERVER, &key("a.pdb")).is_some(), is_known);
        }
    }

    #[test]
    fn old_future_and_damaged_lines_count_for_nothing_and_go() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = private_folder(folder.path()).join(FILE_NAME);
        fs::create_dir(file.parent().expect("a folder")).expect("our folder");
        let entry = |since, name| entry(&line(SERVER, &key(name)), (Absence::Missing, since));
        let (old, future) = (now() - 2 * DAY.as_secs(), now() + DAY.as_secs());
        let mut text = entry(old, "a.pdb") + &entry(future, "b.pdb") + "\0garbage\n\t\n";
        text += &entry(now(), "c.pdb");
        fs::write(&file, &text).expect("list");
        let list = list(&folder);
        let missing =
            ["a.pdb", "b.pdb", "c.pdb"].map(|name| list.get(SERVER, &key(name)).is_some());
        assert_eq!(missing, [false, false, true]);
        assert_eq!(fs::read_to_string(&file).expect("list").lines().count(), 1);
    }

    #[test]
    fn without_an_age_or_a_folder_nothing_is_kept() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let list = with_ages(Some(folder.path().to_owned()), Duration::ZERO);
        list.insert(SERVER, &key("a.pdb"), Absence::Missing);
        assert_eq!(list.get(SERVER, &key("a.pdb")), None);
        let list = with_ages(None, DAY);
        list.insert(SERVER, &key("a.pdb"), Absence::Missing);
        assert_eq!(list.get(SERVER, &key("a.pdb")), Some(Absence::Missing));
    }
}
