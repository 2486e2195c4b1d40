//! Stacks, as they follow `Stack: `.

use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};

use super::source_place;
use handlescope_query::{
    FrameView, ModuleBases, NamedFrames, TraceAnswer, TrimmedStacks, is_of_process_start,
    with_program,
};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::{Role, wrapped_name};

/// Number of program frames in an abbreviated stack.
const PROGRAM_FRAMES: usize = 3;

/// The style of stacks.
pub struct StackStyle<'a> {
    /// The names, with `-ShowStack`.
    pub frames: Option<NamedFrames<'a>>,
    /// The base addresses of modules, with `-ShowAddress`.
    pub bases: Option<&'a ModuleBases>,
    /// Whether file and line are shown, with `-ShowLine`.
    pub has_lines: bool,
    /// The trims that hide some frames of groups.
    trims: Option<&'a TrimmedStacks>,
}

impl<'a> StackStyle<'a> {
    /// Returns the style of the stacks of an answer.
    pub fn for_answer<'t: 'a>(answer: &'a impl TraceAnswer<'t>, stacks: StackDisplayArgs) -> Self {
        let frames = answer.frames().filter(|_| stacks.show);
        Self::new(frames.map(|frames| frames.named()), &answer.about().bases, stacks)
    }

    /// Returns the style of stacks of these frames.
    pub fn new(
        frames: Option<NamedFrames<'a>>,
        bases: &'a ModuleBases,
        stacks: StackDisplayArgs,
    ) -> Self {
        let bases = stacks.address.then_some(bases);
        Self { frames, bases, has_lines: stacks.line, trims: None }
    }

    /// Returns the style of the stacks of an answer's groups: always with names, and without the frames that groups
    /// leave out.
    pub fn for_groups<'t: 'a>(answer: &'a impl TraceAnswer<'t>, stacks: StackDisplayArgs) -> Self {
        let style = Self::for_answer(answer, StackDisplayArgs { show: true, ..stacks });
        Self { trims: answer.trims(), ..style }
    }
}

