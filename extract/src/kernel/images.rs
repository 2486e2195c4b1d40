//! Images: where files are mapped, and which files they are.
//!
//! Image events are of MOF class Image_Load. The merge of a trace inserts identity records (MOF classes ImageID and
//! DbgID_RSDS of KernelTraceControl) after each image event, with the same timestamp. Some tools copy the records of an
//! earlier trace into a session; these come before all image events.

use std::collections::HashMap;

use handlescope_model::Table;
use uuid::uuid;

use super::ImagePath;
use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::intern::ByteInterner;
use crate::payload::{Field, Payload, utf16_bytes, utf16_text};
use crate::raw::{EventFamily, LifeEvent, PassState};

pub const LOAD: EventId = EventId::Hook(0x030a);
const UNLOAD: EventId = EventId::Hook(0x1402);
pub const RUNDOWN_START: EventId = EventId::Hook(0x1403);
pub const RUNDOWN_END: EventId = EventId::Hook(0x1404);

/// Image event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagePayload<'a> {
    pub action: LifeEvent,
    pub base: u64,
    /// Size of the mapping, bytes.
    pub size: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// PE checksum.
    pub checksum: u32,
    /// PE timestamp; 0 in most rundown records.
    pub timestamp: u32,
    /// Path, UTF-16 without terminator.
    pub path: &'a [u8],
}

impl<'a> ImagePayload<'a> {
    /// Decodes versions 2 and 3 of the event. Version 1 lacks the fields from checksum to reserved, version 0 also the
    /// process id (MOF classes Image_V0_Load, Image_V1_Load).
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let action = match event.id {
            LOAD => LifeEvent::Begin,
            UNLOAD => LifeEvent::End,
            RUNDOWN_START | RUNDOWN_END => LifeEvent::Rundown,
            _ => return None,
        };
        let mut p = Payload::from_event(event);
        let (base, size) = (p.pointer()?, p.pointer()?);
        let pid = if event.version >= 1 { p.u32()? } else { event.pid? };
        let (mut checksum, mut timestamp) = (0, 0);
        if event.version >= 2 {
            checksum = p.u32()?;
            timestamp = p.u32()?;
            p.u32()?;
            p.pointer()?;
            p.skip(16)?;
        }
        let path = utf16_bytes(p.rest());
        Some(Self { action, base, size, pid, checksum, timestamp, path })
    }

    /// Returns the path as the kernel writes it.
    pub fn path(&self) -> String {
        utf16_text(self.path)
    }
}

/// Image identity records, inserted by the merge of a trace.
pub const IDENTITY_GUID: Guid = Guid::from_uuid(uuid!("b3e675d7-2554-4f18-830b-2762732560de"));

pub const IMAGE_ID: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 0 };
pub const RSDS: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 36 };
const FILE_VERSION: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 64 };

/// Opcode 0: the file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageId {
    pub base: u64,
    /// Size of the image according to the file, bytes.
    pub size: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// PE timestamp.
    pub timestamp: u32,
    /// Name in the version resource, often but not always a file name.
    pub original_name: String,
}

impl ImageId {
    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::from_event(event);
        Some(Self {
            base: p.pointer()?,
            size: p.pointer()?,
            pid: p.u32()?,
            timestamp: p.u32()?,
            original_name: p.utf16(),
        })
    }
}

/// Opcode 36: the PDB of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rsds {
    /// First address of the image.
    pub base: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    pub guid: Guid,
    pub age: u32,
    /// Name of the PDB, sometimes a full path.
    pub pdb_name: String,
}

impl Rsds {
    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::from_event(event);
        Some(Self {
            base: p.pointer()?,
            pid: p.u32()?,
            guid: p.guid()?,
            age: p.u32()?,
            pdb_name: p.ansi().into_owned(),
        })
    }
}

/// Opcode 64: the version resource of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// Size of the image, bytes.
    pub size: u32,
    /// PE timestamp.
    pub timestamp: u32,
    /// File description.
    pub description: String,
    pub file_version: String,
    /// Product the file belongs to.
    pub product_name: String,
    /// Company that made the file.
    pub company: String,
}

