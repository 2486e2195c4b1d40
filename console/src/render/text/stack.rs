//! Stacks, behind `Stack: `.

use std::io::{self, Write};

use super::clean::Clean;
use crate::query::{FrameView, ModuleBases, NamedFrames};

/// How stacks are shown.
pub(super) struct StackStyle<'a> {
    /// The names, with `-ShowStack`.
    pub(super) frames: Option<NamedFrames<'a>>,
    /// Where modules are, with `-ShowAddress`.
    pub(super) bases: Option<&'a ModuleBases>,
}

impl StackStyle<'_> {
    /// Writes the stack of an event and ends its line: the number, or one line for each frame and
    /// an empty one behind them.
    pub(super) fn write(&self, out: &mut impl Write, stack: Option<u32>) -> io::Result<()> {
        let Some(stack) = stack else { return writeln!(out, "None") };
        let Some(frames) = &self.frames else { return writeln!(out, "{stack}") };
        for frame in frames.stack(stack) {
            self.write_frame(out, &frame)?;
        }
        writeln!(out)
    }

    fn write_frame(&self, out: &mut impl Write, frame: &FrameView<'_>) -> io::Result<()> {
        let text = frame.to_string();
        write!(out, "{}", Clean(&text))?;
        if let (Some(_), Some(name)) = (self.bases, frame.name) {
            write!(out, "+0x{:X}", name.offset)?;
        }
        // A frame outside of all modules is nothing but its address.
        let shown = self.bases.and_then(|bases| bases.address(frame));
        if let Some(address) = shown.or(frame.address.filter(|_| frame.module.is_none())) {
            write!(out, " 0x{address:X}")?;
        }
        writeln!(out)
    }
}
