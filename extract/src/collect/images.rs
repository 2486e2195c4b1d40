//! Images: where files are mapped, and which files they are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::etl::{Diagnostics, Guid, WarningKind};
use crate::kernel::{FileVersion, Image, ImageAction, ImageId, Rsds, utf16_text};

/// One mapping of one image, times raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRow {
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// First address.
    pub base: u64,
    /// Size, bytes.
    pub size: u64,
    /// Row of [`Images::paths`].
    pub path: u32,
    /// PE checksum.
    pub checksum: u32,
    /// PE time stamp, 0 when unknown.
    pub timestamp: u32,
    /// Load, if it was seen.
    pub load: Option<i64>,
    /// Unload, if it was seen.
    pub unload: Option<i64>,
    /// PDB identity, if a record tells it.
    pub file: ImageFile,
}

/// What identity records say of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFile {
    /// PDB GUID, age and name.
    pub pdb: Option<(Guid, u32, String)>,
    /// Name in the version resource.
    pub original_name: Option<String>,
    /// Size and time stamp according to the file, which lead to its version.
    pub version_key: Option<(u32, u32)>,
}

/// A record that says which file an image is.
#[derive(Debug)]
enum Identity {
    Id(ImageId),
    Rsds(Rsds),
}

impl Identity {
    /// Whether the image has no such record yet and could be the one that is meant.
    fn is_missing_in(&self, image: &ImageRow) -> bool {
        match self {
            Self::Id(id) => {
                let agrees = image.timestamp == 0 || image.timestamp == id.timestamp;
                image.file.version_key.is_none() && agrees
            }
            Self::Rsds(_) => image.file.pdb.is_none(),
        }
    }

    /// Whether the image has this very record.
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

/// Images at one place among which a late record is looked for; a process maps few at one address.
const MAX_IMAGES_SEARCHED: usize = 256;

/// Mappings in the order they were first seen, and the versions of files.
#[derive(Debug, Default)]
pub struct Images {
    /// The mappings.
    pub rows: Vec<ImageRow>,
    /// Paths, each once.
    pub paths: Vec<String>,
    /// File versions by size and time stamp.
    pub versions: HashMap<(u32, u32), String>,
    path_ids: HashMap<Vec<u8>, u32>,
    live: HashMap<(u32, u64), usize>,
    /// All mappings that start at a place, in the order they were first seen.
    places: HashMap<(u32, u64), Vec<usize>>,
    /// The image to which the last `ImageID` record of a place went; its RSDS record follows.
    identified: HashMap<(u32, u64), (i64, usize)>,
    /// The image event last seen for a place, to which identity records of the same time belong.
    recent: HashMap<(u32, u64), (i64, usize)>,
    /// Identity records that came before their image event of the same time.
    early: HashMap<(u32, u64), (i64, Vec<Identity>)>,
    orphans: u64,
}

impl Images {
    /// Takes one image event.
    ///
    /// A load opens a mapping, an unload closes it; an image first seen in a rundown or unload has
    /// been there since before the trace.
    pub fn event(&mut self, image: &Image<'_>, time: i64) {
        let place = (image.pid, image.base);
        let row = match (image.action, self.live.get(&place)) {
            (ImageAction::Load, _) => self.add(image, Some(time)),
            (_, Some(row)) => *row,
            (_, None) => self.add(image, None),
        };
        if image.action == ImageAction::Unload {
            self.live.remove(&place);
            if let Some(row) = self.rows.get_mut(row) {
                row.unload = Some(time);
            }
        } else {
            self.live.insert(place, row);
        }
        if let Some(known) = self.rows.get_mut(row)
            && known.timestamp == 0
        {
            known.timestamp = image.timestamp;
        }
        self.recent.insert(place, (time, row));
        match self.early.remove(&place) {
            Some((early, records)) if early == time => {
                for record in records {
                    self.identify(row, record);
                }
            }
            Some((_, records)) => self.orphans += records.len() as u64,
            None => {}
        }
    }

    /// Takes a record that says which file an image is.
    pub fn image_id(&mut self, id: ImageId, time: i64) {
        self.identity((id.pid, id.base), time, Identity::Id(id));
    }

    /// Takes a record that says which PDB an image has.
    pub fn rsds(&mut self, rsds: Rsds, time: i64) {
        self.identity((rsds.pid, rsds.base), time, Identity::Rsds(rsds));
    }

    /// Takes the version of a file.
    pub fn file_version(&mut self, version: FileVersion) {
        self.versions.insert((version.size, version.timestamp), version.file_version);
    }

    /// Counts identity records whose image event never came.
    pub fn finish(&mut self, diagnostics: &mut Diagnostics) {
        let waiting: usize = self.early.values().map(|(_, records)| records.len()).sum();
        let lost = self.orphans + waiting as u64;
        diagnostics.add(WarningKind::IdentityWithoutImage, lost, None);
    }

