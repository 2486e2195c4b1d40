//! Finding the `.etl`: a file, or a member of a `.zip` or `.7z` archive.

mod choose;
mod zip;

use std::env;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use handlescope_model::{Cancel, Cancelled, Container, ContainerLimits, open_file};

use self::choose::choose;
use crate::error::ExtractError;
use crate::etl::EtlFile;
use crate::members::{SevenZipMembers, Watch, temporary};

/// A trace ready to be read.
pub(crate) struct Input {
    /// The `.etl`; for a member of an archive an unnamed temporary file that is gone when closed.
    pub(crate) file: EtlFile,
    /// File name of the `.etl`.
    pub(crate) name: String,
}

const SEVENZ_MAGIC: &[u8] = b"7z\xBC\xAF\x27\x1C";
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

impl Input {
    /// Opens a trace or unpacks it from the archive it lies in, if the limits allow it.
    pub(crate) fn open(
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
            zip::unpack(path, file, limits, &watch)
        } else if magic == SEVENZ_MAGIC {
            unpack_7z(path, limits, &watch)
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((file, name))
        };
        match unpacked {
            Err(_) if cancel.is_cancelled() => Err(ExtractError::Cancelled(Cancelled)),
            Err(error) => Err(error),
            Ok((file, name)) => Ok(Self { file: EtlFile::new(file).map_err(open)?, name }),
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
    let target = temporary(path, &env::temp_dir())?;
    members.unpack(std::slice::from_ref(&target), watch)?;
    Ok((target, name))
}
