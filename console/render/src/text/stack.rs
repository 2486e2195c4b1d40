//! Stacks, as they follow `Stack: `.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};

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

    /// Hides the frames that the stacks of groups are without.
    pub fn trimmed(self, trims: Option<&'a TrimmedStacks>) -> Self {
        Self { trims, ..self }
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
            let line = Untrusted(&self.line(frame).to_string()).to_string();
            for line in wrapped_name(&line, room).lines() {
                writeln!(out, "{indent}{}", display.screen.paint(role, line))?;
            }
        }
        Ok(())
    }

    /// Returns a line for each frame of a stack, if frames are shown.
    pub fn lines(&self, stack: StackIdx) -> Option<impl Iterator<Item = String>> {
        let frames = TrimmedStacks::views(self.trims, self.frames.as_ref()?, stack);
        Some(frames.map(|frame| self.line(frame).to_string()))
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
        Some(self.line_of_representative(stack)?.to_string())
    }

    /// Returns the representative frame of a stack, from the view of the `program`.
    pub fn representative(&self, stack: StackIdx, program: &str) -> Option<String> {
        let line = self.line_of_representative(stack)?;
        Some(ProgramCall { line, program, callee: None, gap: " " }.to_string())
    }

    fn line_of_representative(&self, stack: StackIdx) -> Option<StackFrameLine<'_>> {
        let frames = self.frames.as_ref()?;
        Some(self.line(TrimmedStacks::representative_view(self.trims, frames, stack)?))
    }

    /// Returns the innermost program frames in one line, innermost first, from the view of the `program`: `Cache::Get
    /// cache.cpp:29  ← Worker::Run :71`. Returns at most `most`.
    pub fn calls(&self, stack: StackIdx, program: &str, most: Option<usize>) -> String {
        let mut calls = String::new();
        let mut callee = None;
        let most = most.unwrap_or(PROGRAM_FRAMES).min(PROGRAM_FRAMES);
        for frame in self.program_frames(stack).take(most) {
            let (arrow, gap) = if callee.is_some() { ("  ← ", " ") } else { ("", "   ") };
            let call = ProgramCall { line: self.line(frame), program, callee, gap };
            let _ = write!(calls, "{arrow}{call}");
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
        let lines: Vec<String> = self
            .program_frames(stack)
            .take(PROGRAM_FRAMES)
            .map(|frame| self.line(frame).to_string())
            .collect();
        if lines.is_empty() { self.representative_line(stack).into_iter().collect() } else { lines }
    }

    fn line<'f>(&'f self, frame: FrameView<'f>) -> StackFrameLine<'f> {
        StackFrameLine { frame, bases: self.bases, has_lines: self.has_lines }
    }
}

/// The line of a frame, with the names from the trace and the symbols.
struct StackFrameLine<'a> {
    frame: FrameView<'a>,
    bases: Option<&'a ModuleBases>,
    has_lines: bool,
}

impl fmt::Display for StackFrameLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame, bases, has_lines } = self;
        frame.fmt(f)?;
        if frame.is_inlined() {
            // An inlined frame has the address of the frame below.
            f.write_str(" [inlined]")?;
        } else {
            if let (Some(_), Some(offset)) = (bases, frame.offset()) {
                write!(f, "+0x{offset:X}")?;
            }
            // A frame outside all modules has only an address.
            let shown = bases.and_then(|bases| bases.address(frame));
            if let Some(address) = shown.or(frame.address.filter(|_| frame.is_unknown())) {
                write!(f, " 0x{address:X}")?;
            }
        }
        match frame.name.filter(|_| *has_lines).map(|name| (&name.file, name.line)) {
            Some((Some(file), Some(line))) => write!(f, " {file}:{line}")?,
            Some((Some(file), None)) => write!(f, " {file}")?,
            _ => {}
        }
        match frame.name.filter(|_| *has_lines).and_then(|name| name.source.as_deref()) {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// A frame in a line about a program.
struct ProgramCall<'a> {
    line: StackFrameLine<'a>,
    program: &'a str,
    callee: Option<FrameView<'a>>,
    /// The text before file and line.
    gap: &'static str,
}

impl fmt::Display for ProgramCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StackFrameLine { frame, bases, has_lines } = self.line;
        let (Some(function), None) = (frame.function(), bases) else { return self.line.fmt(f) };
        let callee = self.callee.map_or((None, None), |it| (it.module_name(), it.function()));
        f.write_str(&call_name((frame.module_name(), function), callee, self.program))?;
        if frame.is_inlined() {
            f.write_str(" [inlined]")?;
        }
        let Some(name) = frame.name.filter(|_| has_lines) else { return Ok(()) };
        let Some(file) = name.file.as_deref() else { return Ok(()) };
        let shared = self.callee.and_then(|callee| callee.name?.file.as_deref());
        let gap = self.gap;
        let file = if shared == Some(file) { "" } else { file };
        match name.line {
            Some(line) => write!(f, "{gap}{file}:{line}"),
            None if file.is_empty() => Ok(()),
            None => write!(f, "{gap}{file}"),
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
