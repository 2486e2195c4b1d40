//! Finding the `.etl`: a file, or a member of a `.zip` or `.7z` archive.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use sevenz_rust::{ArchiveReader, Password};
use zip::ZipArchive;

use crate::error::ExtractError;
use crate::etl::EtlFile;
use crate::extraction::ExtractObserver;

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
    /// Opens a trace or unpacks it from the archive it lies in.
    pub(crate) fn open(path: &Path, observer: &dyn ExtractObserver) -> Result<Self, ExtractError> {
        let open = |source| ExtractError::Open { path: path.to_path_buf(), source };
        let mut file = File::open(path).map_err(open)?;
        let source_size = file.metadata().map_err(open)?.len();
        let mut magic = Vec::new();
        (&mut file).take(6).read_to_end(&mut magic).map_err(open)?;
        file.seek(SeekFrom::Start(0)).map_err(open)?;
        if magic.starts_with(ZIP_MAGIC) {
            let (file, name) = unpack_zip(path, file, observer)?;
            Ok(Self { file, name, source_size })
        } else if magic == SEVENZ_MAGIC {
            let (file, name) = unpack_7z(path, file, observer)?;
            Ok(Self { file, name, source_size })
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = EtlFile::new(path, file).map_err(open)?;
            Ok(Self { file, name, source_size })
        }
    }
}

fn unpack_zip(
    path: &Path,
    file: File,
    observer: &dyn ExtractObserver,
) -> Result<(EtlFile, String), ExtractError> {
    let unpack = |reason: String| not_unpacked(path, reason, observer);
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| unpack(error.to_string()))?;
    let names: Vec<String> = archive.file_names().flatten().map(Into::into).collect();
    let name = choose(path, &names)?;
    let member = archive.by_name(&name).map_err(|error| unpack(error.to_string()))?;
    let mut member = Watched { inner: member, observer };
    let mut target = tempfile::tempfile().map_err(|error| unpack(error.to_string()))?;
    io::copy(&mut member, &mut target).map_err(|error| unpack(error.to_string()))?;
    let file = EtlFile::new(path, target).map_err(|error| unpack(error.to_string()))?;
    Ok((file, name))
}

fn unpack_7z(
    path: &Path,
    file: File,
    observer: &dyn ExtractObserver,
) -> Result<(EtlFile, String), ExtractError> {
    let unpack = |reason: String| not_unpacked(path, reason, observer);
    let mut archive = ArchiveReader::new(BufReader::new(file), Password::empty())
        .map_err(|error| unpack(error.to_string()))?;
    let files = archive.archive().files.iter().filter(|entry| !entry.is_directory);
    let names: Vec<String> = files.map(|entry| entry.name.clone()).collect();
    let name = choose(path, &names)?;
    let mut target = tempfile::tempfile().map_err(|error| unpack(error.to_string()))?;
    archive
        .for_each_entries(|entry, reader| {
            let is_wanted = entry.name == name;
            let mut reader = Watched { inner: reader, observer };
            if is_wanted {
                io::copy(&mut reader, &mut target)?;
            } else {
                // In a solid archive the members before the wanted one have to be passed over.
                io::copy(&mut reader, &mut io::sink())?;
            }
            Ok(!is_wanted)
        })
        .map_err(|error| unpack(error.to_string()))?;
    let file = EtlFile::new(path, target).map_err(|error| unpack(error.to_string()))?;
    Ok((file, name))
}

/// Why a member could not be unpacked: because nobody wants it any more, or what was said.
fn not_unpacked(path: &Path, reason: String, observer: &dyn ExtractObserver) -> ExtractError {
    if observer.is_cancelled() {
        return ExtractError::Cancelled;
    }
    ExtractError::Unpack { path: path.to_path_buf(), reason }
}

/// A member that can be read until the observer asks to stop.
struct Watched<'a, R> {
    inner: R,
    observer: &'a dyn ExtractObserver,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.observer.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.inner.read(target)
    }
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