impl FileVersion {
    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::from_event(event);
        let (size, timestamp) = (p.u32()?, p.u32()?);
        let (_original_name, description, file_version) = (p.utf16(), p.utf16(), p.utf16());
        let (_binary_version, _language) = (p.utf16(), p.utf16());
        let (product_name, company) = (p.utf16(), p.utf16());
        Some(Self { size, timestamp, description, file_version, product_name, company })
    }
}

/// Mapping of an image; times are raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRow {
    /// Process id; 0 for kernel images.
    pub pid: u32,
    pub base: u64,
    /// Size, bytes.
    pub size: u64,
    /// Row of [`Images::paths`].
    pub path: u32,
    /// PE checksum.
    pub checksum: u32,
    /// PE timestamp, 0 if unknown.
    pub timestamp: u32,
    /// Load time, if it was seen.
    pub load: Option<i64>,
    /// Unload time, if it was seen.
    pub unload: Option<i64>,
    /// What identity records say.
    pub file: ImageFile,
}

/// Fields from the identity records of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFile {
    /// PDB GUID, age and name.
    pub pdb: Option<(Guid, u32, String)>,
    /// Name in the version resource.
    pub original_name: Option<String>,
    /// Size and timestamp from the file, the key to its version.
    pub version_key: Option<(u32, u32)>,
}

/// Record that says which file an image is.
#[derive(Debug)]
enum Identity {
    Id(ImageId),
    Rsds(Rsds),
}

impl Identity {
    /// Whether an image lacks such a record and may be the one it describes.
    fn is_missing_in(&self, image: &ImageRow) -> bool {
        match self {
            Self::Id(id) => {
                let agrees = image.timestamp == 0 || image.timestamp == id.timestamp;
                image.file.version_key.is_none() && agrees
            }
            Self::Rsds(_) => image.file.pdb.is_none(),
        }
    }

    /// Whether the image has an equal record.
    fn is_known_to(&self, image: &ImageRow) -> bool {
        match self {
            Self::Id(id) => image.file.version_key == Some((id.size as u32, id.timestamp)),
            Self::Rsds(rsds) => {
                let known = image.file.pdb.as_ref();
                known.is_some_and(|(guid, age, _)| (*guid, *age) == (rsds.guid, rsds.age))
            }
        }
    }
}

/// Identity records of one file before its image was seen.
#[derive(Debug)]
struct FileIdentity {
    id: Option<ImageId>,
    rsds: Option<Rsds>,
}

impl FileIdentity {
    /// Whether a mapping first seen after these records may be of their file. If the image was loaded after them, its
    /// timestamp must be the same.
    fn is_of(&self, image: &ImageRow) -> bool {
        let timestamp = self.id.as_ref().map_or(0, |id| id.timestamp);
        match (timestamp, image.timestamp) {
            (1.., 1..) => timestamp == image.timestamp,
            _ => image.load.is_none(),
        }
    }

    /// Adds a record, or returns it if it begins another file.
    fn push(&mut self, record: Identity) -> Option<Identity> {
        match record {
            Identity::Rsds(rsds) if self.rsds.is_none() => self.rsds = Some(rsds),
            record => return Some(record),
        }
        None
    }

    fn into_records(self) -> impl Iterator<Item = Identity> {
        let id = self.id.map(Identity::Id);
        id.into_iter().chain(self.rsds.map(Identity::Rsds))
    }
}

impl From<Identity> for FileIdentity {
    fn from(record: Identity) -> Self {
        match record {
            Identity::Id(id) => Self { id: Some(id), rsds: None },
            Identity::Rsds(rsds) => Self { id: None, rsds: Some(rsds) },
        }
    }
}

/// Maximum number of files per address that wait for an image: a process maps few at one address.
const MAX_FILES_WAITING: usize = 8;

