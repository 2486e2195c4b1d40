//! Which columns of a table fit a screen: a number, a time, an address or a name that is broken in the middle cannot
//! be read or copied, a long path or command line can be.

use std::iter;

use console::measure_text_width;

/// Longer words are broken, and paths and functions: command lines and the like. A GUID is as long.
pub(super) const LONGEST_WORD: usize = 36;

/// What a column with such words has at least.
pub(super) const LEAST_OF_LONG: usize = 12;

/// Columns narrower than this on average are no longer read as columns.
const LEAST_WIDTH: usize = 9;

/// A number with its unit, not a time with its date.
const LONGEST_QUANTITY: usize = 16;

/// What stands beside the text of a column: a space on either side, and the line to the next one.
const PADDING: usize = 2;
const LINE: usize = 1;

/// How wide the text of each column is at least: its longest word, or less where that is broken anyway.
pub(super) struct LeastWidths(Vec<usize>);

impl LeastWidths {
    /// Of the cells of some rows, headings included; where words are longer than they may be, `long`.
    pub(super) fn of<'a, R: IntoIterator<Item = &'a str>>(
        rows: impl IntoIterator<Item = R>,
        long: usize,
    ) -> LeastWidths {
        let mut widths = Vec::new();
        for cells in rows {
            for (at, cell) in cells.into_iter().enumerate() {
                if at == widths.len() {
                    widths.push(0);
                }
                let width = cell
                    .lines()
                    .flat_map(words)
                    .map(|word| least(word, long))
                    .max()
                    .unwrap_or_default();
                widths[at] = widths[at].max(width);
            }
        }
        LeastWidths(widths)
    }

    /// How wide the table is at least.
    pub(super) fn sum(&self) -> usize {
        self.sum_without(&[])
    }

    fn sum_without(&self, left_out: &[usize]) -> usize {
        let columns = self.0.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
        let widths = columns.map(|(_, width)| width + PADDING + LINE);
        widths.sum::<usize>().saturating_sub(LINE)
    }

    /// How many of the spare columns are left out, from the first, so that the others fit the screen; none where even
    /// the others do not.
    pub(super) fn left_out(&self, screen: usize, spare: &[usize]) -> Option<usize> {
        let fits = |count: &usize| {
            let left_out = spare.get(..*count).unwrap_or(spare);
            let columns = self.0.len() - left_out.len();
            columns * LEAST_WIDTH <= screen && self.sum_without(left_out) <= screen
        };
        (0..=spare.len()).find(fits)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }
}

/// What of a line of a cell stays together.
fn words(line: &str) -> Box<dyn Iterator<Item = &str> + '_> {
    let is_quantity = line.trim_start().starts_with(|char: char| char.is_ascii_digit());
    match is_quantity && measure_text_width(line) <= LONGEST_QUANTITY {
        true => Box::new(iter::once(line.trim_end())),
        false => Box::new(line.split(' ')),
    }
}

/// How wide a column is at least for a word.
fn least(word: &str, long: usize) -> usize {
    let width = measure_text_width(word);
    match width > LONGEST_WORD || word.contains(['\\', '/', '!']) || word.contains("::") {
        true => width.min(long),
        false => width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_holds_its_longest_word_but_no_long_path() {
        let path = r"C:\x\".repeat(5);
        let rows = [
            ["Pid", "Process", "Path", "Bytes"],
            ["12345", "cacheserver.exe(9044) +-", "a-short-word", "994.90 KiB"],
            ["1", "", &path, "0 B"],
        ];
        let least = LeastWidths::of(rows, LEAST_OF_LONG);
        assert_eq!(least.0, [5, 21, LEAST_OF_LONG, 10]);
        assert_eq!(least.sum(), 5 + 21 + 12 + 10 + 4 * 2 + 3);
        assert_eq!(LeastWidths::of([["2024-05-10 12:46:34.008663"]], LEAST_OF_LONG).0, [15]);
        assert_eq!(LeastWidths::of::<[&str; 0]>([], LEAST_OF_LONG).sum(), 0);
    }

    #[test]
    fn spare_columns_are_left_out_one_by_one_until_the_others_fit() {
        let least = LeastWidths::of(
            [["a-name-of-20-columns", "a-time-of-15-co", "10-columns", "9-columns"]],
            LEAST_OF_LONG,
        );
        for (screen, left_out) in
            [(65, Some(0)), (64, Some(1)), (47, Some(1)), (46, Some(2)), (35, Some(2)), (34, None)]
        {
            assert_eq!(least.left_out(screen, &[1, 3]), left_out, "{screen}");
        }
    }
}
