//! Output files, which get their names once they are complete, and named temporary files and folders.
//!
//! On Linux an output file is unnamed until then (`O_TMPFILE`, open(2)), so nothing is left of it however the program
//! ends. Elsewhere, and on file systems that cannot do this, it is `.handlescope-PID-START-HOST-RANDOM.tmp` in the
//! folder of the target. The first output of a run into a folder removes such files there if their owner is gone; the
//! first temporary folder does the same beside it.

use std::collections::HashSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf, Prefix};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir, TempPath};

use crate::guard::lock;
use crate::stable_hash::name_of;

const PREFIX: &str = ".handlescope-";
const SUFFIX: &str = ".tmp";

/// Age at which a temporary file is removed if its owner cannot be checked, being on another machine.
const FOREIGN_AGE: Duration = Duration::from_hours(24);

/// The same for folders. It is longer, because a session reads its folders until it ends.
const FOREIGN_FOLDER_AGE: Duration = Duration::from_hours(24 * 7);

/// A file that gets its name once it is complete. Dropping it earlier leaves nothing behind.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// The temporary name, if it needs one.
    name: Option<TempPath>,
}

impl OutputFile {
    /// Starts a file that will appear at `target`, whose folder must exist.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be written.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let folder = existing_folder_of(target)?;
        sweep(folder);
        if let Some(file) = unnamed(folder)? {
            return Ok(Self { file, name: None });
        }
        let (file, name) = named_in(folder).map_err(folder_error)?.into_parts();
        Ok(Self { file, name: Some(name) })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. An existing file of that name is replaced atomically, and its permissions are kept.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn persist(self, target: &Path) -> io::Result<()> {
        #[cfg(unix)]
        if let Ok(replaced) = fs::metadata(target)
            && replaced.is_file()
        {
            self.file.set_permissions(replaced.permissions())?;
        }
        let name = match self.name {
            Some(name) => name,
            None => match link(&self.file, target)? {
                Some(name) => name,
                None => return Ok(()),
            },
        };
        name.persist(target).or_else(|error| {
            // On Windows, this call can replace an open file too, but not one that is mapped into memory.
            fs::rename(&error.path, target).map_err(|error| not_replaced(error, target))
        })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Read for OutputFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Creates a named temporary file, for content that has to be opened by name. It is removed when dropped, or by a later
/// run that finds its owner gone.
///
/// # Errors
/// If the folder does not exist or cannot be written.
pub fn named_in(folder: &Path) -> io::Result<NamedTempFile> {
    sweep(folder);
    let mut builder = named();
    // As readable as any other new file, instead of private.
    set_mode(&mut builder, 0o666);
    builder.tempfile_in(folder)
}

/// Creates a folder among the system's temporary files, for content that lives as long as the session. Only the user
/// may enter it, because it holds extracts of traces that may be private. It is removed like a file of [`named_in`].
///
/// # Errors
/// If it cannot be created.
pub fn temporary_folder() -> io::Result<TempDir> {
    let mut builder = named();
    set_mode(&mut builder, 0o700);
    folder_in(&env::temp_dir(), &builder)
}

/// Creates a folder for work in progress within another one, as open to others as any new folder. It is removed like a
/// file of [`named_in`].
///
/// # Errors
/// If it cannot be created.
pub fn working_folder_in(folder: &Path) -> io::Result<TempDir> {
    let mut builder = named();
    set_mode(&mut builder, 0o777);
    folder_in(folder, &builder)
}

fn folder_in(folder: &Path, builder: &tempfile::Builder<'_, '_>) -> io::Result<TempDir> {
    sweep(folder);
    builder.tempdir_in(folder)
}

/// Whether a temporary file or folder belongs to a process that may still run.
#[must_use]
pub fn is_in_use(path: &Path) -> bool {
    let kind = path.symlink_metadata();
    is_abandoned(path, kind.is_ok_and(|data| data.is_dir())) == Some(false)
}

/// Whether the owner of a temporary file or folder is gone; `None` if the name is not that of a temporary file or
/// folder.
fn is_abandoned(path: &Path, is_folder: bool) -> Option<bool> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let max_age = if is_folder { FOREIGN_FOLDER_AGE } else { FOREIGN_AGE };
    let age = || path.symlink_metadata().ok()?.modified().ok()?.elapsed().ok();
    Some(is_gone(name, max_age, age))
}

/// Sets the permissions of a temporary file or folder; the umask still applies.
#[cfg(unix)]
fn set_mode(builder: &mut tempfile::Builder<'_, '_>, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
fn set_mode(_: &mut tempfile::Builder<'_, '_>, _: u32) {}

/// Creates a folder and checks that files can be created in it.
///
/// # Errors
/// If either fails.
pub fn prepare_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        // The folders above are created too, so only the root can be missing, such as a drive.
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "no folder can be made there"),
        _ => error,
    })?;
    tempfile::tempfile_in(folder).map(drop).map_err(folder_error)
}

pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns the folder that a file is to be created in.
///
/// # Errors
/// If it does not exist.
pub fn existing_folder_of(path: &Path) -> io::Result<&Path> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(folder);
    }
    // On Windows `a:b.txt` is a file on a drive, which the user may not have meant.
    let reason = match drive_of(folder) {
        Some(drive) if !Path::new(&format!("{drive}:\\")).is_dir() => {
            format!("there is no drive {drive}:")
        }
        _ => "folder not found".to_owned(),
    };
    Err(io::Error::new(io::ErrorKind::NotFound, reason))
}

/// Returns the drive letter that a path starts with; `None` except on Windows.
fn drive_of(path: &Path) -> Option<char> {
    match path.components().next()? {
        Component::Prefix(prefix) => match prefix.kind() {
            Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => Some(char::from(letter)),
            _ => None,
        },
        _ => None,
    }
}

/// Describes why an existing folder takes no file, without the name the file would have had.
fn folder_error(error: io::Error) -> io::Error {
    match error.kind() {
        // The case for folders of the kernel, such as /proc.
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "no file can be made in this folder")
        }
        _ => error,
    }
}

/// Describes why a file was not replaced. Windows reports a lack of permission and a file that a program has loaded in
/// the same way.
fn not_replaced(error: io::Error, target: &Path) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::PermissionDenied if cfg!(windows) && target.exists() => {
            io::Error::new(kind, "no permission, or another program has it open")
        }
        _ => error,
    }
}

/// Creates an unnamed file; returns `None` if the system cannot do that.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    // Without /proc, the file could not get a name.
    if !Path::new("/proc/self/fd").is_dir() {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(Some(file.into())),
        // The file system, or the kernel, cannot do it (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives an unnamed file the name of the target, or a temporary name if the target exists.
#[cfg(target_os = "linux")]
fn link(file: &File, target: &Path) -> io::Result<Option<TempPath>> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};

    // As linkat(2) recommends, because AT_EMPTY_PATH needs a privilege.
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| {
        linkat(CWD, source.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    };
    match link(target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => return linked.map(|()| None),
    }
    let named = named().make_in(folder_of(target), |path| link(path))?;
    Ok(Some(named.into_temp_path()))
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<Option<TempPath>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Builds a temporary file or folder named after its owner: process id, process start time, and machine.
fn named() -> tempfile::Builder<'static, 'static> {
    static OWNER: LazyLock<String> = LazyLock::new(|| {
        let pid = std::process::id();
        format!("{PREFIX}{pid}-{}-{}-", start_of(pid).unwrap_or_default(), *HOST)
    });
    let mut builder = tempfile::Builder::new();
    builder.prefix(&**OWNER).suffix(SUFFIX);
    builder
}

/// The machine and, in a container, its process namespace: elsewhere a process id means something else.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    name_of([name.as_bytes(), processes.as_os_str().as_encoded_bytes()])
});

