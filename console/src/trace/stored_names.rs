//! The names of frames that an extract holds itself: it was symbolized, or came from ETWAnalyzer.

use std::{collections::HashMap, sync::Arc};

use handlescope_extract::symbols::{FrameChain, ResolvedFrame};
use handlescope_model::{ArchiveError, Table, Trace};

use super::columns::{Texts, U32s, U64s};

/// Names by row of the frames table.
#[derive(Debug, Default)]
pub(crate) struct StoredNames(HashMap<u32, FrameChain>);

impl StoredNames {
    pub(crate) fn load(trace: &Trace) -> Result<StoredNames, ArchiveError> {
        let u32s = |name| U32s::load(trace, Table::Symbols, name);
        let texts = |name| Texts::load(trace, Table::Symbols, name);
        let (frame, depth, line) = (u32s("frame")?, u32s("depth")?, u32s("line")?);
        let (function, file) = (texts("function")?, texts("file")?);
        let offset = U64s::load(trace, Table::Symbols, "offset")?;
        let mut shared = SharedTexts::default();
        let mut chains: HashMap<u32, Vec<(u32, ResolvedFrame)>> = HashMap::new();
        for (row, &owner) in frame.values().iter().enumerate() {
            let depth = depth.get(row).unwrap_or_default();
            let named = ResolvedFrame {
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
        Ok(StoredNames(chains.collect()))
    }

    pub(crate) fn get(&self, frame: u32) -> Option<&FrameChain> {
        self.0.get(&frame)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &FrameChain)> {
        self.0.iter().map(|(&frame, chain)| (frame, chain))
    }
}

/// Texts that many rows have.
#[derive(Default)]
struct SharedTexts<'a>(HashMap<&'a str, Arc<str>>);

impl<'a> SharedTexts<'a> {
    fn get(&mut self, text: &'a str) -> Arc<str> {
        self.0.entry(text).or_insert_with(|| text.into()).clone()
    }
}
