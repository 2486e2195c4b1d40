//! Opens the parts of an extract, from an archive or from files beside each other.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use handlescope_extract::ExtractObserver;
use handlescope_model::unpack::{SevenZipMembers, temporary};
use handlescope_model::{Container, ContainerLimits, open_file};

use super::document::Document;
use super::error::ImportError;
use crate::etwanalyzer::{DERIVED, ExtractMember, find};
use crate::text::ReadProgress;

/// The parts an extract has.
pub struct ExtractParts(Vec<(ExtractMember, Document)>);

impl ExtractParts {
    /// Takes a part.
    pub fn take(&mut self, member: ExtractMember) -> Option<Document> {
        let index = self.0.iter().position(|(part, _)| *part == member)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// Returns the files an extract consists of: the archive, or the main file and its companions.
///
/// Any file of the plain form selects all of them.
pub fn import_sources(input: &Path) -> Vec<PathBuf> {
    if !is_plain(input) {
        return vec![input.to_path_buf()];
    }
    let base = plain_base(input);
    let paths = ExtractMember::ALL.map(|member| input.with_file_name(member.name(&base)));
    paths.into_iter().filter(|path| path.is_file()).collect()
}

/// Whether the name is of the uncompressed form.
fn is_plain(input: &Path) -> bool {
    input.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Returns the common prefix of all part names.
fn plain_base(input: &Path) -> String {
    let stem = input.file_stem().unwrap_or_default().to_string_lossy();
    stem.split_once(DERIVED).map_or(&*stem, |(base, _)| base).to_owned()
}

/// Opens an extract. Members of an archive are unpacked into unnamed files in `folder`.
pub fn open(
    input: &Path,
    folder: &Path,
    limits: &ContainerLimits,
    observer: &dyn ExtractObserver,
    progress: &ReadProgress<'_>,
) -> Result<ExtractParts, ImportError> {
    if is_plain(input) {
        open_plain(input, limits, observer)
    } else {
        open_packed(input, folder, limits, observer, progress)
    }
}

fn open_plain(
    input: &Path,
    limits: &ContainerLimits,
    observer: &dyn ExtractObserver,
) -> Result<ExtractParts, ImportError> {
    let base = plain_base(input);
    let (mut parts, mut total) = (Vec::new(), 0);
    for member in ExtractMember::ALL {
        let name = member.name(&base);
        let path = input.with_file_name(&name);
        let open = |source| ImportError::Open { path: path.clone(), source };
        let file = match open_file(&path) {
            Ok(file) => file,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && member != ExtractMember::Main =>
            {
                continue;
            }
            Err(error) => return Err(open(error)),
        };
        let size = file.metadata().map_err(open)?.len();
        limits.check_size(input, &name, size)?;
        total += size;
        parts.push((member, Document { path: input.to_path_buf(), member: name, file }));
    }
    observer.on_started(total);
    Ok(ExtractParts(parts))
}

/// Unpacks the members we read, each into an unnamed temporary file in `folder`.
fn open_packed(
    input: &Path,
    folder: &Path,
    limits: &ContainerLimits,
    observer: &dyn ExtractObserver,
    progress: &ReadProgress<'_>,
) -> Result<ExtractParts, ImportError> {
    let container = Container::open(input, limits)?;
    let (kinds, indexes): (Vec<ExtractMember>, Vec<usize>) =
        choose(input, &container).into_iter().unzip();
    let members = SevenZipMembers::choose(input, container, indexes, limits)?;
    // Each byte is counted twice: when unpacked and when parsed.
    observer.on_started(members.entries().map(|(_, size)| size * 2).sum());
    let files: Result<Vec<File>, _> = kinds.iter().map(|_| temporary(input, folder)).collect();
    let files = files?;
    let names: Vec<String> = members.entries().map(|(name, _)| name.to_owned()).collect();
    let unpacked = members.unpack(&files, &|bytes| {
        progress.add(bytes);
        progress.check()
    });
    progress.cancel.check()?;
    unpacked?;
    let documents = names.into_iter().zip(files).map(|(member, file)| Document {
        path: input.to_path_buf(),
        member,
        file,
    });
    Ok(ExtractParts(kinds.into_iter().zip(documents).collect()))
}

/// Returns the members we read, with their index in the archive.
fn choose(path: &Path, container: &Container) -> Vec<(ExtractMember, usize)> {
    let entries = &container.archive.files;
    let names: Vec<&str> = entries
        .iter()
        .filter(|entry| !entry.is_directory && !entry.name.contains(['/', '\\']))
        .map(|entry| entry.name.as_str())
        .collect();
    let base = path.file_stem().unwrap_or_default().to_string_lossy();
    ExtractMember::ALL
        .into_iter()
        .filter_map(|member| {
            let name = find(member, &base, &names)?;
            Some((member, entries.iter().position(|entry| entry.name == name)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_the_plain_form_stands_for_all() {
        assert_eq!(plain_base(Path::new("x/a.json")), "a");
        assert_eq!(plain_base(Path::new("x/a_Derived_HandleStacks.json")), "a");
    }
}
