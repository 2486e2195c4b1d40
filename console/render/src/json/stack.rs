//! Stacks, frame by frame.

use serde::{Serialize, Serializer};

use handlescope_model::StackIdx;

use super::{Hex, Meanings};
use handlescope_query::{FrameView, Frames, ModuleBases, NamedFrames, TrimmedStacks};

pub struct StackJson<'a> {
    /// The frames of the trace; `None` when they are not shown.
    pub frames: Option<&'a Frames<'a>>,
    pub bases: &'a ModuleBases,
    pub stack: StackIdx,
    /// Trims that leave out some of its frames.
    pub trims: Option<&'a TrimmedStacks>,
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

/// Meanings of the members of `stacks` in `.dump ObjectRef`.
pub const FRAME_MEMBERS: Meanings = &[
    ("module", "file name, as in `\"ntdll.dll\"`; null outside of all modules"),
    (
        "function",
        "name without parameters, demangled, with templates spelled as by DbgHelp \
         (`std::vector<int,std::allocator<int> >`); null without symbols. It is the function of \
         the call, that is of the instruction before the address; if an innermost frame is the \
         start of a function, it is that function",
    ),
    (
        "offset",
        "bytes from the start of the function; null without symbols and for inlined functions",
    ),
    ("rva", "address relative to the module; null if ETWAnalyzer's extract has only a name"),
    (
        "address",
        "absolute address; null if the module has different addresses in different processes",
    ),
    (
        "managed",
        "`true` for a .NET method, omitted for other frames. `module` is then the assembly, and \
         `function` is `Namespace.Type.Method`",
    ),
    ("inlined", "whether the function was inlined into the frame after it"),
    ("file, line", "source of the call, if the symbols have it"),
    (
        "source",
        "where to get `file`, if its PDB says so (Source Link, source server): a URL, or the \
         command of a version control system",
    ),
];
