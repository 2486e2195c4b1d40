//! Finds the trace: a file, or the `.etl` or minidump in an archive.

use std::env;
use std::fs::File;
use std::io;
use std::path::Path;

use handlescope_model::unpack::{UnpackWatch, temporary};
use handlescope_model::{
    ARCHIVE_EXTENSIONS, AnyArchive, Cancel, Cancelled, ContainerError, ContainerLimits, open_file,
};

use crate::error::ExtractError;

/// Trace ready to be read.
pub struct Input {
    /// The `.etl` or `.dmp`. For an archive member, this is an unnamed temporary file that disappears when closed.
    pub file: File,
    /// Its file name.
    pub name: String,
}

/// Start of a minidump.
pub const MINIDUMP_MAGIC: &[u8] = b"MDMP";

impl Input {
    /// Opens a trace, or unpacks it from its archive if the limits allow it.
    ///
    /// # Errors
    /// Fails if it cannot be read or unpacked, an archive has no trace or several, or `cancel` requests a stop.
    pub fn open(
        path: &Path,
        limits: &ContainerLimits,
        cancel: &Cancel,
    ) -> Result<Self, ExtractError> {
        let watch = |_| {
            if cancel.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
        };
        let unpacked = match AnyArchive::open(path, limits) {
            Err(ContainerError::Open { path, source }) => Err(ExtractError::Open { path, source }),
            Err(error) => Err(error.into()),
            Ok(Some(archive)) => unpack(path, archive, limits, &watch),
            Ok(None) => open_file(path)
                .map(|file| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    (file, name)
                })
                .map_err(|source| ExtractError::Open { path: path.to_path_buf(), source }),
        };
        match unpacked {
            Err(_) if cancel.is_cancelled() => Err(ExtractError::Cancelled(Cancelled)),
            Err(error) => Err(error),
            Ok((file, name)) => Ok(Self { file, name }),
        }
    }
}

/// Unpacks the trace into an unnamed temporary file; also returns its name.
fn unpack(
    path: &Path,
    archive: AnyArchive<'_>,
    limits: &ContainerLimits,
    watch: UnpackWatch<'_>,
) -> Result<(File, String), ExtractError> {
    let name = choose(path, &archive.names())?;
    let member = archive.member(&name, limits)?;
    let target = temporary(path, &env::temp_dir())?;
    member.unpack(&target, watch)?;
    Ok((target, name))
}

/// Extensions of traces in archives. A dump next to an `.etl` is not the trace.
const EXTENSIONS: [&str; 2] = [".etl", ".dmp"];

/// Returns the only `.etl`, or the one with the archive's name. If there is no `.etl`, does the same for `.dmp`.
pub fn choose(path: &Path, names: &[String]) -> Result<String, ExtractError> {
    let with = |extension: &'static str| -> Vec<&String> {
        names.iter().filter(|name| name.to_ascii_lowercase().ends_with(extension)).collect()
    };
    let extension =
        EXTENSIONS.into_iter().find(|extension| !with(extension).is_empty()).unwrap_or_default();
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

/// Extensions of other archives, including extracts.
const FURTHER_ARCHIVES: [&str; 4] = ["json7z", "rar", "gz", "tar"];

/// File that every perfcollect recording contains.
const PERFCOLLECT_FILE: &str = "perf.data.txt";

/// Describes the content of an archive without a trace.
fn held(names: &[String]) -> String {
    if names.iter().any(|name| name.rsplit(['/', '\\']).next() == Some(PERFCOLLECT_FILE)) {
        return "is a Linux recording by perfcollect (.trace.zip), which has no Windows handles; record them \
                on Windows with handlescope record or wprp"
            .to_owned();
    }
    let is_archive = |name: &&String| {
        let extension = Path::new(name).extension().unwrap_or_default();
        let mut extensions = ARCHIVE_EXTENSIONS.iter().chain(&FURTHER_ARCHIVES);
        extensions.any(|archive| extension.eq_ignore_ascii_case(archive))
    };
    let archives: Vec<&String> = names.iter().filter(is_archive).collect();
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

/// Lists some of the names, which may contain any characters.
fn listed(names: &[&String]) -> String {
    const MAX_NAMES: usize = 3;
    let shown = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| name.escape_debug().to_string())
        .collect::<Vec<_>>()
        .join(", ");
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
        let perfcollect = held(&["a.trace/perf.data.txt", "a.trace/perfinfo-1.map"]);
        assert!(perfcollect.starts_with("a.zip: is a Linux recording"), "{perfcollect}");
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
