//! Completion inside a query: tables after `FROM`, columns of the tables that the query names, and SQL keywords.

use std::ops::Range;

use super::paths::starts_with;
use handlescope_sql::{HEX, NUMBER, Relation, Views};

/// Keywords worth completing; the first word of a pair represents both.
const KEYWORDS: &str = "\
    SELECT DISTINCT FROM JOIN LEFT ON USING WHERE AND OR NOT IN IS NULL LIKE ILIKE BETWEEN \
    CASE WHEN THEN ELSE END AS GROUP BY ALL HAVING ORDER ASC DESC LIMIT OFFSET UNION EXCEPT \
    INTERSECT WITH OVER PARTITION CAST COUNT SUM MIN MAX AVG MEDIAN COALESCE UNNEST EXPLAIN \
    INNER CROSS FULL RIGHT SEMI ANTI";

/// Returns the SQL keywords for completion and colouring.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    KEYWORDS.split(' ')
}

pub fn is_keyword(word: &str) -> bool {
    keywords().any(|known| known.eq_ignore_ascii_case(word))
}

/// Keywords before a table name.
const TABLE_FOLLOWS: [&str; 2] = ["FROM", "JOIN"];

/// Something that can be inserted at the cursor.
pub struct SqlCandidate {
    pub text: String,
    pub description: String,
}

impl SqlCandidate {
    fn new(text: impl Into<String>, description: impl Into<String>) -> SqlCandidate {
        SqlCandidate { text: text.into(), description: description.into() }
    }
}

/// Returns the word that ends at the cursor, and its completions. `query` is the whole query, so that tables named
/// after the cursor supply their columns, too.
pub fn candidates(query: &str, cursor: usize, views: &Views) -> (Range<usize>, Vec<SqlCandidate>) {
    let head = query.get(..cursor).unwrap_or(query);
    // A string literal is open, so no SQL word belongs here.
    if head.matches('\'').count() % 2 == 1 {
        return (head.len()..head.len(), Vec::new());
    }
    let start = head.rfind(|c| !is_word(c)).map_or(0, |index| index + last_len(head, index));
    let (before, word) = head.split_at(start);
    let names = QueryRelations::new(query, views);
    let mut candidates: Vec<SqlCandidate> = match (before.strip_suffix('.'), last_word(before)) {
        (Some(table), _) => names.columns_of(last_word(table).unwrap_or_default()),
        (None, Some(last)) if TABLE_FOLLOWS.iter().any(|word| word.eq_ignore_ascii_case(last)) => {
            relations(views)
        }
        _ if word.is_empty() && last_word(before).is_none() => keyword_candidates(),
        _ => [names.columns(), relations(views), keyword_candidates()]
            .into_iter()
            .flatten()
            .collect(),
    };
    candidates.retain(|candidate| starts_with(&candidate.text, word));
    (start..head.len(), candidates)
}

fn last_len(text: &str, index: usize) -> usize {
    text.get(index..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the last word of a text, ignoring spaces after it.
fn last_word(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let start = text.rfind(|c| !is_word(c)).map_or(0, |index| index + last_len(text, index));
    text.get(start..).filter(|word| !word.is_empty())
}

fn relations(views: &Views) -> Vec<SqlCandidate> {
    let relations = views.relations();
    relations.map(|relation| SqlCandidate::new(relation.name(), relation.doc())).collect()
}

fn keyword_candidates() -> Vec<SqlCandidate> {
    let functions = [(HEX, "a number like 0xC0"), (NUMBER, "the number of a text like 0xC0")];
    let functions = functions.map(|(name, meaning)| SqlCandidate::new(name, meaning));
    keywords().map(|word| SqlCandidate::new(word, "SQL")).chain(functions).collect()
}

/// The relations of a query, with the names they are used by.
struct QueryRelations<'q> {
    known: Vec<(&'q str, Relation<'q>)>,
    views: &'q Views,
}

impl<'q> QueryRelations<'q> {
    fn new(query: &'q str, views: &'q Views) -> QueryRelations<'q> {
        let words: Vec<&str> =
            query.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
        let mut known = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let Some(relation) = views.relation(word) else { continue };
            known.push((*word, relation));
            let behind = words.get(index + 1..).unwrap_or_default();
            let alias = match behind {
                [as_word, alias, ..] if as_word.eq_ignore_ascii_case("AS") => Some(alias),
                [alias, ..] => Some(alias),
                [] => None,
            };
            if let Some(alias) = alias.filter(|alias| !is_keyword(alias)) {
                known.push((alias, relation));
            }
        }
        QueryRelations { known, views }
    }

    /// Returns the columns of the relation with a name. If there is none, returns the columns of all relations, because
    /// columns are typed before the alias.
    fn columns_of(&self, name: &str) -> Vec<SqlCandidate> {
        // An alias hides a table with the same name.
        let entry = self.known.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name));
        entry.map_or_else(|| once(self.views.relations()), |(_, relation)| columns(*relation))
    }

    /// Returns the columns of all relations in the query; if there are none, those of the first view.
    fn columns(&self) -> Vec<SqlCandidate> {
        let mut relations: Vec<Relation<'_>> =
            self.known.iter().map(|(_, relation)| *relation).collect();
        if relations.is_empty() {
            relations.extend(self.views.relations().take(1));
        }
        once(relations.into_iter())
    }
}

