//! Cuts a document down to an answer of limited size.

use serde_json::{Map, Value, json};

use super::error::ToolError;

/// The largest answer, bytes of JSON.
const MAX_BYTES: usize = 128 << 10;

/// Part of [`MAX_BYTES`] for everything outside the rows: totals, caveats, files, warnings.
const MAX_BESIDE: usize = 32 << 10;

/// Warnings of one answer, and characters of each.
const MAX_WARNINGS: usize = 40;
const MAX_WARNING_LENGTH: usize = 400;

/// Lengths that the lists of a row are cut to, in turn, until the row fits.
const LIST_LENGTHS: [usize; 4] = [1000, 100, 10, 1];

/// The member with the stacks that rows refer to.
const STACKS: &str = "stacks";

/// A document whose rows were taken out.
pub(super) struct Answer {
    /// Everything but the rows.
    document: Map<String, Value>,
    /// Name of the member with the rows.
    member: &'static str,
    /// The rows from `skip` on.
    rows: Vec<Value>,
    stacks: Option<Map<String, Value>>,
    skip: usize,
    /// Number of all rows.
    total: usize,
}

impl Answer {
    /// Builds the answer from a document whose `member` holds all rows, without the first `skip`.
    pub(super) fn of(document: Map<String, Value>, member: &'static str, skip: usize) -> Answer {
        let total = document.get(member).and_then(Value::as_array).map_or(0, Vec::len);
        Answer::of_window(document, member, skip, skip, total)
    }

    /// Builds the answer from a document whose `member` holds some of the rows, the first `held` of
    /// which belong to pages before this one. The page begins after `skip` rows.
    pub(super) fn of_window(
        mut document: Map<String, Value>,
        member: &'static str,
        skip: usize,
        held: usize,
        total: usize,
    ) -> Answer {
        let mut rows = match document.remove(member) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        rows.drain(..held.min(rows.len()));
        let stacks = match document.remove(STACKS) {
            Some(Value::Object(stacks)) => Some(stacks),
            _ => None,
        };
        Answer { document, member, rows, stacks, skip, total }
    }

    /// Builds a page of as many rows as fit, at most `top`, with the stacks they refer to and the
    /// cursor of the next page.
    ///
    /// # Errors
    /// When not even one row fits.
    pub(super) fn page(
        self,
        top: usize,
        mut warnings: Vec<String>,
        cursor: impl Fn(usize) -> String,
    ) -> Result<Value, ToolError> {
        let Answer { document, member, rows, stacks: all, skip, total } = self;
        let (has_stacks, all) = (all.is_some(), all.unwrap_or_default());
        let mut document = Value::Object(document);
        let mut is_cut = fitted(&mut document, MAX_BESIDE).unwrap_or(true);
        shorten_warnings(&mut warnings);
        let mut room = MAX_BYTES - MAX_BESIDE.max(size(&document));
        let (mut page, mut stacks) = (Vec::new(), Map::new());
        for row in rows.into_iter().take(top) {
            let mut shown = Shown::of(row, &all, &stacks);
            if page.is_empty() && shown.size() > room {
                shown.cut(&all, room)?;
                is_cut = true;
                warnings.push(format!(
                    "note: lists of {member} {skip} were cut; use sql over events for all of them"
                ));
            }
            let Some(left) = room.checked_sub(shown.size()) else { break };
            room = left;
            page.push(shown.row);
            stacks.extend(shown.stacks);
        }
        let behind = skip + page.len();
        let next = (behind < total && !page.is_empty()).then(|| cursor(behind));
        if let Some(document) = document.as_object_mut() {
            document.insert(member.to_owned(), page.into());
            if has_stacks {
                document.insert(STACKS.to_owned(), stacks.into());
            }
        }
        let truncated = is_cut || next.is_some();
        Ok(json!({
            "document": document,
            "total": total,
            "next": next,
            "truncated": truncated,
            "warnings": warnings,
        }))
    }
}

/// Bytes of JSON, with a comma.
fn size(value: &Value) -> usize {
    value.to_string().len() + 1
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
        let stacks = new.filter_map(|name| Some((name.clone(), all.get(&name)?.clone()))).collect();
        Shown { row, stacks }
    }

    fn size(&self) -> usize {
        let stacks = self.stacks.iter().map(|(name, stack)| name.len() + 3 + size(stack));
        size(&self.row) + stacks.sum::<usize>()
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
        Err(ToolError::RowTooLarge { most: MAX_BYTES })
    }
}

