//! Cuts a document down to an answer of limited size.

use serde_json::{Map, Value, json};

use super::brief::frames_as_lines;
use super::error::ToolError;
use super::text;

/// The largest answer that may be requested, bytes.
pub(super) const MAX_BYTES: usize = 128 << 10;

/// Part of an answer, one byte in this many, for everything outside the rows: totals, traces, warnings.
const MAX_SHARE_BESIDE: usize = 4;

/// Bytes of an answer around its rows.
const FRAME_BYTES: usize = 320;

/// Warnings of one answer, and characters of each.
const MAX_WARNINGS: usize = 20;
const MAX_WARNING_LENGTH: usize = 400;

/// Lengths that the lists of a row are cut to, in turn, until the row fits.
const LIST_LENGTHS: [usize; 4] = [1000, 100, 10, 1];

/// The member with the stacks that rows refer to.
pub(super) const STACKS: &str = "stacks";

/// Position of a page: rows before it, and elements of the list of its first row that were there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) row: usize,
    pub(super) element: usize,
}

/// Names of members of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    /// Member of the document with the rows.
    pub(super) rows: &'static str,
    /// List of a row that may be continued on the next page.
    pub(super) list: Option<&'static str>,
}

/// A document whose rows were taken out.
pub(super) struct Answer {
    /// Everything but the rows.
    document: Map<String, Value>,
    names: Names,
    /// The rows from that of the page's position on.
    rows: Vec<Value>,
    stacks: Option<Map<String, Value>>,
    at: Position,
    /// Number of all rows.
    total: usize,
}

impl Answer {
    /// Builds the answer from a document with all rows, for the page at a position.
    pub(super) fn of(document: Map<String, Value>, names: Names, at: Position) -> Answer {
        let total = document.get(names.rows).and_then(Value::as_array).map_or(0, Vec::len);
        Answer::of_window(document, names, at, at.row, total)
    }

    /// Builds the answer from a document with some of the rows, the first `held` of which belong to pages before this
    /// one.
    pub(super) fn of_window(
        mut document: Map<String, Value>,
        names: Names,
        at: Position,
        held: usize,
        total: usize,
    ) -> Answer {
        let mut rows = match document.remove(names.rows) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        rows.drain(..held.min(rows.len()));
        let stacks = match document.remove(STACKS) {
            Some(Value::Object(stacks)) => Some(stacks),
            _ => None,
        };
        Answer { document, names, rows, stacks, at, total }
    }

    /// Changes what stands beside the rows, and the rows that a page of this size may have.
    pub(super) fn map(
        mut self,
        rows: usize,
        document: impl FnOnce(&mut Map<String, Value>),
        row: impl FnMut(&mut Value),
    ) -> Answer {
        document(&mut self.document);
        self.rows.truncate(rows);
        self.rows.iter_mut().for_each(row);
        self
    }