    /// Gives a record to its image, or lets it wait for an image event of its own time.
    fn identity(&mut self, place: (u32, u64), time: i64, record: Identity) {
        if let Some(row) = self.image_of(place, time, &record) {
            if matches!(record, Identity::Id(_)) {
                self.identified.insert(place, (time, row));
            }
            self.identify(row, record);
            return;
        }
        let (at, records) = self.early.entry(place).or_insert((time, Vec::new()));
        // A handful of records belong to one image event; others of the place are lost.
        if *at != time || records.len() >= 8 {
            self.orphans += records.len() as u64;
            *at = time;
            records.clear();
        }
        records.push(record);
    }

    /// The image a record belongs to: that of the image event of the same time, as merged traces
    /// have it. Other writers log the records later, in the order of the images at their place.
    fn image_of(&self, place: (u32, u64), time: i64, record: &Identity) -> Option<usize> {
        let of_this_time = |seen: &HashMap<(u32, u64), (i64, usize)>| {
            seen.get(&place).filter(|(at, _)| *at == time).map(|(_, row)| *row)
        };
        if let Some(row) = of_this_time(&self.recent) {
            return Some(row);
        }
        if let (Identity::Rsds(_), Some(row)) = (record, of_this_time(&self.identified)) {
            return Some(row);
        }
        let rows = self.places.get(&place)?.iter().take(MAX_IMAGES_SEARCHED).copied();
        let with = |test: fn(&Identity, &ImageRow) -> bool| {
            rows.clone().find(|row| self.rows.get(*row).is_some_and(|row| test(record, row)))
        };
        with(Identity::is_missing_in).or_else(|| with(Identity::is_known_to))
    }

    fn identify(&mut self, row: usize, record: Identity) {
        let Some(row) = self.rows.get_mut(row) else { return };
        match record {
            Identity::Id(id) => {
                // Image events leave the time stamp empty in rundowns; the file's own is right.
                row.timestamp = id.timestamp;
                row.file.version_key = Some((id.size as u32, id.timestamp));
                row.file.original_name = Some(id.original_name).filter(|name| !name.is_empty());
            }
            Identity::Rsds(rsds) => {
                row.file.pdb = Some((rsds.guid, rsds.age, rsds.pdb_name));
            }
        }
    }

    fn add(&mut self, image: &Image<'_>, load: Option<i64>) -> usize {
        let path = match self.path_ids.entry(image.path.to_vec()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.paths.push(utf16_text(image.path));
                *new.insert(self.paths.len() as u32 - 1)
            }
        };
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
        self.places.entry((image.pid, image.base)).or_default().push(row);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(action: ImageAction) -> Image<'static> {
        Image { action, base: 0x1000, size: 0x100, pid: 4, checksum: 1, timestamp: 0, path: b"a\0" }
    }

    #[test]
    fn an_image_loaded_again_is_another_mapping() {
        let mut images = Images::default();
        images.event(&image(ImageAction::Rundown), 1);
        images.event(&image(ImageAction::Unload), 2);
        images.event(&image(ImageAction::Load), 3);
        images.event(&image(ImageAction::Rundown), 4);
        let times: Vec<_> = images.rows.iter().map(|row| (row.load, row.unload)).collect();
        assert_eq!(times, [(None, Some(2)), (Some(3), None)]);
        assert_eq!(images.paths, ["a"]);
    }

    #[test]
    fn a_record_logged_later_belongs_to_the_image_at_its_place() {
        let rsds =
            |age| Rsds { base: 0x1000, pid: 4, guid: Guid([7; 16]), age, pdb_name: "a.pdb".into() };
        let mut images = Images::default();
        images.event(&image(ImageAction::Rundown), 1);
        images.rsds(rsds(1), 5);
        assert_eq!(images.rows[0].file.pdb.as_ref().map(|pdb| pdb.1), Some(1));
        images.rsds(rsds(2), 6);
        assert_eq!(images.rows[0].file.pdb.as_ref().map(|pdb| pdb.1), Some(1));
    }

    #[test]
    fn identity_belongs_to_the_image_event_of_its_time_in_either_order() {
        let id = |timestamp| ImageId {
            base: 0x1000,
            size: 0x200,
            pid: 4,
            timestamp,
            original_name: "a.dll".into(),
        };
        let mut images = Images::default();
        images.event(&image(ImageAction::Rundown), 1);
        images.image_id(id(77), 1);
        assert_eq!(images.rows[0].timestamp, 77);
        let mut images = Images::default();
        images.image_id(id(77), 1);
        images.event(&image(ImageAction::Rundown), 1);
        assert_eq!(images.rows[0].timestamp, 77);
        images.image_id(id(99), 2);
        assert_eq!(images.rows[0].timestamp, 77);
        let mut diagnostics = Diagnostics::default();
        images.finish(&mut diagnostics);
        assert_eq!(diagnostics.of(WarningKind::IdentityWithoutImage), 1);
    }
}