/// Returns the start time of a process in ticks since boot (proc_pid_stat(5), field 22); `None` if there is no such
/// process or no such file.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, field 2, may hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Removes what exited programs left in a folder, once per run.
fn sweep(folder: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let is_new = lock(&SWEPT)
        .get_or_insert_default()
        .insert(std::path::absolute(folder).unwrap_or_default());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|_| is_new) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_abandoned(&entry.path(), is_folder) == Some(true) {
            let _ = if is_folder {
                fs::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            };
        }
    }
}

/// Whether the process named in a temporary file's name has exited; if that cannot be checked, whether the file is
/// older than `max_age`.
fn is_gone(name: &str, max_age: Duration, age: impl FnOnce() -> Option<Duration>) -> bool {
    let mut fields = name.split('-');
    let mut next = || fields.next();
    let pid = next().and_then(|pid| pid.parse().ok());
    let start = next().and_then(|start| start.parse().ok()).filter(|start| *start != 0);
    let is_here = next() == Some(HOST.as_str());
    match (pid, start) {
        (Some(pid), Some(start)) if is_here => start_of(pid) != Some(start),
        _ => age().is_some_and(|age| age > max_age),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_output_appears_when_it_is_whole_and_replaces_the_old_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a.txt");
        for text in ["first", "second"] {
            let mut output = OutputFile::beside(&target).expect("an output");
            output.write_all(text.as_bytes()).expect("written");
            output.persist(&target).expect("renamed");
            assert_eq!(fs::read_to_string(&target).expect("read"), text);
            assert_eq!(names(folder.path()), ["a.txt"]);
        }
        let mut output = OutputFile::beside(&target).expect("an output");
        output.write_all(b"third").expect("written");
        drop(output);
        assert_eq!(fs::read_to_string(&target).expect("read"), "second");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_output_has_no_name_before_on_linux() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = OutputFile::beside(&folder.path().join("a.txt")).expect("an output");
        // It has one only if the file system of the temporary folder cannot do without.
        assert_eq!(output.name.is_none(), names(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = OutputFile::beside(&folder.path().join("b/a.txt")).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_files_of_a_program_that_is_gone_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: String| {
            let path = folder.path().join(&name);
            fs::write(&path, "").expect("a file");
            (path, name)
        };
        let (pid, host) = (std::process::id(), HOST.as_str());
        let start = start_of(pid).expect("this process");
        let (_, current) = make(format!("{PREFIX}{pid}-{start}-{host}-abc{SUFFIX}"));
        let (_, young) = make(format!("{PREFIX}1-2-0{host}-abc{SUFFIX}"));
        let (old, _) = make(format!("{PREFIX}3-4-0{host}-abc{SUFFIX}"));
        let day = SystemTime::now() - Duration::from_hours(25);
        File::options()
            .append(true)
            .open(old)
            .and_then(|file| file.set_modified(day))
            .expect("old");
        let (_, settings) = make(".handlescope-settings".to_owned());
        make(format!("{PREFIX}{pid}-{}-{host}-abc{SUFFIX}", start + 1));
        make(format!("{PREFIX}4194305-5-{host}-abc{SUFFIX}"));
        let make_folder = |name: String| {
            fs::create_dir(folder.path().join(&name)).expect("a folder");
            let file = format!("{name}/a.json7z");
            let (path, _) = make(file);
            let folder = File::open(path.parent().expect("a folder")).expect("a folder");
            folder.set_modified(day).expect("old");
            name
        };
        let current_folder = make_folder(format!("{PREFIX}{pid}-{start}-{host}-def{SUFFIX}"));
        let foreign_folder = make_folder(format!("{PREFIX}3-4-0{host}-def{SUFFIX}"));
        make_folder(format!("{PREFIX}4194305-5-{host}-def{SUFFIX}"));
        let mut expected = vec![current, young, settings, current_folder, foreign_folder];
        expected.sort_unstable();
        sweep(folder.path());
        assert_eq!(names(folder.path()), expected);
    }
}
