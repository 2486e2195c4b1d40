//! Sums: the lines below the objects, and the tables of `-ShowTotal`.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

use handlescope_model::rules::EXIT_FUNCTIONS;

use super::{capitalized, grouped};
use handlescope_model::Untrusted;
use handlescope_query::{
    AcquisitionCriteria, CountBy, CountRow, CountedHandles, ExitStacks, HandleCounts, Totals,
};
use handlescope_session::terminal::{Screen, table, wrapped};

/// Returns the summary: one to three lines without the final line end, or a few more if the first does not fit. `width`
/// is the number of columns of the terminal, `digit_separator` says whether thousands are separated.
pub fn summary(totals: Totals, digit_separator: bool, width: Option<usize>) -> String {
    let Totals { objects_created, objects_destroyed, .. } = totals;
    let Totals { handles_created, handles_closed, handles_duplicated, .. } = totals;
    let Totals { ref_changes, map_count, unmap_count, map_size, unmap_size, .. } = totals;
    let first = format!(
        "Objects Created/Destroyed: {objects_created}/{objects_destroyed} Diff: {},  \
         Handles Created/Closed/Duplicated: \
         {handles_created}/{handles_closed}/{handles_duplicated} Diff: {},  \
         RefChanges: {ref_changes} FileMap/Unmap: {map_count}/{unmap_count}",
        difference(objects_created, objects_destroyed),
        difference(handles_created.saturating_add(handles_duplicated), handles_closed),
    );
    let first = match width.filter(|&width| width < first.len()) {
        None => first,
        Some(_) => wrapped(&first.replace(",  ", "\n"), width),
    };
    if map_count == 0 {
        return first;
    }
    let grouped = |bytes| grouped(bytes, digit_separator);
    let (mapped, unmapped) = (grouped(map_size), grouped(unmap_size));
    let outstanding = difference(map_size, unmap_size);
    let sign = if outstanding < 0 { "-" } else { "" };
    let bytes = grouped(u64::try_from(outstanding.unsigned_abs()).unwrap_or(u64::MAX));
    let views = format!(
        "File Map/Unmap Count {map_count}/{unmap_count} - {} outstanding\n\
         File Map/Unmap Size  {mapped}/{unmapped} - {sign}{bytes} bytes outstanding",
        difference(map_count, unmap_count),
    );
    format!("{first}\n{}", wrapped(&views, width))
}

fn difference(a: u64, b: u64) -> i128 {
    i128::from(a) - i128::from(b)
}

/// Counts of everything that `-Leak` and `-LeakAtExit` print or leave out; empty without these options.
pub struct LeakLines<'a> {
    pub criteria: &'a AcquisitionCriteria,
    pub totals: Totals,
    /// Number of objects that remain only because of their creation or end.
    pub without_leak: u64,
    pub exit_stacks: Option<ExitStacks>,
    /// Whether the trace has any handle events; without them nothing is known about leaks.
    pub knows_leaks: bool,
}

impl fmt::Display for LeakLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.knows_leaks {
            self.write_leaks(f)?;
        }
        let is_single = self.totals.closed_unseen == 1;
        match self.totals.closed_unseen {
            0 => Ok(()),
            count => write!(
                f,
                "\n{count} {} closed unseen because events were lost, so not leaked",
                if is_single { "handle or view was" } else { "handles and views were" }
            ),
        }
    }
}

impl LeakLines<'_> {
    fn write_leaks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { leaked_handles, closed_at_exit, .. } = self.totals;
        let counted = CountedHandles::new(self.criteria);
        let count = match counted {
            CountedHandles::OpenAtEnd | CountedHandles::OpenByEvents { .. } => return Ok(()),
            CountedHandles::Leaked => leaked_handles,
            CountedHandles::ClosedAtExit => closed_at_exit,
            CountedHandles::LeakedOrAtExit => leaked_handles.saturating_add(closed_at_exit),
        };
        write!(f, "\n{}: {count}", capitalized(counted.text()))?;
        if self.without_leak > 0 {
            let (objects, their) = match self.without_leak {
                1 => ("object is", "its"),
                _ => ("objects are", "their"),
            };
            let count = self.without_leak;
            write!(
                f,
                "\n{count} {objects} listed only for {their} creation or end, without a leak"
            )?;
        }
        if self.criteria.sums_suspect {
            f.write_str(
                "\nTotals count all handles of the suspect; only the leaked ones are listed",
            )?;
        }
        let exit_stacks = self.exit_stacks.filter(|stacks| stacks.closes > 0);
        if let Some(ExitStacks { closes, confirmed, .. }) = exit_stacks {
            let functions = EXIT_FUNCTIONS.join(", ");
            write!(f, "\nConfirmed by their stacks ({functions}): {confirmed} of {closes} closes")?;
        }
        if counted != CountedHandles::Leaked || closed_at_exit == 0 {
            return Ok(());
        }
        let (handles, their) =
            if closed_at_exit == 1 { ("handle was", "its") } else { ("handles were", "their") };
        write!(
            f,
            "\n{closed_at_exit} more {handles} closed only by the exit of {their} process: \
             -LeakAtExit"
        )
    }
}

