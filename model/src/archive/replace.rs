//! Replaces one table of an archive.

use std::path::Path;

use polars::prelude::{DataFrame, PolarsResult};

use super::claims::ArchiveLimits;
use super::container::ContainerLimits;
use super::error::ArchiveError;
use super::reader::Trace;
use super::writer::ArchiveWriter;
use crate::table::Table;

/// Replaces one table of an archive and keeps everything else, including members that this program does not know.
/// Returns the size of the file in bytes. `limits` are those the archive was opened with.
///
/// The new archive is complete before it replaces the old one. A reader that has the old one open continues to read it.
///
/// # Errors
/// If the archive cannot be read, or the frame could not be made, does not fit the table, or cannot be written. The
/// archive then stays as it was.
pub fn replace_table(
    path: &Path,
    table: Table,
    frame: PolarsResult<DataFrame>,
    limits: &ContainerLimits,
) -> Result<u64, ArchiveError> {
    let limits = ArchiveLimits { container: *limits, ..ArchiveLimits::default() };
    let old = Trace::open_within(path, limits)?;
    let mut new = ArchiveWriter::create(path)?;
    let replaced = table.member();
    old.copy_members(&mut new, |name| name != replaced)?;
    drop(old);
    new.table(table, frame)?;
    new.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sevenz_rust::{ArchiveReader, Password};

    use super::*;
    use crate::index::FrameIdx;
    use crate::tables::{Name, Names, SCHEMA_VERSION, Symbol, Symbols, TraceInfo, TraceInfos};

    const LIMITS: ContainerLimits = ContainerLimits::for_members_of(1 << 20);

    fn symbols(functions: &[&str]) -> PolarsResult<DataFrame> {
        let mut symbols = Symbols::default();
        for function in functions {
            symbols.push(Symbol {
                frame: FrameIdx(1),
                function: (*function).to_owned(),
                ..Symbol::default()
            });
        }
        symbols.into_frame()
    }

    fn functions(path: &Path) -> Vec<String> {
        let column = Trace::open(path).unwrap().column(Table::Symbols, "function").unwrap();
        column.str().unwrap().iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_is_replaced_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        let mut info = TraceInfos::default();
        info.push(TraceInfo { schema_version: SCHEMA_VERSION, ..TraceInfo::default() });
        let mut names = Names::default();
        names.push(Name { name: "X".into() });
        let mut writer = ArchiveWriter::create(&path).unwrap();
        writer.table(Table::Trace, info.into_frame()).unwrap();
        writer.member("later.txt", &mut &b"of a later version"[..]).unwrap();
        writer.table(Table::Names, names.into_frame()).unwrap();
        writer.finish().unwrap();

        let open = Trace::open(&path).unwrap();
        for replaced in [&["f", "g"][..], &["h"], &[]] {
            let before = Trace::open(&path).unwrap();
            let size = replace_table(&path, Table::Symbols, symbols(replaced), &LIMITS).unwrap();
            assert_eq!(size, fs::metadata(&path).unwrap().len());
            assert_eq!(functions(&path), replaced);
            let trace = Trace::open(&path).unwrap();
            assert_eq!(trace.height(Table::Names).unwrap(), 1);
            let mut archive = ArchiveReader::open(&path, Password::empty()).unwrap();
            assert_eq!(archive.read_file("later.txt").unwrap(), b"of a later version");
            // All tables, the manifest, and the member.
            assert_eq!(archive.archive().files.len(), Table::ALL.len() + 2);
            assert_ne!(trace.id(), before.id());
        }
        assert_eq!(open.height(Table::Names).unwrap(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        fs::write(&path, b"no archive").unwrap();
        assert!(replace_table(&path, Table::Symbols, symbols(&["f"]), &LIMITS).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"no archive");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
