//! Archives of any supported kind: lists their members by name and unpacks one of them within limits.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use cab::Cabinet;

use super::container::{Container, ContainerError, ContainerLimits, refused_name};
use super::unpack::{SevenZipMembers, UnpackWatch, Zip, copy};
use crate::file::open_file;
use crate::guard::quietly;
use crate::noting::Reason;

/// Extensions of archives that may hold traces. Visual Studio's `.diagsession` is a zip archive.
pub const ARCHIVE_EXTENSIONS: [&str; 4] = ["zip", "7z", "diagsession", "cab"];

const SEVENZ_MAGIC: &[u8] = b"7z\xBC\xAF\x27\x1C";
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
const CABINET_MAGIC: &[u8] = b"MSCF";

/// An archive whose table of contents has been read, and nothing else.
pub struct AnyArchive<'a> {
    path: &'a Path,
    /// Size of the file, bytes.
    packed: u64,
    content: ArchiveContent,
}

enum ArchiveContent {
    Zip(Box<Zip>),
    SevenZip(Box<Container>),
    Cabinet(Box<Cabinet<BufReader<File>>>),
}

impl<'a> AnyArchive<'a> {
    /// Opens a file if it starts like an archive, whatever its name; returns `None` for any other file.
    ///
    /// # Errors
    /// If the file cannot be opened, its table of contents is damaged or too large, or a name leads out of the archive.
    pub fn open(path: &'a Path, limits: &ContainerLimits) -> Result<Option<Self>, ContainerError> {
        let open = |source| ContainerError::Open { path: path.to_path_buf(), source };
        let mut file = open_file(path).map_err(open)?;
        let packed = file.metadata().map_err(open)?.len();
        let mut magic = Vec::new();
        (&mut file).take(SEVENZ_MAGIC.len() as u64).read_to_end(&mut magic).map_err(open)?;
        file.rewind().map_err(open)?;
        let content = if magic.starts_with(ZIP_MAGIC) {
            ArchiveContent::Zip(Box::new(Zip::open(path, file)?))
        } else if magic == SEVENZ_MAGIC {
            ArchiveContent::SevenZip(Box::new(Container::open(path, limits)?))
        } else if magic.starts_with(CABINET_MAGIC) {
            ArchiveContent::Cabinet(Box::new(open_cabinet(path, file)?))
        } else {
            return Ok(None);
        };
        Ok(Some(Self { path, packed, content }))
    }

    /// Names of the members.
    pub fn names(&self) -> Vec<String> {
        match &self.content {
            ArchiveContent::Zip(zip) => zip.names.clone(),
            ArchiveContent::SevenZip(container) => container
                .archive
                .files
                .iter()
                .filter(|entry| !entry.is_directory)
                .map(|entry| entry.name.clone())
                .collect(),
            ArchiveContent::Cabinet(cabinet) => cabinet_names(cabinet),
        }
    }

    /// Returns the member with this name if the limits allow unpacking it.
    ///
    /// # Errors
    /// If the limits forbid it or there is no such member.
    pub fn member(
        self,
        name: &'a str,
        limits: &ContainerLimits,
    ) -> Result<PackedMember<'a>, ContainerError> {
        let Self { path, packed, content } = self;
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let (size, content_bytes, source) = match content {
            ArchiveContent::SevenZip(container) => {
                let index = container.archive.files.iter().position(|entry| entry.name == name);
                let indexes = index.into_iter().collect();
                let members = SevenZipMembers::choose(path, *container, indexes, limits)?;
                let size = members.entries().map(|(_, size)| size).sum();
                return Ok(PackedMember {
                    path,
                    name,
                    size,
                    source: MemberSource::SevenZip(Box::new(members)),
                });
            }
            ArchiveContent::Zip(mut zip) => {
                let member = zip.archive.by_name(name);
                let size = member.map_err(|error| damaged(path, name, &error))?.size();
                (size, size, MemberSource::Zip(zip))
            }
            ArchiveContent::Cabinet(cabinet) => {
                // Unpacking a member also unpacks the files before it in its folder.
                let folder = cabinet
                    .folder_entries()
                    .find(|folder| folder.file_entries().any(|file| file.name() == name))
                    .ok_or_else(|| damaged(path, name, &missing()))?;
                let sizes = folder.file_entries().map(|file| u64::from(file.uncompressed_size()));
                let file = cabinet.get_file_entry(name);
                let size = file.map_or(0, |file| u64::from(file.uncompressed_size()));
                (size, sizes.sum(), MemberSource::Cabinet(cabinet))
            }
        };
        limits.check_size(path, name, size)?;
        limits.check_content(path, packed, content_bytes)?;
        Ok(PackedMember { path, name, size, source })
    }
}

/// A member that the limits allow to be unpacked.
pub struct PackedMember<'a> {
    path: &'a Path,
    name: &'a str,
    size: u64,
    source: MemberSource<'a>,
}

enum MemberSource<'a> {
    Zip(Box<Zip>),
    SevenZip(Box<SevenZipMembers<'a>>),
    Cabinet(Box<Cabinet<BufReader<File>>>),
}

impl PackedMember<'_> {
    /// Returns the unpacked size that the archive claims, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Unpacks the member into a file.
    ///
    /// # Errors
    /// If the member is damaged or its size differs from what the archive claims, the file cannot be written, or
    /// `watch`
    /// stops it.
    pub fn unpack(self, mut target: &File, watch: UnpackWatch<'_>) -> Result<(), ContainerError> {
        let Self { path, name, size, source } = self;
        match source {
            MemberSource::SevenZip(members) => {
                let target = target.try_clone().map_err(|error| damaged(path, name, &error))?;
                members.unpack(&[target], watch)
            }
            MemberSource::Zip(mut zip) => {
                let member = zip.archive.by_name(name);
                let mut member = member.map_err(|error| damaged(path, name, &error))?;
                copy(&mut member, &mut target, size, watch)
                    .map_err(|error| damaged(path, name, &error))
            }
            MemberSource::Cabinet(mut cabinet) => {
                of_cabinet(|| copy(&mut cabinet.read_file(name)?, &mut target, size, watch))
                    .map_err(|error| damaged(path, name, &error))
            }
        }
    }
}

fn open_cabinet(path: &Path, file: File) -> Result<Cabinet<BufReader<File>>, ContainerError> {
    let cabinet = of_cabinet(|| Cabinet::new(BufReader::new(file))).map_err(|error| {
        let reason = Reason(&error).to_string();
        ContainerError::Unreadable { path: path.to_path_buf(), reason }
    })?;
    let names = cabinet_names(&cabinet);
    if let Some((member, reason)) = refused_name(names.iter().map(String::as_str)) {
        let (path, member) = (path.to_path_buf(), member.to_owned());
        return Err(ContainerError::Name { path, member, reason });
    }
    Ok(cabinet)
}

fn cabinet_names(cabinet: &Cabinet<BufReader<File>>) -> Vec<String> {
    let files = cabinet.folder_entries().flat_map(|folder| folder.file_entries());
    files.map(|file| file.name().to_owned()).collect()
}

/// Runs a read of a cabinet. The crate trusts the offsets in the file and panics if a damaged one leads it astray.
fn of_cabinet<T>(read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    quietly(read).unwrap_or_else(|_| Err(io::Error::other("the cabinet is damaged")))
}

fn damaged(path: &Path, member: &str, error: &dyn std::error::Error) -> ContainerError {
    let (path, member) = (path.to_path_buf(), member.to_owned());
    ContainerError::Member { path, member, reason: error.to_string() }
}
