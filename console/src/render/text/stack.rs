//! Stacks, behind `Stack: `.

use std::fmt;
use std::io::{self, Write};

use console::measure_text_width;

use handlescope_model::StackIdx;

use crate::query::{FileAnswer, FrameView, ModuleBases, NamedFrames};
use crate::settings::StackDisplayArgs;
use crate::terminal::Clean;

/// How stacks are shown.
pub(in crate::render) struct StackStyle<'a> {
    /// The names, with `-ShowStack`.
    pub(in crate::render) frames: Option<NamedFrames<'a>>,
    /// Where modules are, with `-ShowAddress`.
    pub(in crate::render) bases: Option<&'a ModuleBases>,
    /// Whether file and line are shown, with `-ShowLine`.
    pub(in crate::render) has_lines: bool,
}

impl<'a> StackStyle<'a> {
    /// How the stacks of objects are shown.
    pub(in crate::render) fn of(file: &'a FileAnswer<'_>, stacks: StackDisplayArgs) -> Self {
        let frames = file.file.frames.as_ref().filter(|_| stacks.show);
        Self {
            frames: frames.map(|frames| frames.named()),
            bases: stacks.address.then_some(&file.bases),
            has_lines: stacks.line,
        }
    }
}

impl StackStyle<'_> {
    /// Writes the stack of an event and ends its line: the number, or one line for each frame and
    /// an empty one behind them. `space` is what is left of the line on a terminal.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        stack: Option<StackIdx>,
        space: Option<usize>,
    ) -> io::Result<()> {
        let Some(stack) = stack else { return writeln!(out, "None") };
        let Some(lines) = self.lines(stack) else { return writeln!(out, "{stack}") };
        let mut lines = lines.peekable();
        // The innermost frame says most: it gets a line of its own before it is cut.
        if let (Some(space), Some(first)) = (space, lines.peek())
            && measure_text_width(first) > space
        {
            writeln!(out)?;
        }
        for line in lines {
            writeln!(out, "{}", Clean(&line))?;
        }
        writeln!(out)
    }

    /// A line for each frame of a stack, if frames are to be shown.
    pub(in crate::render) fn lines(
        &self,
        stack: StackIdx,
    ) -> Option<impl Iterator<Item = String> + '_> {
        let frames = self.frames.as_ref()?.stack(stack);
        let Self { bases, has_lines, .. } = *self;
        Some(frames.map(move |frame| Line { frame, bases, has_lines }.to_string()))
    }
}

/// The line of a frame, as the trace and the symbols have it.
struct Line<'a> {
    frame: FrameView<'a>,
    bases: Option<&'a ModuleBases>,
    has_lines: bool,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame, bases, has_lines } = self;
        frame.fmt(f)?;
        if frame.is_inlined() {
            // Its place is that of the frame below.
            f.write_str(" [inlined]")?;
        } else {
            if let (Some(_), Some(offset)) = (bases, frame.offset()) {
                write!(f, "+0x{offset:X}")?;
            }
            // A frame outside of all modules is nothing but its address.
            let shown = bases.and_then(|bases| bases.address(frame));
            if let Some(address) = shown.or(frame.address.filter(|_| frame.is_unknown())) {
                write!(f, " 0x{address:X}")?;
            }
        }
        match frame.name.filter(|_| *has_lines).map(|name| (&name.file, name.line)) {
            Some((Some(file), Some(line))) => write!(f, " {file}:{line}"),
            Some((Some(file), None)) => write!(f, " {file}"),
            _ => Ok(()),
        }
    }
}