    /// Builds a page of as many rows as fit in this many bytes of JSON and text, with the stacks they refer to. `next`
    /// makes the call of the next page from its position.
    ///
    /// # Errors
    /// When not even one row fits, nor elements of its list.
    pub(super) fn page(
        self,
        bytes: usize,
        mut warnings: Vec<String>,
        next: impl Fn(Position) -> Value,
    ) -> Result<Value, ToolError> {
        let Answer { document, names, rows, stacks: all, at, total } = self;
        let (has_stacks, all) = (all.is_some(), all.unwrap_or_default());
        let mut document = Value::Object(document);
        shorten_warnings(&mut warnings);
        let mut is_cut = fitted(&mut document, bytes / MAX_SHARE_BESIDE).unwrap_or(true);
        let beside = size(&document) + size(&json!(warnings)) + FRAME_BYTES;
        let mut room = bytes.saturating_sub(beside).max(bytes / 2);
        let (mut page, mut stacks) = (Vec::new(), Map::new());
        let mut position = at;
        for mut row in rows {
            let length =
                names.list.and_then(|list| list_of(&mut row, list)).map_or(0, |list| list.len());
            let mut shown = Shown::of(continued(row, names, position.element), &all, &stacks);
            let is_whole = shown.size() <= room;
            if !is_whole && page.is_empty() {
                let taken = names.list.map(|list| shown.take(list, &all, room)).unwrap_or_default();
                if taken == 0 {
                    shown.cut(&all, room)?;
                    is_cut = true;
                    warnings.push(format!(
                        "lists of {} {} were cut; sql over the table events has all of them",
                        names.rows, position.row
                    ));
                } else if position.element + taken < length {
                    position.element += taken;
                    page.push(shown.row);
                    stacks.extend(shown.stacks);
                    break;
                }
            } else if !is_whole {
                break;
            }
            room = room.saturating_sub(shown.size());
            page.push(shown.row);
            stacks.extend(shown.stacks);
            position = Position { row: position.row + 1, element: 0 };
        }
        let next = (position.row < total && !page.is_empty()).then(|| next(position));
        if let Some(document) = document.as_object_mut() {
            document.insert(names.rows.to_owned(), page.into());
            if has_stacks && !stacks.is_empty() {
                document.insert(STACKS.to_owned(), stacks.into());
            }
        }
        let mut answer = json!({"document": document, "total": total});
        if let Some(answer) = answer.as_object_mut() {
            let cut = is_cut.then(|| true.into());
            let warnings = (!warnings.is_empty()).then(|| warnings.into());
            let members = [("next", next), ("cut", cut), ("warnings", warnings)];
            let members = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
            answer.extend(members.map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(answer)
    }
}

/// Bytes of JSON, with a comma.
fn size(value: &Value) -> usize {
    value.to_string().len() + 1
}

fn list_of<'r>(row: &'r mut Value, list: &str) -> Option<&'r mut Vec<Value>> {
    row.get_mut(list)?.as_array_mut()
}

/// The rest of a row whose list began on a page before.
fn continued(mut row: Value, names: Names, element: usize) -> Value {
    let Some(list) = names.list.filter(|_| element > 0) else { return row };
    if let Some(elements) = list_of(&mut row, list) {
        elements.drain(..element.min(elements.len()));
    }
    if let Some(row) = row.as_object_mut() {
        row.insert(format!("{list}_before"), element.into());
    }
    row
}

/// A row with the stacks that came with no row before.
struct Shown {
    row: Value,
    stacks: Map<String, Value>,
}

impl Shown {
    fn of(row: Value, all: &Map<String, Value>, before: &Map<String, Value>) -> Shown {
        let mut numbers = Vec::new();
        collect_stacks(&row, &mut numbers);
        let new = numbers.into_iter().map(|number| number.to_string());
        let new = new.filter(|name| !before.contains_key(name));
        let stacks = new.filter_map(|name| {
            let mut stack = all.get(&name)?.clone();
            frames_as_lines(&mut stack);
            Some((name, stack))
        });
        let stacks = stacks.collect();
        Shown { row, stacks }
    }

    fn size(&self) -> usize {
        let has_text = self.row.get(text::TEXT).is_some();
        let text = if has_text { 0 } else { text::of_row(&self.row).len() };
        let json = size(&self.row) + text;
        let stacks = self.stacks.iter().map(|(name, stack)| {
            2 * (name.len() + 3) + size(stack) + text::of_stack(name, stack).len()
        });
        json + stacks.sum::<usize>()
    }

