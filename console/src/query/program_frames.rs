//! The frames of a stack that are the program's, and the one that says most about it.

use super::frame_class::{FrameClass, PROCESS_START, is_runtime, is_system_call};
use super::frame_view::FrameView;

impl FrameView<'_> {
    /// How much the frame says.
    pub(crate) fn class(&self) -> FrameClass {
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
pub(crate) fn representative<'a>(
    frames: impl Iterator<Item = FrameView<'a>>,
) -> Option<FrameView<'a>> {
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
pub(crate) fn with_program<'a>(
    frames: impl Iterator<Item = FrameView<'a>>,
) -> impl Iterator<Item = (FrameView<'a>, bool)> {
    let frames: Vec<(FrameView<'a>, FrameClass)> =
        frames.map(|frame| (frame, frame.class())).collect();
    let best = frames.iter().map(|(_, class)| *class).min();
    let shown = best.filter(|best| *best <= FrameClass::Windows);
    frames.into_iter().map(move |(frame, class)| (frame, shown == Some(class)))
}

/// Whether the loader starts a process in a stack that has no frame of the program.
pub(crate) fn is_of_process_start<'a>(mut frames: impl Iterator<Item = FrameView<'a>>) -> bool {
    let mut is_start = false;
    let is_of_program = frames.any(|frame| {
        is_start |= frame.function() == Some(PROCESS_START);
        frame.class() == FrameClass::Program
    });
    is_start && !is_of_program
}

#[cfg(test)]
mod tests {
    use crate::query::fixture::{APP, Fixture, With, create};

    #[test]
    fn the_function_of_a_stack_is_that_of_the_program_else_what_says_most() {
        for (stack, expected) in [
            (
                &[
                    "ntoskrnl.exe!ObpCreateHandle",
                    "ntdll.dll!NtCreateThreadEx",
                    "ucrtbase.dll!_beginthreadex",
                    "app.exe!_beginthreadex",
                    "app.exe!Server::Start",
                    "app.exe!main",
                ][..],
                "app.exe!Server::Start",
            ),
            (&["ntoskrnl.exe!ObpCreateHandle", "combase.dll!Open", "0x1234"], "combase.dll!Open"),
            (
                &["ntoskrnl.exe!ObpCreateHandle", "ntoskrnl.exe!NtOpenFile", "0x1234"],
                "ntoskrnl.exe!NtOpenFile",
            ),
            (
                &["ntoskrnl.exe!ObpCreateHandle", "ntoskrnl.exe!ObOpen"],
                "ntoskrnl.exe!ObpCreateHandle",
            ),
            (&["0x1234", "app.exe+0x10"], "app.exe+0x10"),
            (&["0x1234"], "<UnknownMethod>"),
        ] {
            let mut fixture = Fixture::new();
            let stack = fixture.stack(stack);
            fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
            let saved = fixture.save();
            let functions = saved.ask("-GroupBy function", |answer| {
                let groups = answer.files[0].groups.as_ref().unwrap();
                format!("{:?}", groups.key(groups.tree.shown().next().unwrap()))
            });
            assert!(functions.contains(expected), "{functions} instead of {expected}");
        }
    }
}