impl StackStyle<'_> {
    /// Writes the number of an event's stack and ends its line. With `-ShowStack`, a line for each frame follows,
    /// indented by `levels`, and then an empty line.
    pub fn write(
        &self,
        out: &mut impl Write,
        stack: Option<StackIdx>,
        display: &Display,
        levels: usize,
    ) -> io::Result<()> {
        let Some(stack) = stack else { return writeln!(out, "None") };
        writeln!(out, "{stack}")?;
        if self.frames.is_none() {
            return Ok(());
        }
        self.write_frames(out, stack, display, levels)?;
        writeln!(out)
    }

    /// Writes a line for each frame, if frames are shown: system frames dim, program frames bold. A line that is too
    /// long for the screen continues on the next line, indented further.
    pub fn write_frames(
        &self,
        out: &mut impl Write,
        stack: StackIdx,
        display: &Display,
        levels: usize,
    ) -> io::Result<()> {
        let Some(frames) = &self.frames else { return Ok(()) };
        let indent = display.indent(levels);
        let room = display
            .screen
            .width
            .filter(|_| display.clip)
            .map(|width| width.saturating_sub(indent.len()));
        for (frame, is_of_program) in with_program(TrimmedStacks::views(self.trims, frames, stack))
        {
            let role = match is_of_program {
                true => Role::Heading,
                false if frame.is_unknown() => Role::Plain,
                false => Role::Aside,
            };
            let line = Untrusted(&self.line(frame)).to_string();
            for line in wrapped_name(&line, room).lines() {
                writeln!(out, "{indent}{}", display.screen.paint(role, line))?;
            }
        }
        Ok(())
    }

    /// Returns a line for each frame of a stack, if frames are shown.
    pub fn lines(&self, stack: StackIdx) -> Option<impl Iterator<Item = String>> {
        let frames = TrimmedStacks::views(self.trims, self.frames.as_ref()?, stack);
        Some(frames.map(|frame| self.line(frame)))
    }

    /// Returns the lines of a stack as one text.
    pub fn text(&self, stack: Option<StackIdx>) -> Option<String> {
        Some(self.lines(stack?)?.collect::<Vec<_>>().join("\n"))
    }

    /// Returns the frames of the program.
    pub fn program_frames(&self, stack: StackIdx) -> impl Iterator<Item = FrameView<'_>> {
        self.frames
            .iter()
            .flat_map(move |frames| with_program(frames.stack(stack)))
            .filter(|(_, is_of_program)| *is_of_program)
            .map(|(frame, _)| frame)
    }

    /// Whether a stack without program frames is the loader starting a process.
    pub fn is_of_process_start(&self, stack: StackIdx) -> bool {
        let is_start = |frames: &NamedFrames<'_>| is_of_process_start(frames.stack(stack));
        self.frames.as_ref().is_some_and(is_start)
    }

    /// Returns the line of the representative frame of a stack.
    pub fn representative_line(&self, stack: StackIdx) -> Option<String> {
        Some(self.line(self.representative_frame(stack)?))
    }

    /// Returns the representative frame of a stack, from the view of the `program`.
    pub fn representative(&self, stack: StackIdx, program: &str) -> Option<String> {
        Some(self.call(self.representative_frame(stack)?, program, None, " "))
    }

    fn representative_frame(&self, stack: StackIdx) -> Option<FrameView<'_>> {
        TrimmedStacks::representative_view(self.trims, self.frames.as_ref()?, stack)
    }

    /// Returns the innermost program frames in one line, innermost first, from the view of the `program`: `Cache::Get
    /// cache.cpp:29  ← Worker::Run :71`. Returns at most `most`.
    pub fn calls(&self, stack: StackIdx, program: &str, most: Option<usize>) -> String {
        let mut calls = String::new();
        let mut callee = None;
        let most = most.unwrap_or(PROGRAM_FRAMES).min(PROGRAM_FRAMES);
        for frame in self.program_frames(stack).take(most) {
            let (arrow, gap) = if callee.is_some() { ("  ← ", " ") } else { ("", "   ") };
            calls += arrow;
            calls += &self.call(frame, program, callee, gap);
            callee = Some(frame);
        }
        match callee {
            Some(_) => calls,
            None => self.representative(stack, program).unwrap_or_default(),
        }
    }

    /// Returns all lines of a stack, or the first lines of the program. For a group without a stack, says that it has
    /// none.
    pub fn short_lines(&self, stack: Option<StackIdx>, full: bool) -> Vec<String> {
        let Some(stack) = stack else { return vec!["no create stack".to_owned()] };
        if full {
            return self.lines(stack).into_iter().flatten().collect();
        }
        let lines: Vec<String> =
            self.program_frames(stack).take(PROGRAM_FRAMES).map(|frame| self.line(frame)).collect();
        if lines.is_empty() { self.representative_line(stack).into_iter().collect() } else { lines }
    }

    /// Returns the line of a frame, with the names from the trace and the symbols.
    fn line(&self, frame: FrameView<'_>) -> String {
        let mut line = frame.to_string();
        if frame.is_inlined() {
            // An inlined frame has the address of the frame below.
            line += " [inlined]";
        } else {
            if let (Some(_), Some(offset)) = (self.bases, frame.offset()) {
                line += &format!("+0x{offset:X}");
            }
            // A frame outside all modules has only an address.
            let shown = self.bases.and_then(|bases| bases.address(&frame));
            if let Some(address) = shown.or(frame.address.filter(|_| frame.is_unknown())) {
                line += &format!(" 0x{address:X}");
            }
        }
        let Some(name) = frame.name.filter(|_| self.has_lines) else { return line };
        if let Some(file) = &name.file {
            line += &format!(" {}", source_place(file, name.line));
        }
        match &name.source {
            Some(source) => format!("{line} ({source})"),
            None => line,
        }
    }

    /// Returns a frame in a line about a program, with `gap` before its file and line. Omits what it shares with the
    /// frame that it calls.
    fn call(
        &self,
        frame: FrameView<'_>,
        program: &str,
        callee: Option<FrameView<'_>>,
        gap: &str,
    ) -> String {
        let (Some(function), None) = (frame.function(), self.bases) else {
            return self.line(frame);
        };
        let callee_names = callee.map_or((None, None), |it| (it.module_name(), it.function()));
        let mut call = call_name((frame.module_name(), function), callee_names, program);
        if frame.is_inlined() {
            call += " [inlined]";
        }
        let Some(name) = frame.name.filter(|_| self.has_lines) else { return call };
        let Some(file) = name.file.as_deref() else { return call };
        let shared = callee.and_then(|callee| callee.name?.file.as_deref());
        let file = if shared == Some(file) { "" } else { file };
        match name.line {
            Some(line) => format!("{call}{gap}{file}:{line}"),
            None if file.is_empty() => call,
            None => format!("{call}{gap}{file}"),
        }
    }
}

/// Names a call in a line about a program by its module and function. Omits the module if it is the program itself, and
/// what it shares with its callee.
pub fn call_name(
    (module, function): (Option<&str>, &str),
    (callee_module, callee_function): (Option<&str>, Option<&str>),
    program: &str,
) -> String {
    match module.filter(|module| !module.eq_ignore_ascii_case(program)) {
        Some(module) if callee_module != Some(module) => format!("{module}!{function}"),
        _ => within(function, callee_function).to_owned(),
    }
}

/// Removes the namespace that a function shares with the function it calls, if a class remains.
fn within<'f>(function: &'f str, callee: Option<&str>) -> &'f str {
    let namespace = callee.and_then(|callee| callee.split_once("::"));
    let short =
        namespace.and_then(|(namespace, _)| function.strip_prefix(namespace)?.strip_prefix("::"));
    short.filter(|short| short.contains("::")).unwrap_or(function)
}
