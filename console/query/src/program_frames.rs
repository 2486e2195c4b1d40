//! The frames of a stack that are the program's, and the one that says most about it.

use super::frame_class::{FrameClass, PROCESS_START, is_runtime, is_system_call};
use super::frame_view::FrameView;

impl FrameView<'_> {
    /// How much the frame says.
    pub fn class(&self) -> FrameClass {
        if self.is_unknown() {
            return FrameClass::Unknown;
        }
        let class = self.module.filter(|_| self.method.is_none());
        match (class.map_or(FrameClass::Program, |module| module.class), self.function()) {
            (FrameClass::Program, Some(function)) if is_runtime(function) => FrameClass::Runtime,
            (FrameClass::System, Some(function)) if is_system_call(function) => {
                FrameClass::SystemCall
            }
            (class, _) => class,
        }
    }
}

/// The frame that says most about a stack, the innermost one of these.
pub fn representative<'a>(frames: impl Iterator<Item = FrameView<'a>>) -> Option<FrameView<'a>> {
    let mut best: Option<(FrameClass, FrameView<'a>)> = None;
    for frame in frames {
        let class = frame.class();
        if best.is_none_or(|(known, _)| class < known) {
            best = Some((class, frame));
        }
        if class == FrameClass::Program {
            break;
        }
    }
    best.map(|(_, frame)| frame)
}

/// The frames of a stack, each with whether it is one of the program; where a stack has none, these are the frames of
/// Windows' libraries, without those that `.sys` lists.
pub fn with_program<'a>(
    frames: impl Iterator<Item = FrameView<'a>>,
) -> impl Iterator<Item = (FrameView<'a>, bool)> {
    let frames: Vec<(FrameView<'a>, FrameClass)> =
        frames.map(|frame| (frame, frame.class())).collect();
    let best = frames.iter().map(|(_, class)| *class).min();
    let shown = best.filter(|best| *best <= FrameClass::Windows);
    frames.into_iter().map(move |(frame, class)| (frame, shown == Some(class)))
}

/// Whether the loader starts a process in a stack that has no frame of the program.
pub fn is_of_process_start<'a>(mut frames: impl Iterator<Item = FrameView<'a>>) -> bool {
    let mut is_start = false;
    let is_of_program = frames.any(|frame| {
        is_start |= frame.function() == Some(PROCESS_START);
        frame.class() == FrameClass::Program
    });
    is_start && !is_of_program
}
