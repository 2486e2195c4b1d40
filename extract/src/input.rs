//! Finding the trace: a file, or the member of a `.zip` or `.7z` archive that is an `.etl` or a minidump.

use std::env;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use handlescope_model::unpack::{SevenZipMembers, Watch, Zip, copy, temporary};
use handlescope_model::{Cancel, Cancelled, Container, ContainerError, ContainerLimits, open_file};

use crate::error::ExtractError;

/// A trace ready to be read.
pub struct Input {
    /// The `.etl` or `.dmp`; for a member of an archive an unnamed temporary file that is gone when closed.
    pub file: File,
    /// Its file name.
    pub name: String,
}

/// Start of a minidump.
pub const MINIDUMP_MAGIC: &[u8] = b"MDMP";

const SEVENZ_MAGIC: &[u8] = b"7z\xBC\xAF\x27\x1C";
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

impl Input {
    /// Opens a trace or unpacks it from the archive it lies in, if the limits allow it.
    ///
    /// # Errors
    /// When it cannot be read or unpacked, an archive has no trace or several, or `cancel` asks to stop.
    pub fn open(
        path: &Path,
        limits: &ContainerLimits,
        cancel: &Cancel,
    ) -> Result<Self, ExtractError> {
        let open = |source| ExtractError::Open { path: path.to_path_buf(), source };
        let mut file = open_file(path).map_err(open)?;
        let mut magic = Vec::new();
        (&mut file).take(6).read_to_end(&mut magic).map_err(open)?;
        file.seek(SeekFrom::Start(0)).map_err(open)?;
        let watch = |_| {
            if cancel.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
        };
        let unpacked = if magic.starts_with(ZIP_MAGIC) {
            unpack_zip(path, file, limits, &watch)
        } else if magic == SEVENZ_MAGIC {
            unpack_7z(path, limits, &watch)
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((file, name))
        };
        match unpacked {
            Err(_) if cancel.is_cancelled() => Err(ExtractError::Cancelled(Cancelled)),
            Err(error) => Err(error),
            Ok((file, name)) => Ok(Self { file, name }),
        }
    }
}

/// Unpacks the trace in a 7z archive into an unnamed temporary file; returns its name, too.
fn unpack_7z(
    path: &Path,
    limits: &ContainerLimits,
    watch: Watch<'_>,
) -> Result<(File, String), ExtractError> {
    let container = Container::open(path, limits)?;
    let files = &container.archive.files;
    let names = files.iter().filter(|entry| !entry.is_directory).map(|entry| entry.name.clone());
    let name = choose(path, &names.collect::<Vec<_>>())?;
    let index = files.iter().position(|entry| entry.name == name);
    let members = SevenZipMembers::choose(path, container, index.into_iter().collect(), limits)?;
    let target = temporary(path, &env::temp_dir())?;
    members.unpack(std::slice::from_ref(&target), watch)?;
    Ok((target, name))
}

/// Unpacks the trace into an unnamed temporary file; returns its name, too.
pub fn unpack_zip(
    path: &Path,
    file: File,
    limits: &ContainerLimits,
    watch: Watch<'_>,
) -> Result<(File, String), ExtractError> {
    let metadata = file.metadata().map_err(|error| ContainerError::Unreadable {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })?;
    let Zip { mut archive, names } = Zip::open(path, file)?;
    let name = choose(path, &names)?;
    let damaged = |reason: String| ContainerError::Member {
        path: path.to_path_buf(),
        member: name.clone(),
        reason,
    };
    let mut member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
    let size = member.size();
    limits.check_size(path, &name, size)?;
    limits.check_content(path, metadata.len(), size)?;
    let mut target = temporary(path, &env::temp_dir())?;
    copy(&mut member, &mut target, size, watch).map_err(|error| damaged(error.to_string()))?;
    drop(member);
    Ok((target, name))
}

/// Extensions of traces in archives. A dump beside an `.etl` is not the trace.
const EXTENSIONS: [&str; 2] = [".etl", ".dmp"];

