//! The frames of a stack that belong to the program, and the most informative one.

use handlescope_model::{StackIdx, sentinel};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::frame_class::{FrameClass, PROCESS_START, is_runtime, is_system_call};
use super::frame_names::{Frames, NamedFrames};
use super::frame_view::{FrameIdentity, FrameView};
use super::trimmed_stacks::TrimmedStacks;

impl FrameView<'_> {
    /// Returns how informative the frame is.
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

/// Returns the most informative frame of a stack; the innermost of several.
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

/// Returns the frames of a stack, each with whether it belongs to the program. If none does, the frames of Windows'
/// libraries take their place, without those listed by `.sys`.
pub fn with_program<'a>(
    frames: impl Iterator<Item = FrameView<'a>>,
) -> impl Iterator<Item = (FrameView<'a>, bool)> {
    let frames: Vec<(FrameView<'a>, FrameClass)> =
        frames.map(|frame| (frame, frame.class())).collect();
    let best = frames.iter().map(|(_, class)| *class).min();
    let shown = best.filter(|best| *best <= FrameClass::Windows);
    frames.into_iter().map(move |(frame, class)| (frame, shown == Some(class)))
}

/// Whether the loader starts a process in this stack and no frame belongs to the program.
pub fn is_of_process_start<'a>(mut frames: impl Iterator<Item = FrameView<'a>>) -> bool {
    let mut is_start = false;
    let is_of_program = frames.any(|frame| {
        is_start |= frame.function() == Some(PROCESS_START);
        frame.class() == FrameClass::Program
    });
    is_start && !is_of_program
}

/// Returns the program's functions on a stack, from the acquiring one to its outermost caller. Code with neither a name
/// nor a place in a module is no function.
pub fn program_functions<'n>(
    trims: &TrimmedStacks,
    named: &'n NamedFrames<'_>,
    stack: StackIdx,
) -> impl Iterator<Item = FrameView<'n>> {
    let views = TrimmedStacks::views(Some(trims), named, stack);
    views.filter(|view| {
        let is_function = |identity| {
            matches!(identity, FrameIdentity::Function { .. } | FrameIdentity::Place { .. })
        };
        view.class() == FrameClass::Program && is_function(view.identity())
    })
}

/// The program's acquiring function for each stack, as a number.
pub struct AcquiringFunctions {
    /// By row of the stacks; [`sentinel`] for stacks without a function of the program, and for stacks that equal an
    /// earlier one.
    by_stack: Vec<u32>,
}

impl AcquiringFunctions {
    /// Numbers the functions of all compared stacks.
    pub fn new(frames: &Frames<'_>, trims: &TrimmedStacks) -> Self {
        let named = frames.named();
        let functions: Vec<(StackIdx, FrameIdentity<'_>)> = (0..trims.height())
            .into_par_iter()
            .map(StackIdx::from_row)
            .filter(|stack| trims.equal(*stack) == *stack)
            .filter_map(|stack| {
                Some((stack, program_functions(trims, &named, stack).next()?.identity()))
            })
            .collect();
        let mut numbers: HashMap<FrameIdentity<'_>, u32> = HashMap::new();
        let mut by_stack = vec![sentinel(); trims.height()];
        for (stack, function) in functions {
            let next = numbers.len() as u32;
            by_stack[stack.row()] = *numbers.entry(function).or_insert(next);
        }
        Self { by_stack }
    }

    /// Returns the function number of a stack, which must be the first of its equals; `None` if it has none.
    pub fn of_stack(&self, stack: StackIdx) -> Option<u32> {
        self.by_stack.get(stack.row()).copied().filter(|number| *number != sentinel())
    }
}