fn collect_stacks(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_stacks(item, found)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Number(number) if name.ends_with("stack") => {
                        found.extend(number.as_u64());
                    }
                    Value::Array(numbers) if name.ends_with(STACKS) => {
                        found.extend(numbers.iter().filter_map(Value::as_u64));
                    }
                    value => collect_stacks(value, found),
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
        warnings.push(format!("note: and {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document_of(rows: &[Value]) -> Map<String, Value> {
        let document = json!({"rows": rows, "totals": {"n": 1}});
        document.as_object().cloned().unwrap_or_default()
    }

    fn page_of(answer: Answer, top: usize) -> Value {
        answer.page(top, Vec::new(), |skip| skip.to_string()).expect("a page")
    }

    #[test]
    fn pages_follow_each_other_until_all_rows_were_there() {
        let rows: Vec<Value> = (0..7).map(|n| json!({"n": n})).collect();
        let (mut seen, mut skip) = (Vec::new(), 0);
        loop {
            let page = page_of(Answer::of(document_of(&rows), "rows", skip), 3);
            assert_eq!((&page["total"], &page["document"]["totals"]["n"]), (&json!(7), &json!(1)));
            assert_eq!(page["truncated"], json!(!page["next"].is_null()));
            seen.extend(page["document"]["rows"].as_array().expect("rows").clone());
            let Some(next) = page["next"].as_str() else { break };
            skip = next.parse().expect("a number");
        }
        assert_eq!(seen, rows);
    }

    #[test]
    fn no_page_is_larger_than_the_limit() {
        let rows: Vec<Value> =
            (0..100).map(|n| json!({"n": n, "text": "x".repeat(5000)})).collect();
        let page = page_of(Answer::of(document_of(&rows), "rows", 0), 100);
        assert!(page.to_string().len() <= MAX_BYTES);
        let shown = page["document"]["rows"].as_array().expect("rows").len();
        assert!((10..100).contains(&shown), "{shown}");
        assert_eq!(page["next"], json!(shown.to_string()));
    }

    #[test]
    fn a_row_that_is_too_large_loses_elements_of_its_lists_and_says_so() {
        let events: Vec<Value> = (0..9000).map(|n| json!({"time_ns": n, "stack": n % 5})).collect();
        let mut document = document_of(&[json!({"id": 1, "events": events}), json!({"id": 2})]);
        document.insert("stacks".to_owned(), json!({"0": [], "7": ["unused"]}));
        let page = page_of(Answer::of(document, "rows", 0), 10);
        assert!(page.to_string().len() <= MAX_BYTES);
        let row = &page["document"]["rows"][0];
        assert_eq!(
            (&row["id"], row["events"].as_array().expect("events").len()),
            (&json!(1), 1000)
        );
        assert_eq!(page["document"]["stacks"], json!({"0": []}));
        let deep: Vec<Value> = (0..9000).map(|n| json!({"module": null, "rva": n})).collect();
        let mut document = document_of(&[json!({"id": 1, "create_stack": 7})]);
        document.insert("stacks".to_owned(), json!({"7": deep}));
        let page_of_deep = page_of(Answer::of(document, "rows", 0), 10);
        let frames = page_of_deep["document"]["stacks"]["7"].as_array().expect("frames").len();
        assert_eq!((frames, &page_of_deep["truncated"]), (1000, &json!(true)));
        assert_eq!(page["truncated"], json!(true));
        assert!(
            page["warnings"][0].as_str().is_some_and(|note| note.contains("were cut")),
            "{page}"
        );
        let one = document_with_text();
        let error = Answer::of(one, "rows", 0).page(1, Vec::new(), |_| String::new());
        assert!(error.expect_err("too large").to_string().contains("select fewer columns"));
    }

    fn document_with_text() -> Map<String, Value> {
        document_of(&[json!({"text": "x".repeat(MAX_BYTES)})])
    }

    #[test]
    fn stacks_are_those_that_rows_refer_to() {
        let row = json!({"create_stack": 1, "keys": {"closestack": 2}, "stack_filter": 8,
            "diagnoses": [{"close_stacks": [3, 4]}], "events": [{"stack": 5}, {"stack": null}]});
        let mut found = Vec::new();
        collect_stacks(&row, &mut found);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn many_long_warnings_become_few_short_ones() {
        let mut warnings = vec!["ä".repeat(1000); 100];
        shorten_warnings(&mut warnings);
        assert_eq!(
            (warnings.len(), warnings[0].chars().count()),
            (MAX_WARNINGS + 1, MAX_WARNING_LENGTH + 1)
        );
        assert_eq!(warnings[MAX_WARNINGS], "note: and 60 more");
    }
}