    /// Leaves as many elements of the list as there is room for, and returns their number.
    fn take(&mut self, list: &str, all: &Map<String, Value>, room: usize) -> usize {
        let Some(elements) = list_of(&mut self.row, list).map(std::mem::take) else { return 0 };
        let fits = |count: usize| {
            let mut row = self.row.clone();
            list_of(&mut row, list)?.extend_from_slice(elements.get(..count)?);
            let shown = Shown::of(row, all, &Map::new());
            (shown.size() <= room).then_some(shown)
        };
        let (mut fitting, mut too_many) = (0, elements.len() + 1);
        while fitting + 1 < too_many {
            let middle = fitting.midpoint(too_many);
            match fits(middle) {
                Some(_) => fitting = middle,
                None => too_many = middle,
            }
        }
        match fits(fitting).filter(|_| fitting > 0) {
            Some(shown) => *self = shown,
            None => {
                if let Some(list) = list_of(&mut self.row, list) {
                    *list = elements;
                }
                return 0;
            }
        }
        fitting
    }

    /// Cuts lists, of the row first, until there is room.
    fn cut(&mut self, all: &Map<String, Value>, room: usize) -> Result<(), ToolError> {
        for length in LIST_LENGTHS {
            cut_lists(&mut self.row, length);
            *self = Shown::of(self.row.take(), all, &Map::new());
            if self.size() <= room {
                return Ok(());
            }
            self.stacks.values_mut().for_each(|stack| cut_lists(stack, length));
            if self.size() <= room {
                return Ok(());
            }
        }
        Err(ToolError::RowTooLarge { most: room })
    }
}

fn collect_stacks(value: &Value, numbers: &mut Vec<u64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_stacks(item, numbers)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Number(number) if name.ends_with("stack") => {
                        numbers.extend(number.as_u64());
                    }
                    Value::Array(items) if name.ends_with(STACKS) => {
                        numbers.extend(items.iter().filter_map(Value::as_u64));
                    }
                    value => collect_stacks(value, numbers),
                }
            }
        }
        _ => {}
    }
}

/// Cuts the lists in a value until it has at most `most` bytes, and returns whether it had to;
/// `None` when that is not enough.
fn fitted(value: &mut Value, most: usize) -> Option<bool> {
    if size(value) <= most {
        return Some(false);
    }
    let mut lengths = LIST_LENGTHS.into_iter();
    let fits = lengths.any(|length| {
        cut_lists(value, length);
        size(value) <= most
    });
    fits.then_some(true)
}

fn cut_lists(value: &mut Value, length: usize) {
    match value {
        Value::Array(items) => {
            items.truncate(length);
            items.iter_mut().for_each(|item| cut_lists(item, length));
        }
        Value::Object(members) => members.values_mut().for_each(|value| cut_lists(value, length)),
        _ => {}
    }
}

