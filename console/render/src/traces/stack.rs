//! Stacks, frame by frame.

use serde::{Serialize, Serializer};

use handlescope_model::StackIdx;

use crate::json::Hex;
use crate::table::Columns;
use handlescope_query::{FrameView, Frames, ModuleBases, NamedFrames, TrimmedStacks};

pub struct StackJson<'a> {
    /// The frames of the trace; `None` if they are not shown.
    pub frames: Option<&'a Frames<'a>>,
    pub bases: &'a ModuleBases,
    pub stack: StackIdx,
    /// Trims that hide some of its frames.
    pub trims: Option<&'a TrimmedStacks>,
}

/// A frame, and its address if that is the same in every process.
pub struct FrameRow<'a> {
    frame: FrameView<'a>,
    address: Option<u64>,
}

/// Declares the columns of a frame.
pub fn frame_columns<'a>() -> Columns<'a, FrameRow<'a>> {
    const SOURCE: &str = "source of the call, if the symbols have it";
    let mut columns = Columns::<FrameRow<'a>>::default();
    columns.member(
        "module",
        "file name, as in `\"ntdll.dll\"`; null outside of all modules",
        |row| row.frame.module_name(),
    );
    columns.member(
        "function",
        "name without parameters, demangled, with templates spelled as by DbgHelp \
         (`std::vector<int,std::allocator<int> >`); null without symbols. It is the function of \
         the call, that is of the instruction before the address; if an innermost frame is the \
         start of a function, it is that function",
        |row| row.frame.function(),
    );
    columns.member(
        "offset",
        "bytes from the start of the function; null without symbols and for inlined functions",
        |row| row.frame.offset(),
    );
    columns.member(
        "rva",
        "address relative to the module; null if ETWAnalyzer's extract has only a name",
        |row| row.frame.module.and_then(|module| module.rva).map(Hex),
    );
    columns.member(
        "address",
        "absolute address; null if the module has different addresses in different processes",
        |row| row.address.map(Hex),
    );
    columns.member("inlined", "whether the function was inlined into the frame after it", |row| {
        row.frame.is_inlined()
    });
    columns.member_if(
        "managed",
        "`true` for a .NET method, omitted for other frames. `module` is then the assembly, and \
         `function` is `Namespace.Type.Method`",
        |row| row.frame.method.is_some().then_some(true),
    );
    columns.member("file", SOURCE, |row| row.frame.name.and_then(|name| name.file.as_deref()));
    columns.member("line", SOURCE, |row| row.frame.name.and_then(|name| name.line));
    columns.member(
        "source",
        "where to get `file`, if its PDB says so (Source Link, source server): a URL, or the \
         command of a version control system",
        |row| row.frame.name.and_then(|name| name.source.as_deref()),
    );
    columns
}

impl Serialize for StackJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = self.frames.map(Frames::named);
        let frames = named.iter().flat_map(|named: &NamedFrames<'_>| {
            TrimmedStacks::views(self.trims, named, self.stack)
        });
        let rows = frames.map(|frame| FrameRow { address: self.bases.address(&frame), frame });
        frame_columns().parts_of(rows.collect()).serialize(serializer)
    }
}
