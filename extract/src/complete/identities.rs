//! Which files the images of a trace are, as their files say.

use std::collections::HashMap;
use std::path::PathBuf;

use super::image_file::ImageFile;
use super::records::{image_id, no_debug_data, rsds};
use crate::etl::{Event, EventId, frame};
use crate::kernel::{IDENTITY_GUID, Image};

/// Finds the file of an image by its path in the trace.
pub type Locate<'a> = &'a mut dyn FnMut(&str) -> Option<PathBuf>;

/// Files that are looked for; systems have a few thousand.
const MOST_FILES: usize = 1 << 16;

/// Makes the records of images.
pub(super) struct Identities<'a> {
    locate: Locate<'a>,
    /// What files say, by path in the trace (UTF-16).
    files: HashMap<Box<[u8]>, Asked>,
    /// The records of the last event, used again for each.
    records: Vec<Vec<u8>>,
}

/// A file, and whether it was that of an image.
struct Asked {
    file: Option<ImageFile>,
    is_right: bool,
}

impl<'a> Identities<'a> {
    pub(super) fn new(locate: Locate<'a>) -> Self {
        Self { locate, files: HashMap::new(), records: Vec::new() }
    }

    /// The records that belong after an event, in front of the bytes `behind`; none where the trace has them.
    pub(super) fn of(&mut self, event: &Event<'_>, behind: &[u8]) -> &[Vec<u8>] {
        self.records.clear();
        let Some(image) = Image::decode(event).filter(|_| !is_identity(behind, event.time)) else {
            return &[];
        };
        if let Some(file) = self.file(&image) {
            let id = image_id(event, &image, file);
            let pdb = match &file.pdb {
                Some(pdb) => rsds(event, &image, pdb),
                None => no_debug_data(event, &image),
            };
            self.records = vec![id, pdb];
        }
        &self.records
    }

    /// How many files of images were identified, and how many not.
    pub(super) fn counts(&self) -> (u64, u64) {
        let identified = self.files.values().filter(|asked| asked.is_right).count() as u64;
        (identified, self.files.len() as u64 - identified)
    }

    /// What the file of an image says, if it is the one that was mapped.
    fn file(&mut self, image: &Image<'_>) -> Option<&ImageFile> {
        if !self.files.contains_key(image.path) {
            if self.files.len() >= MOST_FILES {
                return None;
            }
            let file = (self.locate)(&image.path()).and_then(|path| ImageFile::open(&path));
            self.files.insert(image.path.into(), Asked { file, is_right: false });
        }
        let asked = self.files.get_mut(image.path)?;
        let file = asked.file.as_ref().filter(|file| is_of(file, image))?;
        asked.is_right = true;
        Some(file)
    }
}

/// Whether a file is the one that an image was mapped from: programs are replaced while they run.
fn is_of(file: &ImageFile, image: &Image<'_>) -> bool {
    let pages = |size: u64| size.div_ceil(0x1000);
    match image {
        Image { timestamp: 1.., .. } => image.timestamp == file.timestamp,
        // Rundowns have no time stamp.
        Image { checksum: 1.., .. } => image.checksum == file.checksum,
        Image { size, .. } => pages(*size) == pages(file.size.into()),
    }
}

/// Whether a record of an image of this time begins with the bytes.
fn is_identity(bytes: &[u8], time: i64) -> bool {
    frame(bytes, time).is_ok_and(|framed| {
        let is_record = matches!(framed.event.id, EventId::Classic { guid: IDENTITY_GUID, .. });
        is_record && framed.event.time == time
    })
}
