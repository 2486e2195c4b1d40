//! The names of frames that an extract holds itself: it was symbolized, or came from ETWAnalyzer.

use std::{collections::HashMap, sync::Arc};

use handlescope_extract::symbols::{FrameChain, ResolvedFrame};
use handlescope_model::tables::Symbols;
use handlescope_model::{ArchiveError, FrameIdx, Table, Trace};

/// Names by row of the frames table.
pub(crate) type StoredNames = HashMap<FrameIdx, FrameChain>;

/// Reads them.
pub(super) fn stored_names(trace: &Trace) -> Result<StoredNames, ArchiveError> {
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
    let innermost_first = |mut chain: Vec<(u32, ResolvedFrame)>| -> FrameChain {
        chain.sort_by_key(|(depth, _)| u32::MAX - depth);
        chain.into_iter().map(|(_, named)| named).collect()
    };
    let chains = chains.into_iter().map(|(frame, chain)| (frame, innermost_first(chain)));
    Ok(chains.collect())
}

/// Whether the file of a loaded extract is still the one that was loaded, so that names may be stored in it:
/// they belong to rows of its frames.
pub(crate) fn is_still_loaded(trace: &Trace) -> Result<bool, ArchiveError> {
    let now = Trace::open_within(trace.path(), trace.limits())?;
    for table in [Table::Trace, Table::Frames] {
        if !now.frame(table)?.equals_missing(&trace.frame(table)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Texts that many rows have.
#[derive(Default)]
struct SharedTexts<'a>(HashMap<&'a str, Arc<str>>);

impl<'a> SharedTexts<'a> {
    fn get(&mut self, text: &'a str) -> Arc<str> {
        self.0.entry(text).or_insert_with(|| text.into()).clone()
    }
}
