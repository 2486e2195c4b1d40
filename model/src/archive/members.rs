//! The members of an archive. All tables that this program writes are stored uncompressed. Such a member is read once
//! for its checksum, and then only the ranges that its columns need. So it is never in memory as a whole.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use sevenz_rust::{
    Archive, ArchiveEntry, ArchiveReader, BlockDecoder, EncoderMethod, Password,
    SIGNATURE_HEADER_SIZE,
};

use crate::guard::lock;

/// Bytes read at a time for a checksum.
const PART_BYTES: usize = 1 << 18;

/// An opened archive.
pub struct ArchiveMembers {
    archive: Archive,
    source: Mutex<BufReader<File>>,
}

/// Location of the content of a member.
#[derive(Debug, Clone)]
pub enum MemberBytes {
    /// In the file of the archive.
    Stored(Range<u64>),
    /// In memory, because another program compressed it.
    Unpacked(Arc<Vec<u8>>),
}

impl MemberBytes {
    /// Size in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Stored(range) => range.end - range.start,
            Self::Unpacked(bytes) => bytes.len() as u64,
        }
    }
}

impl ArchiveMembers {
    pub fn new(archive: Archive, source: BufReader<File>) -> Self {
        Self { archive, source: Mutex::new(source) }
    }

    /// The table of contents.
    pub fn entries(&self) -> &[ArchiveEntry] {
        &self.archive.files
    }

    /// Calls `each` with every member and its content, as long as it returns true.
    pub fn for_each(
        &self,
        each: impl FnMut(&ArchiveEntry, &mut dyn Read) -> Result<bool, sevenz_rust::Error>,
    ) -> Result<(), sevenz_rust::Error> {
        let mut source = lock(&self.source);
        let (archive, password) = (self.archive.clone(), Password::empty());
        let mut reader = ArchiveReader::from_archive(archive, &mut *source, password);
        // Members are usually stored; each further thread would take memory of its own.
        reader.set_thread_count(1);
        reader.for_each_entries(each)
    }

    /// Returns the content of a member after checking its checksum.
    pub fn content(&self, entry: &ArchiveEntry) -> Result<MemberBytes, sevenz_rust::Error> {
        let stored = self.stored(entry);
        let mut unpacked = Vec::new();
        let mut size = 0;
        let mut part = vec![0; PART_BYTES.min(entry.size as usize)];
        self.read(entry, &mut |content| {
            loop {
                match content.read(&mut part) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                    Ok(0) => return Ok(()),
                    Ok(count) => {
                        size += count as u64;
                        if stored.is_none() {
                            unpacked.extend_from_slice(&part[..count]);
                        }
                    }
                }
            }
        })?;
        // The checksum is compared at the end of a member, which a truncated member never reaches.
        if size != entry.size {
            let reason = format!("it has {size} bytes instead of {}", entry.size);
            return Err(sevenz_rust::Error::Other(reason.into()));
        }
        Ok(stored.map_or_else(|| MemberBytes::Unpacked(Arc::new(unpacked)), MemberBytes::Stored))
    }

    /// Returns a range of a member's content; `None` if the content is shorter.
    pub fn bytes(&self, content: &MemberBytes, range: Range<u64>) -> io::Result<Option<Vec<u8>>> {
        if range.start > range.end || range.end > content.len() {
            return Ok(None);
        }
        match content {
            MemberBytes::Stored(stored) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                let mut source = lock(&self.source);
                source.seek(SeekFrom::Start(stored.start + range.start))?;
                source.read_exact(&mut bytes)?;
                Ok(Some(bytes))
            }
            MemberBytes::Unpacked(bytes) => {
                Ok(bytes.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec))
            }
        }
    }

    /// Reads a member from its block.
    fn read(
        &self,
        entry: &ArchiveEntry,
        read: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), sevenz_rust::Error> {
        let Some(block) = self.block(entry) else { return Ok(()) };
        let mut source = lock(&self.source);
        let password = Password::empty();
        BlockDecoder::new(1, block, &self.archive, &password, &mut *source)
            .for_each_entries(&mut |member, content| {
                let is_read = member.name == entry.name;
                if is_read {
                    read(content)?;
                }
                Ok(!is_read)
            })
            .map(drop)
    }

    /// Returns the block of a member that has content.
    fn block(&self, entry: &ArchiveEntry) -> Option<usize> {
        let index = self.entries().iter().position(|member| member.name == entry.name)?;
        self.archive.stream_map.file_block_index.get(index).copied()?
    }

    /// Returns where in the file the content of a member is stored, if it is stored uncompressed.
    fn stored(&self, entry: &ArchiveEntry) -> Option<Range<u64>> {
        let (block, streams) = (self.block(entry)?, &self.archive.stream_map);
        let [coder] = self.archive.blocks.get(block)?.coders.as_slice() else { return None };
        let stream = *streams.block_first_pack_stream_index().get(block)?;
        let size = *self.archive.pack_sizes().get(stream)?;
        if coder.encoder_method_id() != EncoderMethod::ID_COPY || size != entry.size {
            return None;
        }
        let offset = *streams.pack_stream_offsets().get(stream)?;
        let start =
            SIGNATURE_HEADER_SIZE.checked_add(self.archive.pack_pos())?.checked_add(offset)?;
        Some(start..start.checked_add(size)?)
    }
}
