//! The member that ties the tables of an archive together: the rows, bytes and checksum of each.
//!
//! It is text with a tab-separated line per table: name, rows, bytes and CRC-32 in hexadecimal. The table of contents
//! of a 7z file has the same checksums. So a table that is missing, emptied or from another trace is detected when the
//! archive is opened, before any table is read. Members that are not tables are not listed, because they change no
//! answer.

use sevenz_rust::ArchiveEntry;

use crate::stable_hash::name_of;
use crate::table::Table;

/// The name of the member.
pub const MEMBER: &str = "tables.tsv";

/// Maximum bytes read of the member; it has about 40 per table.
pub const MAX_BYTES: u64 = 64 << 10;

const HEADING: &str = "table\trows\tbytes\tcrc32\n";

/// A table as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTable {
    pub rows: u64,
    pub content: Content,
}

/// The content of a member, as the table of contents describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    pub bytes: u64,
    pub crc32: u32,
}

/// The tables of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest(Vec<(Table, StoredTable)>);

/// Ways in which a table differs from what was written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ContentProblem {
    #[error("it has no checksum")]
    NoChecksum,
    #[error("it has {claimed} bytes, but had {written} when the archive was written")]
    Size { claimed: u64, written: u64 },
    #[error("it does not belong to the other tables of the archive")]
    Checksum,
}

impl Content {
    /// Returns the content of a member according to the table of contents.
    pub fn new(entry: &ArchiveEntry) -> Result<Self, ContentProblem> {
        let crc32 = u32::try_from(entry.crc).ok().filter(|_| entry.has_crc && entry.has_stream);
        let crc32 = crc32.ok_or(ContentProblem::NoChecksum)?;
        Ok(Self { bytes: entry.size, crc32 })
    }
}

impl StoredTable {
    /// Compares the entry with a member of the archive.
    pub fn check(&self, now: Content) -> Result<(), ContentProblem> {
        let written = self.content;
        if now.bytes != written.bytes {
            return Err(ContentProblem::Size { claimed: now.bytes, written: written.bytes });
        }
        if now.crc32 != written.crc32 {
            return Err(ContentProblem::Checksum);
        }
        Ok(())
    }
}

impl Manifest {
    pub fn get(&self, table: Table) -> Option<StoredTable> {
        self.0.iter().find(|(of, _)| *of == table).map(|(_, stored)| *stored)
    }

    pub fn insert(&mut self, table: Table, stored: StoredTable) {
        self.0.retain(|(of, _)| *of != table);
        self.0.push((table, stored));
    }

    /// Returns the text of the member, in archive order, so that equal tables give equal text.
    pub fn to_text(&self) -> String {
        let stored = Table::ALL.iter().filter_map(|table| Some((table, self.get(*table)?)));
        HEADING.to_owned()
            + &stored
                .map(|(table, StoredTable { rows, content })| {
                    let Content { bytes, crc32 } = content;
                    format!("{}\t{rows}\t{bytes}\t{crc32:08x}\n", table.name())
                })
                .collect::<String>()
    }

    /// Parses the text of the member; returns `None` if it is something else or lacks a table.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?.strip_prefix(HEADING)?;
        let mut manifest = Self::default();
        for line in text.lines() {
            let [table, rows, bytes, crc32] = line.split('\t').collect::<Vec<_>>()[..] else {
                return None;
            };
            let crc32 = u32::from_str_radix(crc32, 16).ok()?;
            let content = Content { bytes: bytes.parse().ok()?, crc32 };
            manifest
                .insert(Table::named(table)?, StoredTable { rows: rows.parse().ok()?, content });
        }
        (manifest.0.len() == Table::ALL.len()).then_some(manifest)
    }

    /// Returns an id of this content; traces that differ in any table have different ids.
    pub fn id(&self) -> String {
        name_of([self.to_text().as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Manifest {
        let mut manifest = Manifest::default();
        for (number, table) in (1..).zip(Table::ALL) {
            let content = Content { bytes: 100 * u64::from(number), crc32: 0xAB_0000 + number };
            manifest.insert(table, StoredTable { rows: number.into(), content });
        }
        manifest
    }

    #[test]
    fn a_written_manifest_is_read_again() {
        let text = whole().to_text();
        assert!(text.starts_with("table\trows\tbytes\tcrc32\ntrace\t1\t100\t00ab0001\n"), "{text}");
        assert_eq!(Manifest::parse(text.as_bytes()), Some(whole()));
    }

    #[test]
    fn text_that_lacks_a_table_or_is_damaged_is_not_read() {
        let text = whole().to_text();
        let without_last = text.trim_end().rsplit_once('\n').unwrap().0;
        let damaged = [text.replace("\t100\t", "\tx\t"), text.replace("objects", "object")];
        for text in
            ["", "table", HEADING, without_last].into_iter().chain(damaged.each_ref().map(|t| &**t))
        {
            assert_eq!(Manifest::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn any_difference_gives_another_id_and_a_reason() {
        let (mut changed, before) = (whole(), whole().get(Table::Objects).unwrap());
        for (now, reason) in [
            (
                Content { bytes: 1, ..before.content },
                ContentProblem::Size { claimed: 1, written: before.content.bytes },
            ),
            (Content { crc32: 1, ..before.content }, ContentProblem::Checksum),
        ] {
            assert_eq!(before.check(now), Err(reason));
            changed.insert(Table::Objects, StoredTable { content: now, ..before });
            assert_ne!(changed.id(), whole().id());
        }
        assert_eq!(before.check(before.content), Ok(()));
        changed.insert(Table::Objects, before);
        assert_eq!(changed.id(), whole().id(), "in whatever order they were written");
    }
}
