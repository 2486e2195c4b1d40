//! The names of all frames of a trace, to be stored in its extract.

use handlescope_model::Trace;
use handlescope_model::tables::{Symbol, Symbols};

use super::error::QueryError;
use super::frame_names::{FrameNames, Frames};
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::FrameNameCache;

/// The names of all frames of a trace, and how many were found.
pub struct AllNames {
    /// Frames whose names come from symbols.
    pub frames: usize,
    /// Frames that have a name.
    pub named: usize,
    pub table: Symbols,
}

/// Finds the names of all frames of a trace. A name that the extract holds already stays, unless a
/// symbol file has one.
///
/// # Errors
/// When the archive is damaged, or `cancel` asks to stop.
pub fn all_names(
    trace: &Trace,
    memory: &FrameNameCache,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<AllNames, QueryError> {
    let frames = Frames::load(trace, names, memory, cancel)?;
    let modules = frames.resolve_modules(|_| true)?;
    let mut table = Symbols::default();
    for (frame, chain) in frames.named().all() {
        for (depth, named) in (0_u32..).zip(chain.iter().rev()) {
            table.push(Symbol {
                frame,
                depth,
                function: named.function.to_string(),
                offset: frames.location(frame).map(|_| named.offset),
                file: named.file.as_deref().map(str::to_owned),
                line: named.line,
                source: named.source.as_deref().map(str::to_owned),
            });
        }
    }
    let frames = modules.iter().map(|module| module.frames).sum();
    let named = modules.iter().map(|module| module.named).sum();
    Ok(AllNames { frames, named, table })
}
