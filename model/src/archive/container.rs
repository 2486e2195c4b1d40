//! 7z files from untrusted sources: the table of contents is checked before anything is unpacked.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use sevenz_rust::{Archive, Block, Password};

use super::foreign::{ForeignContent, START};
use super::header::{self, decoder_memory};
use crate::file::open_file;
use crate::noting::Reason;
use crate::untrusted::Untrusted;

/// Reasons for not unpacking a file.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The file cannot be opened.
    #[error("{}: cannot open: {}", Untrusted(.path), Reason(.source))]
    Open { path: PathBuf, source: io::Error },
    /// The file is recognizably something else.
    #[error("{}: {}", Untrusted(.path), .content.instead_of("a 7z archive"))]
    Foreign { path: PathBuf, content: ForeignContent },
    /// The file is not an archive, or is damaged.
    #[error("{}: cannot unpack: {reason}", Untrusted(.path))]
    Unreadable { path: PathBuf, reason: String },
    /// A member's name leads out of the archive, or occurs twice.
    #[error("{}: member \"{}\" {reason}; the archive is refused", Untrusted(.path), Untrusted(.member))]
    Name { path: PathBuf, member: String, reason: &'static str },
    /// A member is, or claims to be, larger than the limit.
    #[error("{}: member {} has {size} bytes, more than the limit of {limit}", Untrusted(.path), Untrusted(.member))]
    TooLarge {
        path: PathBuf,
        member: String,
        /// A lower bound of its size, bytes.
        size: u64,
        limit: u64,
    },
    /// Unpacking would produce more bytes than the limit allows.
    #[error("{}: unpacks to {size} bytes, more than the limit of {limit}", Untrusted(.path))]
    TooMuch { path: PathBuf, size: u64, limit: u64 },
    /// The content claims a higher compression ratio than any trace or extract can have.
    #[error("{}: compression ratio too high, refused: {packed} bytes claim to unpack to {content}", Untrusted(.path))]
    Ratio { path: PathBuf, packed: u64, content: u64 },
    /// A member cannot be unpacked: it is cut off, damaged, or not what the archive says.
    #[error("{}: member {} cannot be unpacked: {reason}", Untrusted(.path), Untrusted(.member))]
    Member { path: PathBuf, member: String, reason: String },
}

impl ContainerError {
    /// Whether the file could be read with a higher limit.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooMuch { .. } | Self::Ratio { .. })
    }

    /// Whether the file is damaged, or never was an archive as an archiver writes it.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Name { .. } | Self::Member { .. })
    }
}

/// Content below this size may have any ratio.
const SMALL_CONTENT: u64 = 64 << 20;

/// Limits on an archive, so that a hostile one cannot exhaust memory or disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerLimits {
    /// Maximum unpacked size of one member, bytes.
    pub member_bytes: u64,
    /// Maximum bytes to unpack in all, unwanted members included.
    pub total_bytes: u64,
    /// Maximum ratio of the content to the file, for large content. Traces have 10 to 30, JSON of handles has 20 to
    /// 100; zeros have thousands.
    pub ratio: u64,
    /// Maximum memory a decoder may request, bytes.
    pub decoder_bytes: u64,
}

impl ContainerLimits {
    /// Returns the limits for members of this size in an archive with little else.
    pub const fn for_members_of(member_bytes: u64) -> Self {
        let total_bytes = member_bytes.saturating_mul(4);
        Self { member_bytes, total_bytes, ratio: 1000, decoder_bytes: 2 << 30 }
    }

    /// Returns the limits for members of another size, from a trusted source.
    #[must_use]
    pub const fn trusted_with(self, member_bytes: u64) -> Self {
        let Self { decoder_bytes, .. } = self;
        let ratio = u64::MAX;
        Self { ratio, decoder_bytes, ..Self::for_members_of(member_bytes) }
    }

    /// Refuses a member that is larger than the limit.
    ///
    /// # Errors
    /// If the member is larger.
    pub fn check_size(&self, path: &Path, member: &str, size: u64) -> Result<(), ContainerError> {
        let limit = self.member_bytes;
        if size <= limit {
            return Ok(());
        }
        let (path, member) = (path.to_path_buf(), member.to_owned());
        Err(ContainerError::TooLarge { path, member, size, limit })
    }

    /// Returns the maximum content of a file of this size.
    pub fn most_content(&self, packed: u64) -> u64 {
        packed.saturating_mul(self.ratio).max(SMALL_CONTENT)
    }

    /// Refuses content that is too large, or compressed too well for the size of its file.
    ///
    /// # Errors
    /// If the content is either.
    pub fn check_content(
        &self,
        path: &Path,
        packed: u64,
        content: u64,
    ) -> Result<(), ContainerError> {
        let path = || path.to_path_buf();
        if content > self.total_bytes {
            let limit = self.total_bytes;
            return Err(ContainerError::TooMuch { path: path(), size: content, limit });
        }
        if content > self.most_content(packed) {
            return Err(ContainerError::Ratio { path: path(), packed, content });
        }
        Ok(())
    }

