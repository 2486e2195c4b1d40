//! The meanings of the members of documents: the page about them is the one place that says what they are. Their types
//! in it are those of the columns that declare them.

/// The page.
pub(super) const PAGE: &str = include_str!("../../../docs/dump-json.md");

/// What the page says of a member of the rows of a command, which the document has as `rows`.
pub(super) fn meaning(command: &str, rows: &str, member: &str) -> Option<&'static str> {
    let is_command = |line: &str| line.starts_with("## ") && is_named(line, command);
    let section = PAGE.lines().skip_while(|line| !is_command(line)).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let is_rows = |line: &str| line.starts_with("### ") && is_named(line, rows);
    let table = section.skip_while(|line| !is_rows(line)).skip(1);
    let mut table = table.take_while(|line| !line.starts_with('#'));
    table.find_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let ((names, _), (_, meaning)) = cells.split_once(" | ").zip(cells.rsplit_once(" | "))?;
        is_named(names, member).then_some(meaning)
    })
}

/// Whether a text has a name between backticks.
fn is_named(text: &str, name: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(|code| code == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_share_a_row_share_its_meaning() {
        let meaning_of = |member| meaning(".dump Why", "suspects", member);
        assert_eq!(meaning_of("score"), Some("what the suspects are ranked by"));
        assert_eq!(meaning_of("file"), meaning_of("rank"));
        assert_eq!(meaning_of("diagnoses.text"), Some("a sentence"));
        assert_eq!(meaning_of("text"), None);
        assert_eq!(meaning(".dump Process", "suspects", "score"), None);
    }
}
