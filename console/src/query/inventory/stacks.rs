//! Identities of stacks that traces of other machines and of other builds share.

use handlescope_extract::symbols::ModuleIdentity;
use handlescope_model::StackIdx;
use handlescope_model::stable_hash::identity_of;

use crate::query::frame_names::{Frames, NamedFrames};
use crate::query::frame_view::{FrameView, frame_lines};
use crate::query::program_frames::{representative, with_program};

/// A stack as datasets know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StackIdentity {
    /// 128 bits, in hex, of the functions of the program's modules; of a frame without a name, its place and the build of
    /// its module. Of a stack without such frames those of Windows' libraries, or else of all frames.
    pub(crate) id: String,
    /// The same of all frames.
    pub(crate) frames_id: String,
    /// The frame that says most.
    pub(crate) function: String,
    /// A line for each frame, innermost first.
    pub(crate) text: String,
    pub(crate) frames: usize,
    /// Whether all frames that `id` is made of have names.
    pub(crate) has_symbols: bool,
}

/// Identities of some stacks, the names of whose frames were looked up.
pub(super) fn identities(
    frames: &Frames<'_>,
    stacks: impl Iterator<Item = StackIdx>,
) -> Vec<(StackIdx, StackIdentity)> {
    let named = frames.named();
    stacks.map(|stack| (stack, identity(&named, stack))).collect()
}

fn identity(named: &NamedFrames<'_>, stack: StackIdx) -> StackIdentity {
    let views = with_program(named.stack(stack));
    let (views, is_of_program): (Vec<FrameView<'_>>, Vec<bool>) = views.unzip();
    let has_program = is_of_program.contains(&true);
    let texts: Vec<String> = views.iter().map(|view| compared(named, view)).collect();
    let chosen = || is_of_program.iter().map(|is_of_program| *is_of_program || !has_program);
    let compared_texts = texts.iter().zip(chosen()).filter(|(_, is_chosen)| *is_chosen);
    let has_symbols = views
        .iter()
        .zip(chosen())
        .filter(|(_, is_chosen)| *is_chosen)
        .all(|(view, _)| view.function().is_some());
    let function = representative(views.iter().copied());
    let (text, frames) = frame_lines(views.iter().copied());
    StackIdentity {
        id: identity_of(compared_texts.map(|(text, _)| text.as_bytes())),
        frames_id: identity_of(texts.iter().map(String::as_bytes)),
        function: function.map(|view| view.to_string()).unwrap_or_default(),
        text,
        frames,
        has_symbols,
    }
}

/// The text of a frame that is compared: modules in lower case, as Windows compares their names; a frame without a name
/// with the build of its module.
fn compared(named: &NamedFrames<'_>, view: &FrameView<'_>) -> String {
    let module = view.module_name().unwrap_or_default().to_lowercase();
    if let Some(function) = view.function() {
        return format!("{module}!{function}");
    }
    let Some(place) = view.module else { return view.to_string() };
    let build = named.frames().identity(place.row).and_then(build_id).unwrap_or_default();
    format!("{module}+0x{:X} {build}", place.rva.unwrap_or_default())
}

/// Identity of the build of a module: that of its PDB, or else its time stamp and size, both as the paths of a symbol
/// server have them (Microsoft, "SymStore", and `SymSrvGetFileIndexes`).
pub(crate) fn build_id(module: &ModuleIdentity) -> Option<String> {
    if let Some(pdb) = &module.pdb {
        return Some(format!("{:X}{:x}", pdb.guid.simple(), pdb.age));
    }
    // Rundowns of modules in user mode have the time stamp 0.
    let timestamp = module.timestamp.filter(|timestamp| *timestamp != 0)?;
    Some(format!("{timestamp:08X}{:x}", module.size))
}
