//! Finding the `.etl`: a file, or a member of a `.zip` or `.7z` archive.

mod zip;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use handlescope_model::{Container, ContainerError, ContainerLimits};

use crate::error::ExtractError;
use crate::etl::EtlFile;
use crate::extraction::ExtractObserver;
use crate::members::{SevenZipMembers, Watch};

/// A trace ready to be read.
pub(crate) struct Input {
    /// The `.etl`; for a member of an archive an unnamed temporary file that is gone when closed.
    pub(crate) file: EtlFile,
    /// File name of the `.etl`.
    pub(crate) name: String,
    /// Size of the file that was named, bytes.
    pub(crate) source_size: u64,
}

const SEVENZ_MAGIC: &[u8] = b"7z\xBC\xAF\x27\x1C";
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

impl Input {
    /// Opens a trace or unpacks it from the archive it lies in, if the limits allow it.
    pub(crate) fn open(
        path: &Path,
        limits: &ContainerLimits,
        observer: &dyn ExtractObserver,
    ) -> Result<Self, ExtractError> {
        let open = |source| ExtractError::Open { path: path.to_path_buf(), source };
        let mut file = File::open(path).map_err(open)?;
        let source_size = file.metadata().map_err(open)?.len();
        let mut magic = Vec::new();
        (&mut file).take(6).read_to_end(&mut magic).map_err(open)?;
        file.seek(SeekFrom::Start(0)).map_err(open)?;
        let watch = |_| {
            if observer.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
        };
        let unpacked = if magic.starts_with(ZIP_MAGIC) {
            zip::unpack(path, file, limits, &watch)
        } else if magic == SEVENZ_MAGIC {
            unpack_7z(path, limits, &watch)
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((file, name))
        };
        match unpacked {
            Err(_) if observer.is_cancelled() => Err(ExtractError::Cancelled),
            Err(error) => Err(error),
            Ok((file, name)) => {
                Ok(Self { file: EtlFile::new(path, file).map_err(open)?, name, source_size })
            }
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
    let place = files.iter().position(|entry| entry.name == name);
    let members = SevenZipMembers::choose(path, container, place.into_iter().collect(), limits)?;
    let target = temporary(path)?;
    members.unpack(std::slice::from_ref(&target), watch)?;
    Ok((target, name))
}

/// An unnamed temporary file, which is gone when it is closed, whatever happens.
fn temporary(path: &Path) -> Result<File, ExtractError> {
    tempfile::tempfile().map_err(|error| {
        let reason = format!("no temporary file in {}: {error}", std::env::temp_dir().display());
        ContainerError::Unreadable { path: path.to_path_buf(), reason }.into()
    })
}

/// The only `.etl`, or the one that has the archive's name.
fn choose(path: &Path, names: &[String]) -> Result<String, ExtractError> {
    let traces: Vec<&String> =
        names.iter().filter(|name| name.to_ascii_lowercase().ends_with(".etl")).collect();
    if let [only] = traces[..] {
        return Ok(only.clone());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let stem = stem.strip_suffix(".etl").unwrap_or(&stem);
    let has_archive_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(".etl") == Some(stem)
    };
    let mut named = traces.iter().filter(|name| has_archive_name(name));
    match (named.next(), named.next()) {
        (Some(name), None) => Ok((*name).clone()),
        _ => Err(ExtractError::WhichTrace { path: path.to_path_buf(), found: traces.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(archive: &str, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        choose(Path::new(archive), &names).ok()
    }

    #[test]
    fn the_only_trace_is_taken_whatever_its_name() {
        assert_eq!(chosen("x.zip", &["a.txt", "d/b.ETL"]).as_deref(), Some("d/b.ETL"));
    }

    #[test]
    fn of_several_traces_the_one_with_the_archives_name_is_taken() {
        assert_eq!(chosen("b.zip", &["a.etl", "x/b.etl"]).as_deref(), Some("x/b.etl"));
        assert_eq!(chosen("b.etl.7z", &["a.etl", "b.etl"]).as_deref(), Some("b.etl"));
        assert_eq!(chosen("c.zip", &["a.etl", "b.etl"]), None);
        assert_eq!(chosen("c.zip", &["x/c.etl", "y/c.etl"]), None);
        assert_eq!(chosen("c.zip", &[]), None);
    }
}
