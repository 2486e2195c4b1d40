//! Pages of limited size, made of the rows of an answer.

use serde_json::{Map, Value, json};

use super::brief::frames_as_lines;
use super::cut::{cut_value, shorten_warnings};
use super::error::ToolError;
use super::text;
use super::window::{DocumentPart, MemberNames, PagePosition, STACKS, WindowRow, collect_stacks};

/// The largest answer that may be requested, bytes.
pub const MAX_BYTES: usize = 128 << 10;

/// Part of an answer, one byte in this many, for what stands beside its rows, and for its warnings.
const MAX_SHARE_BESIDE: usize = 4;

/// Bytes of a message around an answer.
const FRAME_BYTES: usize = 200;

/// The rows that a page may have, and what stands beside them.
pub struct AnswerPage {
    part: DocumentPart,
    names: MemberNames,
    at: PagePosition,
    /// Number of all rows.
    total: usize,
}

impl AnswerPage {
    /// Builds the answer for the page at a position, from what was read for it.
    pub fn new(
        part: DocumentPart,
        names: MemberNames,
        at: PagePosition,
        total: usize,
    ) -> AnswerPage {
        AnswerPage { part, names, at, total }
    }

    /// Changes what stands beside the rows, and the rows.
    pub fn map(
        mut self,
        document: impl FnOnce(&mut Map<String, Value>),
        mut row: impl FnMut(&mut Value),
    ) -> AnswerPage {
        document(&mut self.part.document);
        self.part.rows.iter_mut().for_each(|of_part| row(&mut of_part.value));
        self
    }

    /// Builds a page of as many rows as fit in this many bytes as they are sent, with the stacks they refer to. `next`
    /// makes the call of the next page from its position.
    ///
    /// # Errors
    /// When not even a page without anything in its row fits: the call of the next page takes all of it.
    pub fn page(
        &self,
        bytes: usize,
        warnings: &[String],
        next: impl Fn(PagePosition) -> Value,
    ) -> Result<Value, ToolError> {
        let mut room = bytes;
        loop {
            let page = self.filled(room, warnings, &next);
            let sent = self.sent_bytes(&page);
            if sent <= bytes {
                return Ok(page);
            }
            if room == 0 {
                return Err(ToolError::PageTooSmall { least: sent });
            }
            room = room.saturating_sub(sent - bytes);
        }
    }

    /// Bytes of a page as it is sent: structured with its text, or all of it as text to older clients.
    fn sent_bytes(&self, page: &Value) -> usize {
        let as_text = size(&page.to_string().into());
        let text = text::of_answer(page, self.names.rows);
        let mut structured = page.clone();
        text::take(&mut structured, self.names.rows);
        as_text.max(size(&structured) + size(&text.into())) + FRAME_BYTES
    }

    /// A page whose rows, and what stands beside them, take about so many bytes.
    fn filled(
        &self,
        room: usize,
        warnings: &[String],
        next: impl Fn(PagePosition) -> Value,
    ) -> Value {
        let AnswerPage { part, names, at, total } = self;
        let mut document = Value::Object(part.document.clone());
        let most = room / MAX_SHARE_BESIDE;
        let mut is_cut = cut_value(&mut document, |value| 2 * size(value) <= most);
        let mut warnings = shorten_warnings(warnings, most / 2);
        let beside = 2 * (size(&document) + size(&json!(warnings))) + size(&next(*at));
        let mut rows = Filling::new(self, room.saturating_sub(beside));
        part.rows.iter().all(|row| rows.add(row));
        let Filling { page, stacks, position, cut, .. } = rows;
        if let Some(row) = cut {
            is_cut = true;
            let said = format!(
                "{} {row} was cut to fit; ask for less of it, or raise max_bytes",
                names.rows
            );
            warnings.push(said);
        }
        let next = (position.row < *total && !page.is_empty()).then(|| next(position));
        if let Some(document) = document.as_object_mut() {
            document.insert(names.rows.to_owned(), page.into());
            if !stacks.is_empty() {
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
        answer
    }
}

/// Rows that are put on a page.
struct Filling<'a> {
    names: MemberNames,
    all_stacks: Option<&'a Map<String, Value>>,
    room: usize,
    page: Vec<Value>,
    stacks: Map<String, Value>,
    /// Position of the next page.
    position: PagePosition,
    /// Number of the row that was cut.
    cut: Option<usize>,
}

impl<'a> Filling<'a> {
    fn new(answer: &'a AnswerPage, room: usize) -> Self {
        let AnswerPage { part, names, at, .. } = answer;
        let (page, stacks) = (Vec::new(), Map::new());
        let all_stacks = part.stacks.as_ref();
        Filling { names: *names, all_stacks, room, page, stacks, position: *at, cut: None }
    }