/// Leaves as many warnings as an answer can take, and says how many there were.
fn shorten_warnings(warnings: &mut Vec<String>) {
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    warnings.truncate(MAX_WARNINGS);
    for warning in warnings.iter_mut() {
        if let Some((at, _)) = warning.char_indices().nth(MAX_WARNING_LENGTH) {
            warning.truncate(at);
            warning.push('…');
        }
    }
    if more > 0 {
        warnings.push(format!("and {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names { rows: "rows", list: Some("events") };

    fn document_of(rows: &[Value]) -> Map<String, Value> {
        let document = json!({"rows": rows, "totals": {"n": 1}});
        document.as_object().cloned().unwrap_or_default()
    }

    /// All pages of a document, with limits on each.
    fn pages_of(document: &Map<String, Value>, rows: usize, bytes: usize) -> Vec<Value> {
        let (mut pages, mut at) = (Vec::new(), Position::default());
        loop {
            let next = |at: Position| json!([at.row, at.element]);
            let answer = Answer::of(document.clone(), NAMES, at);
            let page = answer.map(rows, |_| {}, |_| {}).page(bytes, Vec::new(), next);
            let page = page.expect("a page");
            let next = page.get("next").cloned();
            pages.push(page);
            let Some(next) = next else { return pages };
            let number = |value: &Value| value.as_u64().expect("a number") as usize;
            at = Position { row: number(&next[0]), element: number(&next[1]) };
        }
    }

    fn rows_of(page: &Value) -> Vec<Value> {
        page["document"]["rows"].as_array().expect("rows").clone()
    }

    #[test]
    fn pages_follow_each_other_until_all_rows_were_there() {
        let rows: Vec<Value> = (0..7).map(|n| json!({"n": n})).collect();
        let pages = pages_of(&document_of(&rows), 3, 16 << 10);
        assert_eq!(pages.len(), 3);
        for page in &pages {
            assert_eq!((&page["total"], &page["document"]["totals"]["n"]), (&json!(7), &json!(1)));
        }
        assert_eq!(pages.iter().flat_map(rows_of).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn no_page_is_larger_than_the_limit() {
        let rows: Vec<Value> = (0..100).map(|n| json!({"n": n, "text": "x".repeat(500)})).collect();
        let pages = pages_of(&document_of(&rows), 100, 4 << 10);
        assert!(pages.len() > 20, "{}", pages.len());
        for page in &pages {
            let text = text::of_answer(page, "rows");
            assert!(page.to_string().len() + text.len() <= 4 << 10, "{page}");
        }
        assert_eq!(pages.iter().flat_map(rows_of).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn a_row_with_many_events_goes_on_on_the_next_page() {
        let events: Vec<Value> = (0..900).map(|n| json!({"time_ns": n, "stack": n % 5})).collect();
        let mut document = document_of(&[json!({"id": 1, "events": events}), json!({"id": 2})]);
        document.insert("stacks".to_owned(), json!({"0": ["a.exe!f"], "7": ["unused"]}));
        let pages = pages_of(&document, 10, 8 << 10);
        let mut seen = Vec::new();
        for row in pages.iter().flat_map(rows_of).filter(|row| row["id"] == 1) {
            assert_eq!(row["events_before"].as_u64().unwrap_or_default(), seen.len() as u64);
            seen.extend(row["events"].as_array().expect("events").clone());
        }
        assert_eq!(seen, events);
        assert_eq!(pages[0]["document"]["stacks"], json!({"0": ["a.exe!f"]}));
        assert_eq!(rows_of(pages.last().expect("a page")).last(), Some(&json!({"id": 2})));
    }

    #[test]
    fn lists_inside_a_row_that_is_too_large_are_cut_and_a_long_text_is_an_error() {
        let names: Vec<Value> = (0..2000).map(Value::from).collect();
        let page =
            pages_of(&document_of(&[json!({"id": 1, "names": names})]), 10, 4 << 10).remove(0);
        assert_eq!(page["cut"], json!(true));
        assert_eq!(rows_of(&page)[0]["names"].as_array().map(Vec::len), Some(100));
        assert!(
            page["warnings"][0].as_str().is_some_and(|text| text.contains("were cut")),
            "{page}"
        );
        let long = document_of(&[json!({"text": "x".repeat(8 << 10)})]);
        let error = Answer::of(long, NAMES, Position::default());
        let error = error.page(4 << 10, Vec::new(), |_| Value::Null).expect_err("too large");
        assert!(error.to_string().contains("select fewer columns"));
    }

    #[test]
    fn stacks_are_those_that_rows_refer_to() {
        let row = json!({"create_stack": 1, "keys": {"closestack": 2}, "stack_filter": 8,
            "diagnoses": [{"close_stacks": [3, 4]}], "events": [{"stack": 5}, {"stack": null}]});
        let mut numbers = Vec::new();
        collect_stacks(&row, &mut numbers);
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn many_long_warnings_become_few_short_ones() {
        let mut warnings = vec!["ä".repeat(1000); 100];
        shorten_warnings(&mut warnings);
        assert_eq!(
            (warnings.len(), warnings[0].chars().count()),
            (MAX_WARNINGS + 1, MAX_WARNING_LENGTH + 1)
        );
        assert_eq!(warnings[MAX_WARNINGS], "and 80 more");
    }
}