/// Maximum number of images per address searched for the image of a late record; a process maps few at one address.
const MAX_IMAGES_SEARCHED: usize = 256;

/// Mappings in the order they were first seen, and the versions of files.
#[derive(Default)]
pub struct Images {
    pub rows: Vec<ImageRow>,
    /// Distinct paths.
    pub paths: Vec<String>,
    /// For rows with a first event that lacks the volume, the path with the volume.
    whole_paths: HashMap<usize, u32>,
    /// Version resources by size and timestamp.
    pub versions: HashMap<(u32, u32), FileVersion>,
    path_ids: ByteInterner,
    live: HashMap<(u32, u64), usize>,
    /// All mappings at an address, in the order they were first seen.
    rows_by_key: HashMap<(u32, u64), Vec<usize>>,
    /// Last image event at an address. Identity records of the same time belong to it.
    recent: HashMap<(u32, u64), (i64, usize)>,
    /// Identity records waiting for an image event of the same time. Each address has a single such time.
    early: HashMap<(u32, u64), (i64, Vec<Identity>)>,
    /// Files at an address without an image so far.
    unseen: HashMap<(u32, u64), Vec<FileIdentity>>,
    orphans: u64,
}

impl EventFamily for Images {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (LOAD, "ImageLoad"),
        (UNLOAD, "ImageUnload"),
        (RUNDOWN_START, "ImageDCStart"),
        (RUNDOWN_END, "ImageDCEnd"),
        (IMAGE_ID, "ImageID"),
        (RSDS, "DbgID_RSDS"),
        (FILE_VERSION, "FileVersion"),
    ];
    const TABLES: &'static [Table] = &[Table::Modules, Table::ModuleLoads];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        use Field::{Ansi, Bytes, Pointers, Utf16};
        match (event.id, event.version) {
            (IMAGE_ID, _) => &[Pointers(2), Bytes(8), Utf16],
            (RSDS, _) => &[Pointers(1), Bytes(24), Ansi],
            (FILE_VERSION, _) => &[Bytes(8), Utf16, Utf16, Utf16, Utf16, Utf16, Utf16, Utf16],
            (_, 0) => &[Pointers(2), Utf16],
            (_, 1) => &[Pointers(2), Bytes(4), Utf16],
            _ => &[Pointers(2), Bytes(16), Pointers(1), Bytes(16), Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut PassState) -> Option<()> {
        match event.id {
            IMAGE_ID => self.image_id(ImageId::decode(event)?, event.time),
            RSDS => self.rsds(Rsds::decode(event)?, event.time),
            FILE_VERSION => {
                let version = FileVersion::decode(event)?;
                self.versions.insert((version.size, version.timestamp), version);
            }
            _ => self.event(&ImagePayload::decode(event)?, event.time),
        }
        Some(())
    }

    /// Gives identity records without their own image event to other images at their address, and counts records
    /// without any image.
    fn finish(&mut self, shared: &mut PassState) {
        let keys: Vec<_> = self.early.keys().copied().collect();
        for key in keys {
            self.settle(key);
        }
        for (key, files) in std::mem::take(&mut self.unseen) {
            let records = files.into_iter().flat_map(FileIdentity::into_records);
            let is_orphan = |record: &Identity| {
                self.first_image(key, |image| record.is_known_to(image)).is_none()
            };
            self.orphans += records.filter(is_orphan).count() as u64;
        }
        shared.diagnostics.add(WarningKind::IdentityWithoutImage, self.orphans, None);
    }
}