/// The table of counted handles.
pub struct CountTable<'a> {
    pub counts: &'a HandleCounts,
    pub by: CountBy,
    pub criteria: &'a AcquisitionCriteria,
    /// Names of the files by number, for a table about the processes of several files.
    pub files: Option<&'a HashMap<usize, String>>,
    pub screen: Screen,
}

impl CountTable<'_> {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", wrapped(&self.title(), self.screen.width))?;
        let rows = self.counts.rows(self.by, self.criteria.top, self.criteria.order);
        let named = rows.rows.iter().map(|row| (self.name(row), row.count));
        if self.screen.is_terminal() {
            self.draw(out, named, rows.sum())?;
        } else {
            write_plain(out, named, rows.sum())?;
        }
        match (rows.left_out, rows.left_out_sum) {
            (0, _) => Ok(()),
            (more, count) => {
                writeln!(out, "+ {more} more, {count} {}", self.counts.counted.unit(count == 1))
            }
        }
    }

    /// Returns ETWAnalyzer's titles for handles that are open at the end.
    fn title(&self) -> String {
        let count = self.counts.process_count();
        let processes = if count == 1 { "process" } else { "processes" };
        match (self.counts.counted, self.by) {
            (CountedHandles::OpenAtEnd, CountBy::Type) => {
                format!("Handles not closed at the end of the trace, of {count} {processes} (rundown):")
            }
            (CountedHandles::OpenAtEnd, _) => {
                "Handles not closed at the end of the trace (rundown):".to_owned()
            }
            (CountedHandles::OpenByEvents { has_start: true }, _) => {
                "Handles not closed at the end of the trace, by its events and the rundown at its start (it \
                 has no rundown at its end):"
                    .to_owned()
            }
            (CountedHandles::OpenByEvents { has_start: false }, _) => {
                "Handles opened and not closed in the trace (it has no rundown, so older handles are \
                 unknown):"
                    .to_owned()
            }
            (counted, _) => format!("{} ({count} {processes}):", capitalized(counted.text())),
        }
    }

    fn name(&self, row: &CountRow<'_>) -> String {
        let file = self.files.filter(|_| self.by == CountBy::Process);
        match file.and_then(|files| files.get(&row.file)) {
            Some(file) => format!("{} in {}", Untrusted(row.name), Untrusted(file)),
            None => Untrusted(row.name).to_string(),
        }
    }

    fn draw(
        &self,
        out: &mut impl Write,
        rows: impl Iterator<Item = (String, u64)>,
        sum: u64,
    ) -> io::Result<()> {
        let mut table = table::table(self.screen, &[self.by.title(), "Handles"]);
        table::align_right(&mut table, &[1]);
        for (name, count) in rows {
            table.add_row([name, count.to_string()]);
        }
        table.add_row(["Sum".to_owned(), sum.to_string()]);
        write!(out, "{}", table::text(table))
    }
}

/// Writes the table as ETWAnalyzer does, for scripts that read it.
fn write_plain(
    out: &mut impl Write,
    rows: impl Iterator<Item = (String, u64)>,
    sum: u64,
) -> io::Result<()> {
    for (name, count) in rows {
        writeln!(out, "{name:<60}: {count:>7}")?;
    }
    writeln!(out, "{:=<69}", "")?;
    writeln!(out, "{:<60}: {sum:>7}", "Sum")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(totals: Totals) -> String {
        summary(totals, true, None)
    }

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
        insta::assert_snapshot!(shown(totals), @r"Objects Created/Destroyed: 5/3 Diff: 2,  Handles Created/Closed/Duplicated: 6/4/1 Diff: 3,  RefChanges: 7 FileMap/Unmap: 0/0");
        insta::assert_snapshot!(summary(totals, true, Some(80)), @r"
        Objects Created/Destroyed: 5/3 Diff: 2
        Handles Created/Closed/Duplicated: 6/4/1 Diff: 3
        RefChanges: 7 FileMap/Unmap: 0/0
        ");
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
        insta::assert_snapshot!(shown(totals), @r"
        Objects Created/Destroyed: 0/0 Diff: 0,  Handles Created/Closed/Duplicated: 0/0/0 Diff: 0,  RefChanges: 0 FileMap/Unmap: 2/3
        File Map/Unmap Count 2/3 - -1 outstanding
        File Map/Unmap Size  1,048,576/2,097,152 - -1,048,576 bytes outstanding
        ");
        let plain = summary(totals, false, None);
        assert!(plain.ends_with("  1048576/2097152 - -1048576 bytes outstanding"), "{plain}");
    }
}