    /// Adds a row, or as much of the first as fits, and returns whether another one may follow.
    fn add(&mut self, row: &WindowRow) -> bool {
        let PagePosition { row: number, element } = self.position;
        let list = self.names.list.filter(|list| row.value.get(*list).is_some_and(Value::is_array));
        let mut shown = self.shown(row.value.clone());
        let held =
            list.map_or(0, |list| list_of(&mut shown.row, list).map_or(0, |list| list.len()));
        let rest = list.map_or(0, |_| row.length.saturating_sub(element));
        let is_whole = held == rest && shown.size() <= self.room;
        if !is_whole && !self.page.is_empty() {
            return false;
        }
        let mut is_cut = row.is_cut;
        if !is_whole {
            let taken = list.map_or(0, |list| self.take(&mut shown, list));
            if taken > 0 && taken < rest {
                self.position.element += taken;
                self.push(shown);
                return false;
            }
            if taken == 0 {
                self.cut(&mut shown);
                is_cut = true;
            }
        }
        self.cut = self.cut.or(is_cut.then_some(number));
        self.position = PagePosition { row: number + 1, element: 0 };
        self.push(shown);
        true
    }

    fn push(&mut self, shown: RowWithStacks) {
        self.room = self.room.saturating_sub(shown.size());
        self.page.push(shown.row);
        self.stacks.extend(shown.stacks);
    }

    /// A row with the stacks that came with no row before.
    fn shown(&self, row: Value) -> RowWithStacks {
        let mut numbers = Vec::new();
        collect_stacks(&row, &mut numbers);
        let stacks = numbers
            .into_iter()
            .map(|number| number.to_string())
            .filter(|name| !self.stacks.contains_key(name))
            .filter_map(|name| {
                let mut stack = self.all_stacks?.get(&name)?.clone();
                frames_as_lines(&mut stack);
                Some((name, stack))
            });
        let stacks = stacks.collect();
        RowWithStacks { row, stacks }
    }

    /// Leaves as many elements of the list as there is room for, and returns their number; 0 where not even one fits.
    fn take(&self, shown: &mut RowWithStacks, list: &str) -> usize {
        let Some(elements) = list_of(&mut shown.row, list).map(std::mem::take) else { return 0 };
        let row = shown.row.clone();
        let with = |count: usize| {
            let mut row = row.clone();
            list_of(&mut row, list)?.extend_from_slice(elements.get(..count)?);
            Some(self.shown(row))
        };
        let (mut fitting, mut too_many) = (0, elements.len() + 1);
        while fitting + 1 < too_many {
            let middle = fitting.midpoint(too_many);
            if with(middle).is_some_and(|shown| shown.size() <= self.room) {
                fitting = middle;
            } else {
                too_many = middle;
            }
        }
        let kept = if fitting > 0 { fitting } else { elements.len() };
        with(kept).into_iter().for_each(|taken| *shown = taken);
        fitting
    }

