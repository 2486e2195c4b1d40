//! Names of objects with leaked handles.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use handlescope_model::tables::{Names, Objects};
use handlescope_model::{ArchiveError, NameIdx, Numbers, ObjectIdx, RowSet, Sparse, Texts, Trace};
use serde::Serialize;

use crate::groups::name_pattern;

/// Maximum number of patterns listed for a suspect.
const MAX_PATTERNS: usize = 3;

/// Objects with names that differ only in numbers and GUIDs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectNames {
    /// The name, or for several names their common pattern: `SignalEvent_#`.
    pub name: String,
    /// Number of objects with such a name.
    pub count: u64,
}

/// Names of the objects of a suspect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeakedNames {
    /// The most frequent ones.
    pub frequent: Vec<ObjectNames>,
    /// Number of objects with other names.
    pub others: u64,
    /// Number of objects without a name.
    pub unnamed: u64,
    /// Values of the first leaked handles, for sources without a clock: nothing else tells these apart.
    pub handles: Vec<u64>,
}

/// The names of some objects.
pub struct NameTable {
    name: Sparse<Numbers<NameIdx>>,
    texts: Texts,
}

impl NameTable {
    pub fn load(trace: &Trace, objects: &Arc<RowSet>) -> Result<Self, ArchiveError> {
        let name = trace.values_at(Objects::name, objects)?;
        Ok(Self { name, texts: trace.values(Names::name)? })
    }

    /// Counts the names of distinct objects.
    pub fn names(&self, objects: impl Iterator<Item = ObjectIdx>) -> LeakedNames {
        let mut by_name: HashMap<Option<NameIdx>, u64> = HashMap::new();
        for object in objects {
            let name = self.name.get(object.row());
            let name = name.filter(|name| !self.texts.text(name.row()).is_empty());
            *by_name.entry(name).or_default() += 1;
        }
        let unnamed = by_name.remove(&None).unwrap_or_default();
        let mut by_pattern: HashMap<String, (u64, Vec<NameIdx>)> = HashMap::new();
        for (name, count) in by_name.into_iter().filter_map(|(name, count)| Some((name?, count))) {
            let pattern = name_pattern(self.texts.text(name.row()));
            let (sum, names) = by_pattern.entry(pattern).or_default();
            *sum += count;
            names.push(name);
        }
        let mut names: Vec<ObjectNames> = by_pattern
            .into_iter()
            .map(|(pattern, (count, names))| match names.as_slice() {
                [name] => ObjectNames { name: self.texts.text(name.row()).to_owned(), count },
                _ => ObjectNames { name: pattern, count },
            })
            .collect();
        names.sort_by(|a, b| (Reverse(a.count), &a.name).cmp(&(Reverse(b.count), &b.name)));
        let others = names.split_off(names.len().min(MAX_PATTERNS));
        let others = others.iter().map(|names| names.count).sum();
        LeakedNames { frequent: names, others, unnamed, handles: Vec::new() }
    }
}