    /// Refuses blocks whose decoders ask for too much memory.
    ///
    /// # Errors
    /// If a decoder does.
    pub fn check_decoders<'a>(
        &self,
        path: &Path,
        blocks: impl IntoIterator<Item = &'a Block>,
    ) -> Result<(), ContainerError> {
        let needed = blocks
            .into_iter()
            .flat_map(|block| &block.coders)
            .map(|coder| decoder_memory(coder.encoder_method_id(), coder.properties()))
            .max()
            .unwrap_or_default();
        if needed <= self.decoder_bytes {
            return Ok(());
        }
        let reason = format!("unpacking it needs {needed} bytes of memory");
        Err(ContainerError::Unreadable { path: path.to_path_buf(), reason })
    }
}

/// Describes an error of the 7z reader.
pub fn unpack_reason(error: &sevenz_rust::Error) -> String {
    use sevenz_rust::Error as E;
    match error {
        E::Io(error, _) | E::MaybeBadPassword(error) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            inner.map_or_else(|| Reason(error).to_string(), unpack_reason)
        }
        E::Other(reason) | E::Unsupported(reason) => reason.clone().into_owned(),
        E::ChecksumVerificationFailed => "its checksum is wrong".to_owned(),
        E::NextHeaderCrcMismatch => "the checksum of its table of contents is wrong".to_owned(),
        E::PasswordRequired => "it is encrypted".to_owned(),
        E::UnsupportedCompressionMethod(method) => {
            format!("it is packed with {method}, which this program does not support")
        }
        error => error.to_string(),
    }
}

/// A 7z file and its table of contents, with no member unpacked yet.
#[derive(Debug)]
pub struct Container {
    /// The opened archive.
    pub archive: Archive,
    pub source: BufReader<File>,
    /// Size of the file, bytes.
    pub packed: u64,
}

impl Container {
    /// Opens a 7z file, unless its table of contents costs too much to read or a name in it leads out of the archive.
    ///
    /// # Errors
    /// If the file cannot be opened, is not an archive, or is refused.
    pub fn open(path: &Path, limits: &ContainerLimits) -> Result<Self, ContainerError> {
        let open = |source| ContainerError::Open { path: path.to_path_buf(), source };
        let unreadable =
            |reason: String| ContainerError::Unreadable { path: path.to_path_buf(), reason };
        let file = open_file(path).map_err(open)?;
        let packed = file.metadata().map_err(open)?.len();
        let mut start = Vec::new();
        (&file).take(START).read_to_end(&mut start).map_err(open)?;
        if let Some(content) = ForeignContent::from_start(&start) {
            return Err(ContainerError::Foreign { path: path.to_path_buf(), content });
        }
        let mut source = BufReader::new(file);
        source.rewind().map_err(open)?;
        header::check(&mut source, limits.decoder_bytes)
            .map_err(|problem| unreadable(problem.to_string()))?;
        let archive = Archive::read(&mut source, &Password::empty())
            .map_err(|error| unreadable(unpack_reason(&error)))?;
        if let Some((member, reason)) =
            refused_name(archive.files.iter().map(|entry| entry.name.as_str()))
        {
            let (path, member) = (path.to_path_buf(), member.to_owned());
            return Err(ContainerError::Name { path, member, reason });
        }
        Ok(Self { archive, source, packed })
    }
}

/// Returns the first member whose name leads out of the archive or occurs twice, and what is wrong with it.
pub fn refused_name<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, &'static str)> {
    let mut seen = HashSet::new();
    names.into_iter().find_map(|name| {
        let reason = suspicion(name).or((!seen.insert(name)).then_some("occurs twice"))?;
        Some((name, reason))
    })
}

/// Returns what is wrong with the name of a member if it leads out of the archive.
fn suspicion(name: &str) -> Option<&'static str> {
    let mut parts = name.split(['/', '\\']);
    if name.starts_with(['/', '\\']) || name.as_bytes().get(1) == Some(&b':') {
        return Some("has an absolute name");
    }
    if parts.any(|part| part == "..") {
        return Some("leads out of the archive with \"..\"");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_content_that_is_packed_beyond_reason_is_a_bomb() {
        let limits = ContainerLimits::for_members_of(1 << 40);
        let is_bomb =
            |packed, content| limits.check_content(Path::new("a"), packed, content).is_err();
        assert!(!is_bomb(10, 60 << 20));
        assert!(!is_bomb(1 << 20, 500 << 20));
        assert!(is_bomb(1 << 10, 500 << 20));
        assert!(is_bomb(0, 1 << 30));
        let trusted = limits.trusted_with(1 << 40);
        assert!(trusted.check_content(Path::new("a"), 1 << 10, 500 << 20).is_ok());
    }

    #[test]
    fn names_that_lead_elsewhere_are_noticed() {
        for bad in ["/etc/x.json", "\\x.json", "C:\\x.json", "../x.json", "a/../../x", "a\\..\\x"] {
            assert!(suspicion(bad).is_some(), "{bad}");
        }
        for good in ["x.json", "a/x.json", "..x.json", "a..b"] {
            assert!(suspicion(good).is_none(), "{good}");
        }
    }
}
