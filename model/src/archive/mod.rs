//! The archive: a 7z file with one Parquet member per table.
//!
//! * Members are named after their table (`objects.parquet`) and stored without 7z compression, so that a reader can
//!   seek to one; Parquet itself compresses with zstd.
//! * The `trace` table's `schema_version` is the version of the layout; another one is refused.
//! * The manifest lists rows and checksums, so that a table that is missing, empty or from another trace is detected.
//! * Unknown members are ignored, because later versions add some.
//! * A writer fills a temporary file beside the target and renames it at the very end, so that a reader never sees half
//!   an archive.

mod any_archive;
mod claims;
mod container;
mod decode;
mod encoding;
mod error;
mod foreign;
mod header;
mod hybrid;
mod lists;
mod manifest;
mod members;
mod numbers;
mod parquet;
mod parts;
mod reader;
mod references;
mod replace;
pub mod unpack;
mod writer;

pub use any_archive::{ARCHIVE_EXTENSIONS, AnyArchive};
pub use claims::ArchiveLimits;
pub use container::{Container, ContainerError, ContainerLimits};
pub use error::ArchiveError;
pub use foreign::ForeignContent;
pub use parquet::{ParquetFile, ROW_GROUP_ROWS};
pub use reader::Trace;
pub use replace::replace_table;
pub use writer::{ArchiveWriter, EncodedTable, TableEncoder, write_parquet, write_parquet_with};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::column::RowSet;
    use crate::index::ProcessIdx;
    use crate::table::Table;
    use crate::tables::{
        Acquisition, Acquisitions, Name, Names, SCHEMA_VERSION, TraceInfo, TraceInfos,
    };

    fn write_small(path: &std::path::Path, schema_version: u32) -> Result<(), ArchiveError> {
        let mut info = TraceInfos::default();
        info.push(TraceInfo { schema_version, ..TraceInfo::default() });
        let mut names = Names::default();
        names.push(Name { name: "\\Device\\ConDrv".into() });
        names.push(Name { name: "\\BaseNamedObjects\\X".into() });
        let mut writer = ArchiveWriter::create(path)?;
        writer.table(Table::Trace, info.into_frame())?;
        writer.table(Table::Names, names.into_frame())?;
        writer.finish().map(|_| ())
    }

    #[test]
    fn a_written_archive_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        write_small(&path, SCHEMA_VERSION).unwrap();
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.height(Table::Names).unwrap(), 2);
        let names = trace.column(Table::Names, "name").unwrap();
        assert_eq!(names.str().unwrap().get(1), Some("\\BaseNamedObjects\\X"));
    }

    /// Writes rows of several row groups; the columns have nulls in all, some or no rows.
    fn write_acquisitions(path: &std::path::Path, rows: u32) {
        let mut info = TraceInfos::default();
        info.push(TraceInfo { schema_version: SCHEMA_VERSION, ..TraceInfo::default() });
        let handles = (0..rows).map(|row| Acquisition {
            process: (!row.is_multiple_of(3)).then_some(ProcessIdx(row / 5)),
            key: u64::from(row) * 4,
            in_rundown: Some(row % 2 == 0),
            ..Acquisition::default()
        });
        let mut writer = ArchiveWriter::create(path).unwrap();
        writer.table(Table::Trace, info.into_frame()).unwrap();
        writer.table(Table::Acquisitions, Acquisitions::from_iter(handles).into_frame()).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn columns_of_several_row_groups_come_back_as_a_whole_and_in_part() {
        const ROWS: u32 = 600_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        write_acquisitions(&path, ROWS);
        let trace = Trace::open(&path).unwrap();
        let selected = |row: u32| row.is_multiple_of(50_021) || (300_000..300_100).contains(&row);
        let process = |row: u32| (!row.is_multiple_of(3)).then_some(ProcessIdx(row / 5));
        for is_known in [false, true] {
            let rows = (0..ROWS).filter(|row| selected(*row)).map(|row| row as usize);
            let rows = Arc::new(RowSet::new(ROWS as usize, rows));
            let few = Arc::new(RowSet::new(ROWS as usize, [300_001]));
            for rows in [&rows, &few, &rows] {
                let processes = trace.values_at(Acquisitions::process, rows).unwrap();
                let handles = trace.values_at(Acquisitions::key, rows).unwrap();
                let names = trace.values_at(Acquisitions::object, rows).unwrap();
                let closed = trace.values_at(Acquisitions::in_rundown, rows).unwrap();
                for row in rows.iter() {
                    let number = row as u32;
                    assert_eq!(processes.get(row), process(number), "{row}");
                    assert_eq!(handles.get(row), Some(row as u64 * 4));
                    assert_eq!(names.get(row), None);
                    assert_eq!(closed.get(row), number.is_multiple_of(2));
                }
                assert!(is_known || handles.get(7).is_none(), "the row was not read");
            }
            let processes = trace.values(Acquisitions::process).unwrap();
            assert!(processes.iter().eq((0..ROWS).map(process)));
            let handles = trace.values(Acquisitions::key).unwrap();
            assert!(handles.values().iter().copied().eq((0..ROWS).map(|row| u64::from(row) * 4)));
            assert!(!trace.values(Acquisitions::object).unwrap().has_any());
        }
    }

    #[test]
    fn a_table_that_was_not_filled_reads_as_empty_with_its_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        write_small(&path, SCHEMA_VERSION).unwrap();
        let trace = Trace::open(&path).unwrap();
        let events = trace.frame(Table::Events).unwrap();
        assert_eq!((events.height(), events.width()), (0, Table::Events.columns().len()));
    }

    #[test]
    fn another_layout_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        for (version, remedy) in [
            (SCHEMA_VERSION + 1, "use a newer handlescope"),
            (SCHEMA_VERSION - 1, "extract the trace again"),
        ] {
            write_small(&path, version).unwrap();
            let error = Trace::open(&path).unwrap_err().to_string();
            let says =
                format!("layout version {version}, this program reads {SCHEMA_VERSION}; {remedy}");
            assert!(error.ends_with(&says), "{error}");
        }
    }

    #[test]
    fn an_unfinished_archive_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        let mut writer = ArchiveWriter::create(&path).unwrap();
        writer.table(Table::Names, Names::default().into_frame()).unwrap();
        drop(writer);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json7z");
        write_small(&path, SCHEMA_VERSION).unwrap();
        let good = fs::read(&path).unwrap();
        for position in (0..good.len()).step_by(97) {
            let mut bad = good.clone();
            bad[position] ^= 0x55;
            fs::write(&path, &bad).unwrap();
            if let Ok(trace) = Trace::open(&path) {
                let _ = trace.frame(Table::Names);
            }
            fs::write(&path, &good[..position]).unwrap();
            assert!(Trace::open(&path).is_err(), "cut at {position}");
        }
    }
}