/// Returns the columns of relations, without duplicate names.
fn once<'a>(relations: impl Iterator<Item = Relation<'a>>) -> Vec<SqlCandidate> {
    let mut candidates: Vec<SqlCandidate> = Vec::new();
    for column in relations.flat_map(columns) {
        if !candidates.iter().any(|known| known.text == column.text) {
            candidates.push(column);
        }
    }
    candidates
}

fn columns(relation: Relation<'_>) -> Vec<SqlCandidate> {
    relation
        .columns()
        .into_iter()
        .map(|column| SqlCandidate::new(column.name, column.doc))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn built_in() -> Arc<Views> {
        Views::with(None, &handlescope_model::Cancel::default()).expect("the views of the program")
    }

    /// Returns the candidates at the `|`.
    fn offered(query: &str) -> Vec<String> {
        let cursor = query.find('|').expect("a cursor");
        let (_, candidates) = candidates(&query.replace('|', ""), cursor, &built_in());
        candidates.into_iter().map(|candidate| candidate.text).collect()
    }

    #[test]
    fn tables_and_views_are_offered_behind_from_and_join() {
        assert_eq!(offered("SELECT * FROM le|"), ["leaks"]);
        assert_eq!(offered("select * from leaks l join sta|"), ["stacks", "stack_events"]);
        assert_eq!(offered("SELECT * FROM |").first().map(String::as_str), Some("acquisitions"));
        assert!(!offered("SELECT * FROM |").contains(&"WHERE".to_owned()));
    }

    #[test]
    fn columns_are_those_of_the_tables_that_the_query_names() {
        assert_eq!(
            offered("SELECT s.te| FROM leaks l JOIN stacks s ON s.row = l.opened_stack"),
            ["text"]
        );
        assert_eq!(offered("SELECT count(li|) FROM handles"), ["lifetime_ns", "LIKE", "LIMIT"]);
        assert_eq!(offered("SELECT pdb_n| FROM modules"), ["pdb_name"]);
        assert_eq!(offered("SELECT pdb_n| FROM leaks"), [""; 0]);
        assert_eq!(offered("SELECT x.pdb_n| FROM modules AS x"), ["pdb_name"]);
        assert_eq!(offered("SELECT s.dep|"), ["depth"], "the table is still to come");
    }

    #[test]
    fn words_of_sql_are_offered_too() {
        assert_eq!(offered("SELECT * FROM leaks WHER|"), ["WHERE"]);
        assert!(offered("|").contains(&"SELECT".to_owned()));
        assert_eq!(offered("SELECT he| FROM processes"), ["hex"]);
    }

    #[test]
    fn nothing_is_offered_inside_of_a_text() {
        assert_eq!(offered("SELECT * FROM leaks WHERE type = 'A|"), [""; 0]);
        assert_eq!(offered("SELECT * FROM leaks WHERE type = 'it''s A|"), [""; 0]);
        assert!(offered("SELECT 'A' A|").contains(&"AS".to_owned()));
    }

    #[test]
    fn the_word_at_the_cursor_is_replaced_and_no_more() {
        let (span, _) = candidates("SELECT count(ti", 15, &built_in());
        assert_eq!(span, 13..15);
        assert_eq!(candidates("SELECT ä.", 10, &built_in()).0, 10..10);
    }
}
