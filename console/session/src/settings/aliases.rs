//! Aliases: names for beginnings of command lines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use handlescope_model::Untrusted;
use thiserror::Error;

use crate::grammar::{Quotes, split};

/// How many aliases one line may go through.
const MAX_DEPTH: usize = 20;

/// Names for beginnings of command lines, in lower case. On a line they start with a dot, like commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases(BTreeMap<String, String>);

/// An alias that cannot be defined or used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AliasError {
    #[error(
        "'{}' is not a valid alias name: use letters, digits, - and _, starting with a letter",
        Untrusted(.name)
    )]
    Name { name: String },
    #[error(".{name} is a command; choose another name for the alias")]
    Command { name: String },
    #[error(
        "the alias {name} must be one line that starts with a command, as in .dump ObjectRef -Leak"
    )]
    Line { name: String },
    #[error("the alias .{name} refers to itself: {cycle}; make one of them a command")]
    Circle {
        name: String,
        /// The aliases of the cycle, with arrows between them.
        cycle: String,
    },
    #[error("the alias .{name} is nested more than {MAX_DEPTH} deep; make one of them a command")]
    Long { name: String },
    #[error("no alias '{}'; .alias lists them", Untrusted(.name))]
    Missing { name: String },
}

impl Aliases {
    /// No aliases.
    pub const NONE: &'static Aliases = &Aliases(BTreeMap::new());

    /// Returns the names, without dots, and their lines.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, line)| (name.as_str(), line.as_str()))
    }

    /// Returns the names as typed, with dots, and their lines.
    pub fn dotted(&self) -> impl Iterator<Item = (String, &str)> {
        self.iter().map(|(name, line)| (format!(".{name}"), line))
    }

    /// Returns the name and line of an alias. The dot may be left out.
    pub fn get(&self, name: &str) -> Option<(&str, &str)> {
        let (name, line) = self.0.get_key_value(&plain(name))?;
        Some((name, line))
    }

    /// Adds or changes an alias, and returns its name. A name for which `is_command` holds is refused.
    ///
    /// # Errors
    /// If the name or the line is not allowed, or the alias refers to itself.
    pub fn define(
        &mut self,
        name: &str,
        line: &str,
        is_command: impl Fn(&str) -> bool,
    ) -> Result<String, AliasError> {
        let name = plain(name);
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if !is_plain || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(AliasError::Name { name });
        }
        if is_command(&format!(".{name}")) {
            return Err(AliasError::Command { name });
        }
        let line = line.trim();
        let tokens = split(line);
        let is_closed = tokens.iter().all(|token| token.quotes != Quotes::Open);
        let is_whole = !line.contains(|c: char| c.is_control() && c != '\t');
        if !line.starts_with('.') || !is_whole || !is_closed {
            return Err(AliasError::Line { name });
        }
        let before = self.0.insert(name.clone(), line.to_owned());
        if let Err(error) = self.expand(&format!(".{name}")) {
            match before {
                Some(line) => self.0.insert(name, line),
                None => self.0.remove(&name),
            };
            return Err(error);
        }
        Ok(name)
    }

    /// Removes an alias, and returns its name.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn remove(&mut self, name: &str) -> Result<String, AliasError> {
        let entry = self.0.remove_entry(&plain(name));
        entry.map(|(name, _)| name).ok_or_else(|| AliasError::Missing { name: name.to_owned() })
    }

    /// Replaces the alias at the start of a line by what it stands for, and keeps the rest of the line.
    ///
    /// # Errors
    /// If the alias refers to itself.
    pub fn expand<'a>(&self, line: &'a str) -> Result<Cow<'a, str>, AliasError> {
        let mut expanded = Cow::Borrowed(line);
        let mut used: Vec<&str> = Vec::new();
        while let Some((name, start, rest)) = self.first_of(&expanded) {
            if used.contains(&name) {
                let cycle = used
                    .into_iter()
                    .chain([name])
                    .map(|name| format!(".{name}"))
                    .collect::<Vec<_>>()
                    .join(" → ");
                return Err(AliasError::Circle { name: name.to_owned(), cycle });
            }
            if used.len() == MAX_DEPTH {
                return Err(AliasError::Long { name: name.to_owned() });
            }
            used.push(name);
            expanded = Cow::Owned(format!("{start}{rest}"));
        }
        Ok(expanded)
    }

    /// Expands a line that starts with an alias, so that it can be completed or coloured like the command it stands
    /// for.
    pub fn expanded(&self, line: &str) -> Option<AliasExpansion> {
        let (_, _, rest) = self.first_of(line)?;
        let expanded = self.expand(line).ok()?.into_owned();
        let (typed_start, start) = (line.len() - rest.len(), expanded.len() - rest.len());
        Some(AliasExpansion { line: expanded, typed_start, start })
    }

    /// Returns the alias a line starts with, what it stands for, and the rest of the line.
    fn first_of<'l>(&self, line: &'l str) -> Option<(&str, &str, &'l str)> {
        let word = line.trim_start();
        let (word, rest) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
        let (name, start) = self.get(word).filter(|_| word.starts_with('.'))?;
        Some((name, start, rest))
    }
}

