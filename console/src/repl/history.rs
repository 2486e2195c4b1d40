//! The lines that were typed, of all sessions.

use std::{io, path::PathBuf};

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

/// Lines that are remembered.
const LINES: usize = 10_000;

/// A history in a file that several consoles share. A line that is repeated counts once, an empty one
/// not at all, and spaces around a line are dropped.
pub(super) struct LineHistory(FileBackedHistory);

impl LineHistory {
    /// The history in the platform's folder for a program's data; none where folder not found.
    pub(super) fn open() -> Option<Result<LineHistory>> {
        let file: PathBuf = dirs::data_local_dir()?.join("handlescope").join("history.txt");
        Some(FileBackedHistory::with_file(LINES, file).map(LineHistory))
    }
}

impl History for LineHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let command_line = item.command_line.trim().to_owned();
        // An empty line is one that the file does not take.
        self.0.save(HistoryItem { command_line, ..item })
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.0.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.0.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.0.search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.0.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.0.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.0.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.0.session()
    }
}

#[cfg(test)]
mod tests {
    use reedline::SearchDirection;

    use super::*;

    #[test]
    fn lines_are_kept_trimmed_and_once_and_blank_ones_not_at_all() {
        let mut history = LineHistory(FileBackedHistory::new(10).expect("a history"));
        for line in [" .list ", ".list", "", "  ", ".list", ".quit"] {
            history.save(HistoryItem::from_command_line(line)).expect("saved");
        }
        let all = history.search(SearchQuery::everything(SearchDirection::Forward, None));
        let lines: Vec<String> =
            all.expect("all lines").into_iter().map(|item| item.command_line).collect();
        assert_eq!(lines, [".list", ".quit"]);
    }
}
