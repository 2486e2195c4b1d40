//! The names table, and which name an object has.

use handlescope_model::tables::{Name, Names};
use handlescope_model::{ArchiveError, ArchiveWriter, NameIdx, Table};

use crate::collect::Collector;
use crate::lifecycle::{NONE, TrackedEvents};

/// Names of objects as rows of the names table.
pub(super) struct ObjectNames {
    /// Row of the names table for each interned name; [`NONE`] for unused ones.
    rows: Vec<u32>,
    /// For each object its row, or [`NONE`].
    objects: Vec<u32>,
}

impl ObjectNames {
    pub(super) fn of_object(&self, object: usize) -> Option<NameIdx> {
        self.objects.get(object).copied().filter(|row| *row != NONE).map(NameIdx)
    }

    pub(super) fn of_interned(&self, name: u32) -> Option<NameIdx> {
        self.rows.get(name as usize).copied().filter(|row| *row != NONE).map(NameIdx)
    }
}

/// ETWAnalyzer's text between two names of one object.
const OTHER_NAME: &str = " -- Other Name -- ";

pub(super) fn write_names(
    writer: &mut ArchiveWriter,
    collected: &Collector,
    tracked: &TrackedEvents,
) -> Result<ObjectNames, ArchiveError> {
    let mut table = Names::default();
    let mut rows = Vec::new();
    let mut row_of = |name: u32, table: &mut Names| {
        if name == 0 {
            return NONE;
        }
        if rows.len() <= name as usize {
            rows.resize(name as usize + 1, NONE);
        }
        if rows[name as usize] == NONE {
            rows[name as usize] = table.len() as u32;
            table.push(Name { name: collected.handles.names.text(name) });
        }
        rows[name as usize]
    };
    let mut objects = Vec::with_capacity(tracked.objects.rows.len());
    for (object, row) in tracked.objects.rows.iter().enumerate() {
        objects.push(match tracked.objects.more_names.get(&(object as u32)) {
            None => row_of(row.name, &mut table),
            Some(more) => {
                let mut joined = collected.handles.names.text(row.name);
                for name in more {
                    joined.push_str(OTHER_NAME);
                    joined.push_str(&collected.handles.names.text(*name));
                }
                table.push(Name { name: joined });
                table.len() as u32 - 1
            }
        });
    }
    for handle in &collected.handles.start {
        row_of(handle.name, &mut table);
    }
    writer.table(Table::Names, table.into_frame())?;
    Ok(ObjectNames { rows, objects })
}
