//! Which columns of a grid fit a screen: a number, a time, an address or a name that is broken in the middle cannot
//! be read or copied, a long path or command line can be.

use std::iter;

use console::measure_text_width;

/// Words longer than this are broken: paths, command lines, identities of PDBs.
const LONGEST_WORD: usize = 20;

/// What a column with such words has at least.
const LEAST_OF_LONG: usize = 12;

/// What stands beside the text of a column: a space on either side, and the line to the next one.
const PADDING: usize = 2;
const LINE: usize = 1;

/// How wide the text of each column is at least: its longest word, or less where that is broken anyway.
pub(super) struct LeastWidths(Vec<usize>);

impl LeastWidths {
    pub(super) fn of<'a>(
        headings: &'a [String],
        rows: impl IntoIterator<Item = &'a Vec<String>>,
    ) -> LeastWidths {
        let mut widths = vec![0; headings.len()];
        for cells in iter::once(headings).chain(rows.into_iter().map(Vec::as_slice)) {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.split_whitespace().map(measure_text_width).fold(*width, usize::max);
            }
        }
        let least = |width| if width > LONGEST_WORD { LEAST_OF_LONG } else { width };
        LeastWidths(widths.into_iter().map(least).collect())
    }

    /// How wide the grid is at least.
    pub(super) fn sum(&self) -> usize {
        self.0.iter().map(|width| width + PADDING + LINE).sum::<usize>().saturating_sub(LINE)
    }

    /// The widths of the columns with what stands beside their text.
    pub(super) fn padded(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|width| width + PADDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_holds_its_longest_word_but_no_long_path() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let headings = row(["Pid", "Loaded by", "Path"]);
        let rows =
            [row(["12345", "8 processes", "a-short-word"]), row(["1", "", &r"C:\x\".repeat(20)])];
        let least = LeastWidths::of(&headings, &rows);
        assert_eq!(least.0, [5, 9, LEAST_OF_LONG]);
        assert_eq!(least.sum(), 5 + 9 + 12 + 3 * 2 + 2);
        assert_eq!(LeastWidths::of(&[], &[]).sum(), 0);
    }
}