/// A line with its alias expanded.
pub struct AliasExpansion {
    pub line: String,
    /// Where the rest of the line starts in the line as typed.
    pub typed_start: usize,
    /// Where the rest starts in the expanded line.
    pub start: usize,
}

/// Removes the dot of a name, and converts it to lower case.
fn plain(name: &str) -> String {
    name.strip_prefix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_lines(lines: &[(&str, &str)]) -> Aliases {
        let mut aliases = Aliases::default();
        for (name, line) in lines {
            aliases.define(name, line, |_| false).expect(name);
        }
        aliases
    }

    #[test]
    fn words_after_an_alias_are_appended_to_its_command() {
        let aliases =
            from_lines(&[("leaks", ".dump ObjectRef -Leak"), ("mine", " .Leaks -pn \"a b\" ")]);
        for (line, expected) in [
            (".leaks", ".dump ObjectRef -Leak"),
            ("  .LEAKS -pn x > a.txt", ".dump ObjectRef -Leak -pn x > a.txt"),
            (".mine\t-csv", ".dump ObjectRef -Leak -pn \"a b\"\t-csv"),
            ("leaks", "leaks"),
            (".leaksx", ".leaksx"),
            (".dump .leaks", ".dump .leaks"),
            ("# .leaks", "# .leaks"),
            ("", ""),
        ] {
            assert_eq!(aliases.expand(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn an_alias_leads_to_others_but_not_back_to_itself() {
        let mut aliases = from_lines(&[("c", ".list"), ("b", ".c"), ("a", ".b")]);
        let error = aliases.define("c", ".a -x", |_| false).expect_err("a circle").to_string();
        assert!(error.starts_with("the alias .c refers to itself: .c → .a → .b → .c; "), "{error}");
        assert_eq!(aliases.expand(".a").expect("as before"), ".list");
        assert!(aliases.define("a", ".a", |_| false).is_err());
        for depth in 0..MAX_DEPTH {
            let (name, line) = (format!("n{}", depth + 1), format!(".n{depth}"));
            aliases.define(&name, &line, |_| false).expect("a chain");
        }
        let long = format!(".n{MAX_DEPTH}");
        let error = aliases.define("long", &long, |_| false).expect_err("a long chain").to_string();
        assert!(error.starts_with("the alias .n1 is nested more than 20 deep"), "{error}");
    }

    #[test]
    fn an_alias_has_a_plain_name_and_hides_no_command() {
        let mut aliases = Aliases::default();
        for name in ["", "1a", "a b", "a.b", "ä", "-a", "..a"] {
            let error = aliases.define(name, ".list", |_| false).expect_err(name);
            assert!(matches!(error, AliasError::Name { .. }), "{name}: {error}");
        }
        let error = aliases.define("list", ".dump", |name| name == ".list").expect_err("a command");
        assert_eq!(error.to_string(), ".list is a command; choose another name for the alias");
        for line in ["", "list", ".list\n.quit", ".dump Process -pn \"a", "\u{1b}"] {
            let error = aliases.define("a", line, |_| false).expect_err(line);
            assert!(matches!(error, AliasError::Line { .. }), "{line}: {error}");
        }
        assert_eq!(aliases, Aliases::default());
    }

    #[test]
    fn a_name_counts_in_any_case_and_is_removed_with_or_without_its_dot() {
        let mut aliases = from_lines(&[("Leaks", ".list"), (".leaks", ".dump")]);
        assert_eq!(aliases.iter().collect::<Vec<_>>(), [("leaks", ".dump")]);
        assert_eq!(aliases.remove(".LEAKS").expect("an alias"), "leaks");
        assert!(aliases.remove("leaks").is_err());
    }
}
