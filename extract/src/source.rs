//! Identity of an extract's source file, which tells it from other files with the same name.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use handlescope_model::tables::TraceInfo;
use handlescope_model::{SCHEMA_VERSION, open_file};
use sha2::{Digest, Sha256};

use crate::filetime::of_unix_ns;

/// Properties that tell a file from another one with its name. Two files are the same if all of these are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIdentity {
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, ns since 1970; `None` if the file system does not say.
    pub modified_ns: Option<i64>,
    /// 128 bits of the SHA-256 of its size and parts of its content, in hexadecimal.
    pub content: String,
}

/// Number of samples of a large file that are hashed.
const SAMPLES: u64 = 32;

/// Size of a sample in bytes.
const SAMPLE_BYTES: u64 = 4 << 10;

/// Plausible sizes of the first buffer, which is usually as large as the others: WMI_BUFFER_HEADER starts with the size
/// of the buffer in the file.
const BUFFER_SIZES: std::ops::RangeInclusive<u64> = 512..=64 << 20;

impl SourceIdentity {
    /// Returns the current identity of a file.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn new(path: &Path) -> io::Result<Self> {
        let mut file = open_file(path)?;
        let metadata = file.metadata()?;
        let size = metadata.len();
        let modified_ns = metadata.modified().ok().and_then(ns_since_1970);
        Ok(Self { size, modified_ns, content: content(&mut file, size)? })
    }

    /// Returns the part of the trace table's row that says where an extract comes from: the file at `path`, which may
    /// be an archive that contains the trace under this name.
    pub fn trace_info(&self, path: &Path, name: &str) -> TraceInfo {
        TraceInfo {
            schema_version: SCHEMA_VERSION,
            extractor: format!("handlescope {}", env!("CARGO_PKG_VERSION")),
            source_path: path.to_string_lossy().into_owned(),
            source_name: name.to_owned(),
            source_size: self.size,
            source_modified_filetime: self.modified_ns.and_then(of_unix_ns),
            source_modified_ns: self.modified_ns,
            source_content: Some(self.content.clone()),
            ..TraceInfo::default()
        }
    }
}

/// Returns nanoseconds since 1970, negative before that; `None` after the year 2262.
pub fn ns_since_1970(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|ns| -ns),
    }
}

/// Hashes a file of this size. A small file is hashed whole. Of a large one, the end and samples at buffer starts are
/// hashed: buffer headers have times and numbers that no other trace has, while the end of a buffer may be unused.
fn content(file: &mut (impl Read + Seek), size: u64) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(size.to_le_bytes());
    let mut buffer = Vec::new();
    let mut read = |offset: u64, bytes: u64, buffer: &mut Vec<u8>| -> io::Result<()> {
        buffer.clear();
        file.seek(SeekFrom::Start(offset))?;
        file.take(bytes).read_to_end(buffer).map(drop)
    };
    if size <= SAMPLES * SAMPLE_BYTES {
        read(0, size, &mut buffer)?;
        hasher.update(&buffer);
    } else {
        read(0, SAMPLE_BYTES, &mut buffer)?;
        let first = buffer.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes).into());
        let unit = if BUFFER_SIZES.contains(&first) { first } else { SAMPLE_BYTES };
        let last = (size - 1) / unit;
        for sample in 0..SAMPLES {
            let at = u128::from(last) * u128::from(sample) / u128::from(SAMPLES - 1);
            read(at as u64 * unit, SAMPLE_BYTES, &mut buffer)?;
            hasher.update(&buffer);
        }
        // .zip and .7z have their table of contents at the end.
        read(size - SAMPLE_BYTES, SAMPLE_BYTES, &mut buffer)?;
        hasher.update(&buffer);
    }
    Ok(hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Cursor, Write};
    use std::time::Duration;

    use super::*;

    fn hash(bytes: &[u8]) -> String {
        content(&mut Cursor::new(bytes), bytes.len() as u64).unwrap()
    }

    /// File that counts the bytes read from it.
    struct CountingFile(File, u64);

    impl Read for CountingFile {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(target)?;
            self.1 += count as u64;
            Ok(count)
        }
    }

    impl Seek for CountingFile {
        fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
            self.0.seek(position)
        }
    }

    #[test]
    fn little_is_read_of_a_large_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&(1u32 << 20).to_le_bytes()).unwrap();
        file.set_len(10 << 30).unwrap();
        let mut counted = CountingFile(file, 0);
        content(&mut counted, 10 << 30).unwrap();
        assert!(counted.1 <= (SAMPLES + 2) * SAMPLE_BYTES, "{} bytes", counted.1);
    }

    #[test]
    fn any_byte_of_a_small_file_counts_and_its_size() {
        let bytes = vec![7; 100_000];
        for position in [0, 1, 50_000, 99_999] {
            let mut changed = bytes.clone();
            changed[position] = 8;
            assert_ne!(hash(&bytes), hash(&changed), "{position}");
        }
        assert_ne!(hash(&bytes), hash(&bytes[..99_999]));
        assert_eq!(hash(&bytes), hash(&bytes.clone()));
    }

    #[test]
    fn of_a_large_trace_the_headers_of_first_and_last_buffer_count() {
        let mut trace = vec![0; 40 << 16];
        trace[..4].copy_from_slice(&(1u32 << 16).to_le_bytes());
        for header in [0, 39 << 16] {
            let mut changed = trace.clone();
            changed[header + 24] ^= 1;
            assert_ne!(hash(&trace), hash(&changed), "{header}");
        }
    }

    #[test]
    fn of_a_large_archive_start_and_end_count() {
        let mut archive = vec![1; 1_000_001];
        archive[..4].copy_from_slice(b"PK\x03\x04");
        for position in [4, 1_000_000, 999_950] {
            let mut changed = archive.clone();
            changed[position] ^= 1;
            assert_ne!(hash(&archive), hash(&changed), "{position}");
        }
    }

    #[test]
    fn times_are_compared_with_all_their_digits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.etl");
        fs::write(&path, "a trace").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let at = |ns| {
            file.set_modified(UNIX_EPOCH + Duration::new(1_700_000_000, ns)).unwrap();
            SourceIdentity::new(&path).unwrap()
        };
        let (early, late) = (at(100), at(200));
        assert_eq!(early.modified_ns, Some(1_700_000_000_000_000_100));
        assert_ne!(early, late);
        assert_eq!(early, at(100));
        assert_eq!(ns_since_1970(UNIX_EPOCH - Duration::from_nanos(5)), Some(-5));
    }
}