impl Images {
    /// Handles one image event.
    ///
    /// A load opens a mapping and an unload closes it. An image first seen in a rundown or unload was there before the
    /// trace.
    pub fn event(&mut self, image: &ImagePayload<'_>, time: i64) {
        let key = (image.pid, image.base);
        let same_time = self.take_early(key, time);
        let row = match (image.action, self.live.get(&key)) {
            (LifeEvent::Begin, _) => self.add(image, Some(time)),
            (_, Some(row)) => *row,
            (_, None) => self.add(image, None),
        };
        self.complete_path(row, image.path);
        if image.action == LifeEvent::End {
            self.live.remove(&key);
            if let Some(row) = self.rows.get_mut(row) {
                row.unload = Some(time);
            }
        } else {
            self.live.insert(key, row);
        }
        if let Some(known) = self.rows.get_mut(row)
            && known.timestamp == 0
        {
            known.timestamp = image.timestamp;
        }
        self.recent.insert(key, (time, row));
        for record in same_time {
            self.identify(row, record);
        }
    }

    /// Handles a record that says which file an image is.
    fn image_id(&mut self, id: ImageId, time: i64) {
        self.identity((id.pid, id.base), time, Identity::Id(id));
    }

    /// Handles a record that says which PDB an image has.
    fn rsds(&mut self, rsds: Rsds, time: i64) {
        self.identity((rsds.pid, rsds.base), time, Identity::Rsds(rsds));
    }

    /// Gives a record to the image event of its time, or lets it wait for that event. Merged traces have both at the
    /// same time, but not always in this order.
    fn identity(&mut self, key: (u32, u64), time: i64, record: Identity) {
        if let Some((at, row)) = self.recent.get(&key).copied()
            && at == time
        {
            self.identify(row, record);
            return;
        }
        // An image event has only a handful of records.
        if self.early.get(&key).is_some_and(|(at, records)| *at != time || records.len() >= 8) {
            self.settle(key);
        }
        self.early.entry(key).or_insert((time, Vec::new())).1.push(record);
    }

    /// Takes the records waiting at an address if they have this time, and settles older ones.
    fn take_early(&mut self, key: (u32, u64), time: i64) -> Vec<Identity> {
        if self.early.get(&key).is_some_and(|(early, _)| *early != time) {
            self.settle(key);
        }
        self.early.remove(&key).map(|(_, records)| records).unwrap_or_default()
    }

    /// Gives the waiting records at an address to images seen there so far, and keeps the others for a later image.
    fn settle(&mut self, key: (u32, u64)) {
        let Some((_, records)) = self.early.remove(&key) else { return };
        // Whether the file of the last ImageID has an image, and which one.
        let mut identified = None;
        for record in records {
            let after_id = identified.filter(|_| matches!(record, Identity::Rsds(_)));
            let row = after_id.unwrap_or_else(|| self.image_of(key, &record));
            if matches!(record, Identity::Id(_)) {
                identified = Some(row);
            }
            match row {
                Some(row) => self.identify(row, record),
                None => self.keep(key, record),
            }
        }
    }

    /// Keeps a record for a later image at its address.
    fn keep(&mut self, key: (u32, u64), record: Identity) {
        let files = self.unseen.entry(key).or_default();
        let rest = match files.last_mut() {
            Some(file) => file.push(record),
            None => Some(record),
        };
        let Some(record) = rest else { return };
        if files.len() == MAX_FILES_WAITING {
            self.orphans += files.remove(0).into_records().count() as u64;
        }
        files.push(record.into());
    }

    /// Gives a new mapping the records that came before it. If they describe several files, the last one counts.
    fn identify_new(&mut self, key: (u32, u64), row: usize) {
        let (Some(files), Some(image)) = (self.unseen.get_mut(&key), self.rows.get(row)) else {
            return;
        };
        let Some(at) = files.iter().rposition(|file| file.is_of(image)) else { return };
        for record in files.remove(at).into_records() {
            self.identify(row, record);
        }
    }

    /// Returns the image for a record without image event. Some writers log the records later, in the order of the
    /// images at their address.
    fn image_of(&self, key: (u32, u64), record: &Identity) -> Option<usize> {
        self.first_image(key, |image| record.is_missing_in(image))
            .or_else(|| self.first_image(key, |image| record.is_known_to(image)))
    }