    /// Cuts a row, and the stacks that it refers to, until there is room, or nothing of it is left.
    fn cut(&self, shown: &mut RowWithStacks) {
        // A call that is cut cannot be sent.
        if let Some(row) = shown.row.as_object_mut() {
            row.remove("next");
        }
        let stacks = std::mem::take(&mut shown.stacks);
        cut_value(&mut shown.row, |row| size_of_row(row) <= self.room);
        shown.stacks = stacks;
        if shown.size() > self.room {
            shown.stacks.values_mut().for_each(|stack| {
                cut_value(stack, |stack| 4 * size(stack) <= self.room);
            });
        }
        if shown.size() > self.room {
            shown.stacks.clear();
        }
    }
}

/// A row with its stacks.
struct RowWithStacks {
    row: Value,
    stacks: Map<String, Value>,
}

impl RowWithStacks {
    fn size(&self) -> usize {
        let stacks = self.stacks.iter().map(|(name, stack)| {
            2 * (name.len() + 3) + size(stack) + text::of_stack(name, stack).len()
        });
        size_of_row(&self.row) + stacks.sum::<usize>()
    }
}

/// Bytes of a row as JSON and as text.
fn size_of_row(row: &Value) -> usize {
    let has_text = row.get(text::TEXT).is_some();
    size(row) + if has_text { 0 } else { text::of_row(row).len() }
}

/// Bytes of JSON, with a comma.
fn size(value: &Value) -> usize {
    value.to_string().len() + 1
}

fn list_of<'r>(row: &'r mut Value, list: &str) -> Option<&'r mut Vec<Value>> {
    row.get_mut(list)?.as_array_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde::de::DeserializeSeed as _;

    use super::super::window::PageWindow;

    const NAMES: MemberNames = MemberNames { rows: "rows", list: Some("events") };

    /// The page of a document at a position.
    fn page_of(
        document: &Value,
        at: PagePosition,
        rows: usize,
        bytes: usize,
    ) -> Result<Value, ToolError> {
        let window = PageWindow { names: NAMES, first: at, count: rows, counts: None };
        let text = document.to_string();
        let part = window.deserialize(&mut serde_json::Deserializer::from_str(&text))?;
        let total = part.total;
        let warnings = vec!["what limits the answer ".repeat(9); 9];
        let warnings = if at == PagePosition::default() { &warnings[..] } else { &[] };
        let next = |at: PagePosition| json!([at.row, at.element]);
        AnswerPage::new(part, NAMES, at, total).page(bytes, warnings, next)
    }

    fn document_of(rows: &[Value]) -> Value {
        json!({"rows": rows, "totals": {"n": 1}})
    }

    /// All pages of a document, with limits on each.
    fn pages_of(document: &Value, rows: usize, bytes: usize) -> Vec<Value> {
        let (mut pages, mut at) = (Vec::new(), PagePosition::default());
        loop {
            let page = page_of(document, at, rows, bytes).expect("a page");
            assert!(page.to_string().len() <= bytes, "{page}");
            let next = page.get("next").cloned();
            pages.push(page);
            let Some(next) = next else { return pages };
            let number = |value: &Value| value.as_u64().expect("a number") as usize;
            let before = at;
            at = PagePosition { row: number(&next[0]), element: number(&next[1]) };
            assert!((before.row, before.element) < (at.row, at.element), "{next}");
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
        document["stacks"] = json!({"0": ["a.exe!f"], "7": ["unused"]});
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
    fn a_row_that_does_not_fit_is_cut_with_a_mark_and_the_next_follows() {
        let names: Vec<Value> = (0..20_000).map(Value::from).collect();
        let long = "x".repeat(1 << 20);
        let next = json!({"tool": "objects", "arguments": {"name": "x".repeat(90)}});
        for large in [
            json!({"id": 1, "names": names}),
            json!({"id": 1, "text": long}),
            json!({"id": 1, "text": "x".repeat(9 << 10), "next": next}),
            json!({"id": 1, "inner": {"names": names, "text": long}}),
            json!({"id": 1, "create_stack": 4, "text": "x".repeat(500)}),
            json!({"id": 1, "events": [{"text": long}, {"text": long}]}),
            (0..3000).map(|n| (format!("column{n}"), json!(n))).collect(),
        ] {
            let mut document = document_of(&[json!({"id": 0}), large.clone(), json!({"id": 2})]);
            let frames: Vec<String> = (0..900).map(|n| format!("a.exe!function{n}")).collect();
            document["stacks"] = json!({"4": frames});
            for bytes in [1 << 10, 3000, 16 << 10] {
                let pages = pages_of(&document, 10, bytes);
                let rows: Vec<Value> = pages.iter().flat_map(rows_of).collect();
                assert_eq!(
                    (rows.first(), rows.last()),
                    (Some(&json!({"id": 0})), Some(&json!({"id": 2})))
                );
                let is_cut = |page: &&Value| {
                    page["cut"] == true && page["warnings"].to_string().contains("was cut")
                };
                assert!(pages.iter().any(|page| is_cut(&page)), "{bytes}");
                let nexts = rows.iter().filter_map(|row| row.get("next"));
                assert!(nexts.clone().all(|kept| *kept == next), "a call as a whole or not at all");
            }
        }
    }

    #[test]
    fn a_page_is_an_error_only_where_its_next_call_does_not_fit() {
        let rows: Vec<Value> = (0..9).map(|n| json!({"n": n, "text": "x".repeat(300)})).collect();
        let window =
            PageWindow { names: NAMES, first: PagePosition::default(), count: 9, counts: None };
        let part = window.deserialize(document_of(&rows)).expect("a part");
        let answer = AnswerPage::new(part, NAMES, PagePosition::default(), 9);
        let next = |_| json!({"tool": "sql", "arguments": {"query": "x".repeat(2000)}});
        let error = answer.page(4000, &[], next).expect_err("too small").to_string();
        let least = error.split(' ').find_map(|word| word.parse::<usize>().ok()).expect("a size");
        assert!(answer.page(least, &[], next).is_ok(), "{error}");
        assert!(answer.page(least - 1, &[], next).is_err(), "{error}");
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
}
