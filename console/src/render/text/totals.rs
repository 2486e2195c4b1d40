//! Sums: the lines below the objects, and the tables of `-ShowTotal`.

use std::fmt;
use std::io::{self, Write};

use indicatif::HumanCount;

use super::clean::Clean;
use crate::command::TopN;
use crate::query::{CountBy, OpenHandles, Totals};

/// The summary, one to three lines without the last line end.
pub(super) struct Summary(pub(super) Totals);

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { objects_created, objects_destroyed, .. } = self.0;
        let Totals { handles_created, handles_closed, handles_duplicated, .. } = self.0;
        let Totals { ref_changes, map_count, unmap_count, map_size, unmap_size, .. } = self.0;
        write!(
            f,
            "Objects Created/Destroyed: {objects_created}/{objects_destroyed} Diff: {},  \
             Handles Created/Closed/Duplicated: \
             {handles_created}/{handles_closed}/{handles_duplicated} Diff: {},  \
             RefChanges: {ref_changes} FileMap/Unmap: {map_count}/{unmap_count}",
            difference(objects_created, objects_destroyed),
            difference(handles_created.saturating_add(handles_duplicated), handles_closed),
        )?;
        if map_count == 0 {
            return Ok(());
        }
        let (mapped, unmapped) = (HumanCount(map_size), HumanCount(unmap_size));
        let outstanding = difference(map_size, unmap_size);
        let sign = if outstanding < 0 { "-" } else { "" };
        let bytes = HumanCount(u64::try_from(outstanding.unsigned_abs()).unwrap_or(u64::MAX));
        write!(
            f,
            "\nFile Map/Unmap Count {map_count}/{unmap_count} - {} outstanding\
             \nFile Map/Unmap Size  {mapped}/{unmapped} - {sign}{bytes} bytes outstanding",
            difference(map_count, unmap_count),
        )
    }
}

fn difference(a: u64, b: u64) -> i128 {
    i128::from(a) - i128::from(b)
}

/// Writes the table of open handles.
pub(super) fn open_handles(
    out: &mut impl Write,
    handles: &OpenHandles,
    by: CountBy,
    top: Option<TopN>,
) -> io::Result<()> {
    match by {
        CountBy::Type => {
            writeln!(out, "Not closed Handle counts for {} processes", handles.process_count())?;
        }
        CountBy::Process => writeln!(out, "Not closed handles at trace end:")?,
    }
    let rows = handles.rows(by, top);
    for (name, count) in &rows {
        let name = Clean(name).to_string();
        writeln!(out, "{name:<60}: {count:>7}")?;
    }
    let sum: u64 = rows.iter().map(|(_, count)| count).sum();
    writeln!(out, "{:=<69}", "")?;
    writeln!(out, "{:<60}: {sum:>7}", "Sum")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_etwanalyzers_spacing() {
        let totals = Totals {
            objects_created: 5,
            objects_destroyed: 3,
            handles_created: 6,
            handles_closed: 4,
            handles_duplicated: 1,
            ref_changes: 7,
            ..Default::default()
        };
        insta::assert_snapshot!(Summary(totals), @r"Objects Created/Destroyed: 5/3 Diff: 2,  Handles Created/Closed/Duplicated: 6/4/1 Diff: 3,  RefChanges: 7 FileMap/Unmap: 0/0");
    }

    #[test]
    fn mappings_add_two_lines() {
        let totals = Totals {
            map_count: 2,
            unmap_count: 3,
            map_size: 1_048_576,
            unmap_size: 2_097_152,
            ..Default::default()
        };
        insta::assert_snapshot!(Summary(totals), @r"
        Objects Created/Destroyed: 0/0 Diff: 0,  Handles Created/Closed/Duplicated: 0/0/0 Diff: 0,  RefChanges: 0 FileMap/Unmap: 2/3
        File Map/Unmap Count 2/3 - -1 outstanding
        File Map/Unmap Size  1,048,576/2,097,152 - -1,048,576 bytes outstanding
        ");
    }
}