    /// Returns the first image at an address that passes a test.
    fn first_image(&self, key: (u32, u64), test: impl Fn(&ImageRow) -> bool) -> Option<usize> {
        let mut rows = self.rows_by_key.get(&key)?.iter().take(MAX_IMAGES_SEARCHED).copied();
        rows.find(|row| self.rows.get(*row).is_some_and(&test))
    }

    fn identify(&mut self, row: usize, record: Identity) {
        let Some(row) = self.rows.get_mut(row) else { return };
        match record {
            Identity::Id(id) => {
                // Image events leave the timestamp empty in rundowns; the file's own is right.
                row.timestamp = id.timestamp;
                row.file.version_key = Some((id.size as u32, id.timestamp));
                row.file.original_name = Some(id.original_name).filter(|name| !name.is_empty());
            }
            Identity::Rsds(rsds) => {
                row.file.pdb = Some((rsds.guid, rsds.age, rsds.pdb_name));
            }
        }
    }

    /// Takes the path of another event of a mapping if only that one has the volume.
    fn complete_path(&mut self, row: usize, path: &[u8]) {
        let number = self.path(path);
        let Self { rows, paths, whole_paths, .. } = self;
        let Some(first) = rows.get(row).map(|row| row.path).filter(|path| *path != number) else {
            return;
        };
        let split = |number: u32| paths.get(number as usize).map(|path| ImagePath::parse(path));
        if let (Some(known), Some(path)) = (split(first), split(number))
            && known.volume.is_none()
            && path.volume.is_some()
            && known.rest == path.rest
        {
            whole_paths.insert(row, number);
        }
    }

    /// Returns the row of a mapping's path, with the volume if any of its events has it.
    pub fn whole_path(&self, row: usize) -> u32 {
        let whole = self.whole_paths.get(&row).copied();
        whole.or_else(|| self.rows.get(row).map(|row| row.path)).unwrap_or_default()
    }

    fn path(&mut self, path: &[u8]) -> u32 {
        let number = self.path_ids.intern(path);
        if number as usize == self.paths.len() {
            self.paths.push(utf16_text(path));
        }
        number
    }

    fn add(&mut self, image: &ImagePayload<'_>, load: Option<i64>) -> usize {
        let path = self.path(image.path);
        self.rows.push(ImageRow {
            pid: image.pid,
            base: image.base,
            size: image.size,
            path,
            checksum: image.checksum,
            timestamp: image.timestamp,
            load,
            unload: None,
            file: ImageFile::default(),
        });
        let row = self.rows.len() - 1;
        let key = (image.pid, image.base);
        self.rows_by_key.entry(key).or_default().push(row);
        self.identify_new(key, row);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(action: LifeEvent) -> ImagePayload<'static> {
        ImagePayload {
            action,
            base: 0x1000,
            size: 0x100,
            pid: 4,
            checksum: 1,
            timestamp: 0,
            path: b"a\0",
        }
    }

    #[test]
    fn an_image_loaded_again_is_another_mapping() {
        let mut images = Images::default();
        images.event(&image(LifeEvent::Rundown), 1);
        images.event(&image(LifeEvent::End), 2);
        images.event(&image(LifeEvent::Begin), 3);
        images.event(&image(LifeEvent::Rundown), 4);
        let times: Vec<_> = images.rows.iter().map(|row| (row.load, row.unload)).collect();
        assert_eq!(times, [(None, Some(2)), (Some(3), None)]);
        assert_eq!(images.paths, ["a"]);
    }

    #[test]
    fn a_record_logged_later_belongs_to_the_image_at_its_address() {
        let mut images = Images::default();
        images.event(&image(LifeEvent::Rundown), 1);
        images.rsds(rsds(1), 5);
        images.rsds(rsds(2), 6);
        images.finish(&mut PassState::default());
        assert_eq!(images.rows[0].file.pdb.as_ref().map(|pdb| pdb.1), Some(1));
    }

