//! The names of a trace's frames: those found so far, and those an extract contains because it was symbolized or came
//! from ETWAnalyzer.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use handlescope_model::guard::lock;
use handlescope_model::tables::Symbols;
use handlescope_model::{ArchiveError, FrameIdx, Table, Trace};
use handlescope_symbols::{FrameChain, ModuleIdentity, ResolvedFrame};

use super::stack_verdicts::VerdictCache;

/// Names by row of the frames table; an empty chain means no name.
#[derive(Debug, Clone, Default)]
pub struct CachedFrameNames(Vec<Option<FrameChain>>);

impl CachedFrameNames {
    /// Returns the names of a frame, if they were requested.
    pub fn get(&self, frame: FrameIdx) -> Option<&FrameChain> {
        self.0.get(frame.row())?.as_ref()
    }

    /// Returns the frames with requested names, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (FrameIdx, &FrameChain)> {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(row, chain)| Some((FrameIdx::from_row(row), chain.as_ref()?)))
    }

    fn add(&mut self, frame: FrameIdx, chain: FrameChain) {
        if self.0.len() <= frame.row() {
            self.0.resize(frame.row() + 1, None);
        }
        if let Some(known) = self.0.get_mut(frame.row()) {
            *known = Some(chain);
        }
    }
}

/// The requested names of frames, by row of the frames table, where an empty chain means no name. Also the verdicts of
/// filters that follow from them.
///
/// Belongs to one loaded trace and one symbol path; make a new one if either changes.
#[derive(Debug, Default)]
pub struct FrameNameCache {
    names: Mutex<Arc<CachedFrameNames>>,
    /// Names in the extract itself.
    stored: OnceLock<StoredNames>,
    /// Modules with frame names from the extract.
    served: Mutex<HashSet<ModuleIdentity>>,
    /// Verdicts of filters on stacks; they follow from the names.
    pub verdicts: VerdictCache,
}

impl FrameNameCache {
    /// Returns the names known now. More may be found while the caller holds them.
    pub fn known(&self) -> Arc<CachedFrameNames> {
        Arc::clone(&lock(&self.names))
    }

    pub fn add(&self, names: Vec<(FrameIdx, FrameChain)>) {
        let mut known = lock(&self.names);
        let known = Arc::make_mut(&mut known);
        names.into_iter().for_each(|(frame, chain)| known.add(frame, chain));
    }

    pub fn load(&self, trace: &Trace) -> Result<&StoredNames, ArchiveError> {
        match self.stored.get() {
            Some(stored) => Ok(stored),
            None => {
                let stored = stored_names(trace)?;
                Ok(self.stored.get_or_init(|| stored))
            }
        }
    }

    /// Notes that the extract had a name for a frame of this module.
    pub fn note_served(&self, module: &ModuleIdentity) {
        lock(&self.served).insert(module.clone());
    }

    /// Whether the extract had names for frames of this module; they are better than those of symbol files.
    pub fn has_served(&self, module: &ModuleIdentity) -> bool {
        lock(&self.served).contains(module)
    }
}

/// Names by row of the frames table.
pub type StoredNames = HashMap<FrameIdx, FrameChain>;

/// Reads the names in the extract.
fn stored_names(trace: &Trace) -> Result<StoredNames, ArchiveError> {
    let frame = trace.values(Symbols::frame)?;
    let (depth, line) = (trace.values(Symbols::depth)?, trace.values(Symbols::line)?);
    let (function, file) = (trace.values(Symbols::function)?, trace.values(Symbols::file)?);
    let (offset, source) = (trace.values(Symbols::offset)?, trace.values(Symbols::source)?);
    let mut shared = SharedTexts::default();
    let mut chains: HashMap<FrameIdx, Vec<(u32, ResolvedFrame)>> = HashMap::new();
    for (row, owner) in frame.range(0..frame.len()).enumerate() {
        let depth = depth.get(row).unwrap_or_default();
        let named = ResolvedFrame {
            source: source.get(row).map(|source| shared.get(source)),
            function: shared.get(function.text(row)),
            offset: offset.get(row).unwrap_or_default(),
            file: file.get(row).map(|file| shared.get(file)),
            line: line.get(row),
            inlined: depth > 0,
        };
        chains.entry(owner).or_default().push((depth, named));
    }
    Ok(chains
        .into_iter()
        .map(|(frame, mut chain)| {
            // Innermost first.
            chain.sort_by_key(|(depth, _)| Reverse(*depth));
            (frame, chain.into_iter().map(|(_, named)| named).collect())
        })
        .collect())
}

/// Whether a loaded extract is unchanged on disk, so that names may be stored in it: they refer to rows of its frames
/// table.
pub fn is_still_loaded(trace: &Trace) -> Result<bool, ArchiveError> {
    let now = Trace::open_within(trace.path(), trace.limits())?;
    for table in [Table::Trace, Table::Frames] {
        if !now.frame(table)?.equals_missing(&trace.frame(table)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Shares texts that many rows have.
#[derive(Default)]
struct SharedTexts<'a>(HashMap<&'a str, Arc<str>>);

impl<'a> SharedTexts<'a> {
    fn get(&mut self, text: &'a str) -> Arc<str> {
        self.0.entry(text).or_insert_with(|| text.into()).clone()
    }
}
