//! The parts of an extract, from an archive or from files side by side.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use handlescope_model::{HeaderBudget, decoder_memory, is_bomb, refused_name};
use sevenz_rust::{Archive, BlockDecoder, Password};

use super::document::Document;
use super::error::ImportError;
use super::limits::ImportLimits;
use super::members::{DERIVED, Part, find};
use super::progress::Progress;
use crate::extraction::ExtractObserver;

/// The parts of an extract; those it lacks are missing.
pub(super) struct Parts(Vec<(Part, Document)>);

impl Parts {
    /// Takes a part out.
    pub(super) fn take(&mut self, part: Part) -> Option<Document> {
        let place = self.0.iter().position(|(other, _)| *other == part)?;
        Some(self.0.swap_remove(place).1)
    }
}

/// The files that an extract consists of: the archive, or the main part and those beside it.
///
/// Any part of the plain form stands for all of them.
pub fn import_sources(input: &Path) -> Vec<PathBuf> {
    if !is_plain(input) {
        return vec![input.to_path_buf()];
    }
    let base = plain_base(input);
    let parts = Part::ALL.map(|part| input.with_file_name(part.name(&base)));
    parts.into_iter().filter(|path| path.is_file()).collect()
}

/// Whether the name is that of the uncompressed form.
fn is_plain(input: &Path) -> bool {
    input.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// What the names of all parts begin with.
fn plain_base(input: &Path) -> String {
    let stem = input.file_stem().unwrap_or_default().to_string_lossy();
    stem.split_once(DERIVED).map_or(&*stem, |(base, _)| base).to_owned()
}

/// Opens an extract. Members of an archive are unpacked into `folder`, where nobody sees them.
pub(super) fn open(
    input: &Path,
    folder: &Path,
    limits: &ImportLimits,
    observer: &dyn ExtractObserver,
    progress: &Rc<Progress<'_>>,
) -> Result<Parts, ImportError> {
    if is_plain(input) {
        open_plain(input, limits, observer)
    } else {
        Unpacking { path: input, folder, limits, progress }.run(observer)
    }
}

fn open_plain(
    input: &Path,
    limits: &ImportLimits,
    observer: &dyn ExtractObserver,
) -> Result<Parts, ImportError> {
    let base = plain_base(input);
    let (mut parts, mut total) = (Vec::new(), 0);
    for part in Part::ALL {
        let member = part.name(&base);
        let path = input.with_file_name(&member);
        let open = |source| ImportError::Open { path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && part != Part::Main => continue,
            Err(error) => return Err(open(error)),
        };
        let size = file.metadata().map_err(open)?.len();
        check_size(input, &member, size, limits)?;
        total += size;
        parts.push((part, Document { path: input.to_path_buf(), member, file }));
    }
    observer.on_started(total);
    Ok(Parts(parts))
}

fn check_size(
    path: &Path,
    member: &str,
    size: u64,
    limits: &ImportLimits,
) -> Result<(), ImportError> {
    let limit = limits.member_bytes;
    if size <= limit {
        return Ok(());
    }
    Err(ImportError::TooLarge { path: path.to_path_buf(), member: member.to_owned(), size, limit })
}

/// An archive being unpacked.
struct Unpacking<'a, 'p> {
    path: &'a Path,
    folder: &'a Path,
    limits: &'a ImportLimits,
    progress: &'a Rc<Progress<'p>>,
}

impl Unpacking<'_, '_> {
    fn run(&self, observer: &dyn ExtractObserver) -> Result<Parts, ImportError> {
        let open = |source| ImportError::Open { path: self.path.to_path_buf(), source };
        let file = File::open(self.path).map_err(open)?;
        let packed = file.metadata().map_err(open)?.len();
        let budget = HeaderBudget::default();
        let mut source = BufReader::new(budget.watch(file));
        let archive = Archive::read(&mut source, &Password::empty())
            .map_err(|error| self.archive(error.to_string()))?;
        budget.lift();
        let wanted = self.choose(&archive)?;
        let blocks = self.check_blocks(&archive, &wanted, packed)?;
        let sizes = wanted.iter().filter_map(|(_, index)| archive.files.get(*index));
        // Each byte passes twice: when it is unpacked and when it is parsed.
        observer.on_started(sizes.map(|entry| entry.size * 2).sum());
        let mut parts = Vec::new();
        for (part, index) in &wanted {
            let Some(entry) = archive.files.get(*index) else { continue };
            let file = tempfile::tempfile_in(self.folder).map_err(|error| {
                self.archive(format!("no temporary file in {}: {error}", self.folder.display()))
            })?;
            let (path, member) = (self.path.to_path_buf(), entry.name.clone());
            parts.push((*part, Document { path, member, file }));
        }
        for block in blocks {
            self.block(&archive, block, &mut source, &mut parts)?;
        }
        Ok(Parts(parts))
    }

    /// The members that are read, by their place in the archive.
    fn choose(&self, archive: &Archive) -> Result<Vec<(Part, usize)>, ImportError> {
        if let Some((member, reason)) = refused_name(archive) {
            let (path, member) = (self.path.to_path_buf(), member.to_owned());
            return Err(ImportError::Name { path, member, reason });
        }
        let mut names = Vec::new();
        for entry in &archive.files {
            if !entry.is_directory && !entry.name.contains(['/', '\\']) {
                names.push(entry.name.as_str());
            }
        }
        let base = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let mut wanted = Vec::new();
        for part in Part::ALL {
            let Some(name) = find(part, &base, &names) else { continue };
            let Some(index) = archive.files.iter().position(|entry| entry.name == name) else {
                continue;
            };
            let size = archive.files.get(index).map_or(0, |entry| entry.size);
            check_size(self.path, name, size, self.limits)?;
            wanted.push((part, index));
        }
        Ok(wanted)
    }

    /// The blocks that hold these members, if they may be unpacked.
    fn check_blocks(
        &self,
        archive: &Archive,
        wanted: &[(Part, usize)],
        packed: u64,
    ) -> Result<Vec<usize>, ImportError> {
        let block_of =
            |index: usize| archive.stream_map.file_block_index.get(index).copied().flatten();
        let mut blocks: Vec<usize> =
            wanted.iter().filter_map(|(_, index)| block_of(*index)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let in_block = |index: usize| block_of(index).is_some_and(|block| blocks.contains(&block));
        let sizes = archive.files.iter().enumerate().filter(|(index, _)| in_block(*index));
        let total = sizes.fold(0u64, |total, (_, entry)| total.saturating_add(entry.size));
        let limits = self.limits;
        if total > limits.total_bytes {
            let (path, limit) = (self.path.to_path_buf(), limits.total_bytes);
            let member = "and those before it".to_owned();
            return Err(ImportError::TooLarge { path, member, size: total, limit });
        }
        if is_bomb(packed, total) {
            return Err(self
                .archive(format!("{packed} bytes claim to hold {total}, which no extract does")));
        }
        for block in blocks.iter().filter_map(|block| archive.blocks.get(*block)) {
            for coder in &block.coders {
                let needed = decoder_memory(coder.encoder_method_id(), coder.properties());
                if needed > limits.decoder_bytes {
                    return Err(
                        self.archive(format!("unpacking it needs {needed} bytes of memory"))
                    );
                }
            }
        }
        Ok(blocks)
    }

    /// Unpacks the wanted members of a block.
    fn block<R: Read + io::Seek>(
        &self,
        archive: &Archive,
        block: usize,
        source: &mut R,
        parts: &mut [(Part, Document)],
    ) -> Result<(), ImportError> {
        let password = Password::empty();
        let mut current = String::new();
        let mut left = parts.len();
        let decoder = BlockDecoder::new(1, block, archive, &password, source);
        let result = decoder.for_each_entries(&mut |entry, reader| {
            current.clone_from(&entry.name);
            let wanted = parts.iter_mut().find(|(_, document)| document.member == entry.name);
            let Some((_, document)) = wanted else {
                self.copy(reader, &mut io::sink())?;
                return Ok(true);
            };
            let unpacked = self.copy(reader, &mut document.file)?;
            if unpacked != entry.size {
                let reason = format!("{unpacked} of {} bytes, then it ends", entry.size);
                return Err(io::Error::other(reason).into());
            }
            left = left.saturating_sub(1);
            Ok(left > 0)
        });
        match result {
            Ok(_) => Ok(()),
            Err(_) if self.progress.is_cancelled() => Err(ImportError::Cancelled),
            Err(error) => {
                if current.is_empty() {
                    return Err(self.archive(error.to_string()));
                }
                let path = self.path.to_path_buf();
                Err(ImportError::Member { path, member: current, reason: error.to_string() })
            }
        }
    }

    fn copy(&self, reader: &mut dyn Read, target: &mut dyn Write) -> io::Result<u64> {
        let mut buffer = vec![0; 256 << 10];
        let mut copied = 0;
        loop {
            self.progress.check()?;
            let count = reader.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(copied);
            };
            target.write_all(bytes)?;
            copied += count as u64;
            self.progress.add(count as u64);
        }
    }

    fn archive(&self, reason: String) -> ImportError {
        if self.progress.is_cancelled() {
            return ImportError::Cancelled;
        }
        ImportError::Archive { path: self.path.to_path_buf(), reason }
    }
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
