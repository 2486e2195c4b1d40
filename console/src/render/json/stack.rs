//! Stacks, frame by frame.

use serde::{Serialize, Serializer};

use handlescope_model::StackIdx;

use super::Hex;
use crate::query::{FrameView, Frames, ModuleBases, NamedFrames, TrimmedStacks};

pub(in crate::render) struct StackJson<'a> {
    /// The frames of the trace; `None` when they are not shown.
    pub(in crate::render) frames: Option<&'a Frames<'a>>,
    pub(in crate::render) bases: &'a ModuleBases,
    pub(in crate::render) stack: StackIdx,
    /// Trims that leave out some of its frames.
    pub(in crate::render) trims: Option<&'a TrimmedStacks>,
}

#[derive(Serialize)]
struct FrameJson<'a> {
    module: Option<&'a str>,
    function: Option<&'a str>,
    offset: Option<u64>,
    rva: Option<Hex>,
    address: Option<Hex>,
    inlined: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    managed: bool,
    file: Option<&'a str>,
    line: Option<u32>,
    source: Option<&'a str>,
}

impl Serialize for StackJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = self.frames.map(Frames::named);
        let frames = named.iter().flat_map(|named: &NamedFrames<'_>| {
            TrimmedStacks::views(self.trims, named, self.stack)
        });
        serializer.collect_seq(frames.map(|frame: FrameView<'_>| FrameJson {
            module: frame.module_name(),
            function: frame.function(),
            offset: frame.offset(),
            rva: frame.module.and_then(|module| module.rva).map(Hex),
            address: self.bases.address(&frame).map(Hex),
            inlined: frame.is_inlined(),
            managed: frame.method.is_some(),
            file: frame.name.and_then(|name| name.file.as_deref()),
            line: frame.name.and_then(|name| name.line),
            source: frame.name.and_then(|name| name.source.as_deref()),
        }))
    }
}
