//! Names of the objects whose handles leak.

use std::cmp::Reverse;
use std::collections::HashMap;

use handlescope_model::tables::{Names, Objects};
use handlescope_model::{ArchiveError, NameIdx, Numbers, ObjectIdx, Texts, Trace};
use serde::Serialize;

use crate::query::groups::NamePattern;

/// Patterns listed for a suspect.
const MAX_PATTERNS: usize = 3;

/// Names of objects that differ only in numbers and GUIDs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectNames {
    /// The name, or with several the pattern that they share: `SignalEvent_#`.
    pub name: String,
    /// Number of objects with such a name.
    pub count: u64,
}

/// The names of all objects.
pub(super) struct NameTable {
    name: Numbers<NameIdx>,
    texts: Texts,
}

impl NameTable {
    pub(super) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self { name: trace.values(Objects::name)?, texts: trace.values(Names::name)? })
    }

    /// The most frequent names of some distinct objects; objects without a name are left out.
    pub(super) fn most_frequent(
        &self,
        objects: impl Iterator<Item = ObjectIdx>,
    ) -> Vec<ObjectNames> {
        let mut by_name: HashMap<NameIdx, u64> = HashMap::new();
        for name in objects.filter_map(|object| self.name.get(object.row())) {
            *by_name.entry(name).or_default() += 1;
        }
        let mut by_pattern: HashMap<String, (u64, Vec<NameIdx>)> = HashMap::new();
        for (name, count) in by_name {
            let text = self.texts.text(name.row());
            if !text.is_empty() {
                let (sum, names) = by_pattern.entry(NamePattern.of(text)).or_default();
                *sum += count;
                names.push(name);
            }
        }
        let mut names: Vec<ObjectNames> = by_pattern
            .into_iter()
            .map(|(pattern, (count, names))| match names.as_slice() {
                [name] => ObjectNames { name: self.texts.text(name.row()).to_owned(), count },
                _ => ObjectNames { name: pattern, count },
            })
            .collect();
        names.sort_by(|a, b| (Reverse(a.count), &a.name).cmp(&(Reverse(b.count), &b.name)));
        names.truncate(MAX_PATTERNS);
        names
    }
}
