//! Mappings as a list in TOML.

use serde::Deserialize;

use super::line::checked;
use super::{MappingError, ResourceFields, ResourceMapping};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    resource: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    event: String,
    action: String,
    handle: Option<String>,
    size: Option<String>,
    allocator: Option<String>,
}

impl ResourceMapping {
    /// The mappings of a list: one `[[resource]]` for each.
    ///
    /// # Errors
    /// Where the text is not such a list, or what is wrong with the first entry that is not a mapping.
    pub fn of_list(text: &str) -> Result<Vec<Self>, MappingError> {
        let list: List = toml::from_str(text)
            .map_err(|error| MappingError::NoList { reason: one_line(&error, text) })?;
        let usual = ResourceFields::default();
        let mapping = |(number, entry): (usize, Entry)| {
            let fields = ResourceFields {
                handle: entry.handle.unwrap_or_else(|| usual.handle.clone()),
                size: entry.size.unwrap_or_else(|| usual.size.clone()),
                allocator: entry.allocator.unwrap_or_else(|| usual.allocator.clone()),
            };
            Self::new(&entry.event, &entry.action, &format!("resource {number}"), fields)
        };
        checked((1..).zip(list.resource).map(mapping).collect::<Result<_, _>>()?)
    }
}

/// An error of the parser with its line, without the drawing of the place.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.get(..start).map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::ResourceAction;

    const LIST: &str = "
        [[resource]]
        event = 'Contoso-Pool/Block Taken'
        action = 'acquire'
        handle = 'Block'
        [[resource]]
        event = '8c416c79-d49b-4f01-a467-e56d3aa8234c/12'
        action = 'release'
    ";

    #[test]
    fn a_list_means_the_same_as_words_and_takes_names_with_spaces() {
        let found = ResourceMapping::of_list(LIST).unwrap();
        assert_eq!(found[0].event, "Block Taken");
        assert_eq!(
            (found[0].fields.handle.as_str(), found[1].action),
            ("Block", ResourceAction::Release)
        );
        let words = "8c416c79-d49b-4f01-a467-e56d3aa8234c/12 release";
        assert_eq!(found[1..], ResourceMapping::of_words(words).unwrap());
    }

    #[test]
    fn errors_name_line_or_entry() {
        for (from, to, said) in [
            ("handle =", "handel =", "not a list of mappings: line 5: unknown field `handel`"),
            ("'release'", "'close'", "resource 2: \"close\" is neither acquire nor release"),
            ("'Block'", "7", "line 5: invalid type"),
            ("[[resource]]", "[[resources]]", "line 2: unknown field `resources`"),
        ] {
            let error = ResourceMapping::of_list(&LIST.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(matches!(ResourceMapping::of_list(""), Err(MappingError::Empty)));
    }
}
