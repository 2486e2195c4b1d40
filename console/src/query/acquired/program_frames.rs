//! The function of a program that allocates.

use handlescope_model::StackIdx;

use crate::filter::SystemModules;
use crate::query::frame_names::Frames;
use crate::query::frame_view::FrameView;

/// Functions that allocate for a program which has the runtime library within; the allocating operators of C++ besides.
const ALLOCATING: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "_malloc_base",
    "_calloc_base",
    "_realloc_base",
    "_malloc_dbg",
    "_calloc_dbg",
    "_realloc_dbg",
];
const OPERATOR_NEW: &str = "operator new";

/// Distinguishes the frames of a program from those that allocate for it.
pub(crate) struct ProgramFrames {
    runtimes: SystemModules,
}

impl ProgramFrames {
    pub(crate) fn new() -> Self {
        Self { runtimes: SystemModules::allocating() }
    }

    /// The innermost frame of a stack that is neither of the system nor of what allocates for programs.
    pub(crate) fn function(&self, frames: &Frames<'_>, stack: StackIdx) -> Option<String> {
        let named = frames.named();
        let mut candidates =
            frames.stacks.get(stack.row()).filter(|frame| !frames.is_system(frame.row()));
        candidates.find_map(|frame| {
            let view = named.frames_at(frame).next()?;
            (!self.allocates(&view)).then(|| view.to_string())
        })
    }

    fn allocates(&self, view: &FrameView<'_>) -> bool {
        view.module_name().is_some_and(|module| self.runtimes.has(module))
            || view.function().is_some_and(|name| {
                let name = name.split('(').next().unwrap_or_default();
                name.starts_with(OPERATOR_NEW) || ALLOCATING.contains(&name)
            })
    }
}