    #[test]
    fn a_record_before_its_image_event_is_not_given_to_an_earlier_image_at_the_address() {
        let mut images = Images::default();
        images.event(&image(LifeEvent::Begin), 1);
        images.event(&image(LifeEvent::End), 2);
        images.event(&image(LifeEvent::Begin), 3);
        images.rsds(rsds(1), 9);
        images.event(&image(LifeEvent::Rundown), 9);
        images.finish(&mut PassState::default());
        let known: Vec<_> = images.rows.iter().map(|row| row.file.pdb.is_some()).collect();
        assert_eq!(known, [false, true]);
    }

    fn id(timestamp: u32) -> ImageId {
        ImageId { base: 0x1000, size: 0x200, pid: 4, timestamp, original_name: "a.dll".into() }
    }

    fn rsds(age: u32) -> Rsds {
        Rsds { base: 0x1000, pid: 4, guid: Guid([7; 16]), age, pdb_name: "a.pdb".into() }
    }

    /// Returns the ages of the mappings' PDBs, and the number of records without image.
    fn ages(mut images: Images) -> (Vec<Option<u32>>, u64) {
        let mut shared = PassState::default();
        images.finish(&mut shared);
        let ages = images.rows.iter().map(|row| row.file.pdb.as_ref().map(|pdb| pdb.1));
        (ages.collect(), shared.diagnostics.of(WarningKind::IdentityWithoutImage))
    }

    #[test]
    fn records_of_an_earlier_trace_belong_to_the_image_that_is_there_since() {
        let mut images = Images::default();
        images.image_id(id(77), 1);
        images.rsds(rsds(1), 2);
        images.event(&image(LifeEvent::Rundown), 5);
        images.event(&image(LifeEvent::End), 6);
        images.event(&image(LifeEvent::Begin), 7);
        assert_eq!(images.rows[0].timestamp, 77);
        assert_eq!(ages(images), (vec![Some(1), None], 0));
    }

    #[test]
    fn records_of_an_earlier_trace_belong_to_a_later_load_of_the_same_file_only() {
        for (timestamp, expected) in [(77, (Some(1), 0)), (78, (None, 2)), (0, (None, 2))] {
            for action in [LifeEvent::Begin, LifeEvent::Rundown] {
                let mut images = Images::default();
                images.image_id(id(77), 1);
                images.rsds(rsds(1), 1);
                images.event(&ImagePayload { timestamp, ..image(action) }, 5);
                let (age, orphans) = match (timestamp, action) {
                    // Rundowns lack the timestamp.
                    (0, LifeEvent::Rundown) => (Some(1), 0),
                    _ => expected,
                };
                assert_eq!(ages(images), (vec![age], orphans), "{timestamp} {action:?}");
            }
        }
    }

    #[test]
    fn of_the_records_of_several_traces_the_last_count_and_few_are_kept() {
        let mut images = Images::default();
        for time in 1..=40 {
            images.image_id(id(77), time);
            images.rsds(rsds(time as u32), time);
        }
        images.event(&image(LifeEvent::Rundown), 50);
        assert!(images.unseen.values().all(|files| files.len() < MAX_FILES_WAITING));
        // The kept ImageIDs equal the image's own.
        let others = 2 * (40 - MAX_FILES_WAITING) + MAX_FILES_WAITING - 1;
        assert_eq!(ages(images), (vec![Some(40)], others as u64));
    }

    #[test]
    fn identity_belongs_to_the_image_event_of_its_time_in_either_order() {
        let mut images = Images::default();
        images.event(&image(LifeEvent::Rundown), 1);
        images.image_id(id(77), 1);
        assert_eq!(images.rows[0].timestamp, 77);
        let mut images = Images::default();
        images.image_id(id(77), 1);
        images.event(&image(LifeEvent::Rundown), 1);
        assert_eq!(images.rows[0].timestamp, 77);
        images.image_id(id(99), 2);
        assert_eq!(images.rows[0].timestamp, 77);
        let mut shared = PassState::default();
        images.finish(&mut shared);
        assert_eq!(shared.diagnostics.of(WarningKind::IdentityWithoutImage), 1);
    }
}