/// The only `.etl`, or the `.etl` with the archive's name; where there is none, the same of `.dmp`.
pub fn choose(path: &Path, names: &[String]) -> Result<String, ExtractError> {
    let with = |extension: &'static str| -> Vec<&String> {
        names.iter().filter(|name| name.to_ascii_lowercase().ends_with(extension)).collect()
    };
    let extension = EXTENSIONS.into_iter().find(|extension| !with(extension).is_empty());
    let extension = extension.unwrap_or_default();
    let traces = with(extension);
    match traces[..] {
        _ if extension.is_empty() => {
            return Err(ExtractError::NoTraceIn { path: path.to_path_buf(), held: held(names) });
        }
        [only] => return Ok(only.clone()),
        _ => {}
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let stem = stem.strip_suffix(extension).unwrap_or(&stem);
    let mut named = traces.iter().filter(|name| {
        let name = name.to_ascii_lowercase();
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(extension) == Some(stem)
    });
    match (named.next(), named.next()) {
        (Some(name), None) => Ok((*name).clone()),
        _ => {
            let (path, traces) = (path.to_path_buf(), traces.len());
            Err(ExtractError::WhichTrace { path, traces, extension })
        }
    }
}

/// Endings of archives, extracts among them.
const ARCHIVES: [&str; 7] = [".zip", ".7z", ".json7z", ".rar", ".gz", ".tar", ".cab"];

/// Describes the content of an archive without a trace.
fn held(names: &[String]) -> String {
    let archives: Vec<&String> = names
        .iter()
        .filter(|name| {
            let name = name.to_ascii_lowercase();
            ARCHIVES.iter().any(|end| name.ends_with(end))
        })
        .collect();
    match (names, archives.as_slice()) {
        ([], _) => "is an empty archive".to_owned(),
        (names, []) => {
            format!(
                "holds no trace (.etl or .dmp), only {}",
                listed(&names.iter().collect::<Vec<_>>())
            )
        }
        (_, archives) => {
            format!(
                "holds archives ({}) and no trace; unpack it and name one of them",
                listed(archives)
            )
        }
    }
}

/// Some of the names, which may have any character.
fn listed(names: &[&String]) -> String {
    const MAX_NAMES: usize = 3;
    let shown = names.iter().take(MAX_NAMES).map(|name| name.escape_debug().to_string());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace_in(archive: &str, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        choose(Path::new(archive), &names).ok()
    }

    #[test]
    fn the_only_trace_is_taken_under_any_name() {
        assert_eq!(trace_in("x.zip", &["a.txt", "d/b.ETL"]).as_deref(), Some("d/b.ETL"));
        assert_eq!(trace_in("x.zip", &["a.txt", "d/b.DMP"]).as_deref(), Some("d/b.DMP"));
        assert_eq!(trace_in("x.zip", &["x.dmp", "d/b.etl"]).as_deref(), Some("d/b.etl"));
    }

    #[test]
    fn an_archive_without_a_trace_names_its_files() {
        let held = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(Path::new("a.zip"), &names).expect_err("no trace").to_string()
        };
        assert_eq!(held(&[]), "a.zip: is an empty archive");
        assert_eq!(held(&["x.txt"]), "a.zip: holds no trace (.etl or .dmp), only x.txt");
        let many = held(&["b.zip", "x.txt", "c.7Z", "d.json7z", "e\u{1b}.gz"]);
        let expected = "holds archives (b.zip, c.7Z, d.json7z and 1 more) and no trace; unpack it";
        assert!(many.contains(expected), "{many}");
    }

    #[test]
    fn of_several_traces_the_trace_with_the_archives_name_is_taken() {
        assert_eq!(trace_in("b.zip", &["a.etl", "x/b.etl"]).as_deref(), Some("x/b.etl"));
        assert_eq!(trace_in("b.etl.7z", &["a.etl", "b.etl"]).as_deref(), Some("b.etl"));
        assert_eq!(trace_in("b.dmp.7z", &["a.dmp", "b.dmp"]).as_deref(), Some("b.dmp"));
        assert_eq!(trace_in("c.zip", &["a.etl", "b.etl"]), None);
        assert_eq!(trace_in("c.zip", &["x/c.etl", "y/c.etl"]), None);
        assert_eq!(trace_in("c.zip", &[]), None);
    }
}
