//! Stacks with the number of handles each opened.

use std::collections::HashMap;
use std::hash::Hash;

use handlescope_model::{FILE_MAPPING_NAME, StackIdx, Untrusted};

use super::Measure;
use super::group::GroupAmounts;
use crate::text::trace_name;
use handlescope_query::{FrameView, TraceAnswer, TrimmedStacks, with_program};

/// Unit of handles.
const HANDLES: &str = "handles";

/// Unit of file mappings.
const VIEWS: &str = "views";

/// Name of the stack of a handle without one.
pub const NO_STACK: &str = "no stack";

/// A stack and its weight.
pub struct FoldedStack {
    /// Frames from the outermost to the innermost: process, frames, type of the object.
    pub frames: Vec<PictureFrame>,
    /// Number of handles that count.
    pub count: u64,
    /// Number before, for a comparison.
    pub before: u64,
}

/// The stacks of a trace.
pub struct FoldedFile {
    /// The name of the trace.
    pub name: String,
    pub stacks: Vec<FoldedStack>,
}

impl FoldedFile {
    pub fn new<'a, 'g>(
        answer: &impl TraceAnswer<'a>,
        groups: impl Iterator<Item = GroupAmounts<'g>>,
        measure: Measure,
    ) -> Self {
        let name = trace_name(answer.about().path);
        Self { name, stacks: folded(answer, groups, measure) }
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PictureFrame {
    /// Name, escaped as [`Untrusted`].
    pub name: String,
    /// Source file and line, if the symbols have them.
    pub source: Option<(String, Option<u32>)>,
    /// Whether it is a function of a program rather than of the system.
    pub is_of_program: bool,
}

/// Values without duplicates, in the order in which they came first.
pub struct UniqueValues<T> {
    pub values: Vec<T>,
    numbers: HashMap<T, usize>,
}

/// Frames without duplicates.
pub type FrameTable = UniqueValues<PictureFrame>;

impl<T> Default for UniqueValues<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> UniqueValues<T> {
    /// Returns the number of a value, from 0.
    pub fn number(&mut self, value: &T) -> usize {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len();
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }
}

/// Returns the stacks of groups of which something counts: process, frames, and type, or kind and allocator.
pub fn folded<'a, 'g>(
    answer: &impl TraceAnswer<'a>,
    groups: impl Iterator<Item = GroupAmounts<'g>>,
    measure: Measure,
) -> Vec<FoldedStack> {
    groups
        .map(|(group, amounts)| (group, amounts.map(|amount| measure.width(amount))))
        .filter(|(_, [_, count])| *count > 0)
        .map(|(group, [before, count])| {
            let names = [group.type_name, group.allocator];
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let frames = [PictureFrame::named(&group.process)]
                .into_iter()
                .chain(stack_frames(answer, group.stack))
                .chain([PictureFrame::from_type(&names.join(" "))]);
            FoldedStack { frames: frames.collect(), count, before }
        })
        .collect()
}

/// Returns the unit of the counts, from the innermost frames: they are the types of the objects.
pub fn unit(files: &[FoldedFile]) -> &'static str {
    let mapping = PictureFrame::from_type(FILE_MAPPING_NAME);
    let types =
        || files.iter().flat_map(|file| &file.stacks).filter_map(|stack| stack.frames.last());
    match (types().any(|frame| *frame == mapping), types().all(|frame| *frame == mapping)) {
        (false, _) => HANDLES,
        (true, true) => VIEWS,
        (true, false) => "handles and views",
    }
}

/// Returns the untrimmed frames of a stack, outermost first.
pub fn stack_frames<'a>(
    answer: &impl TraceAnswer<'a>,
    stack: Option<StackIdx>,
) -> Vec<PictureFrame> {
    let Some((stack, frames)) = stack.zip(answer.frames()) else {
        return vec![PictureFrame::named(NO_STACK)];
    };
    let named = frames.named();
    let views = TrimmedStacks::views(answer.trims(), &named, stack);
    let mut frames: Vec<PictureFrame> = PictureFrame::from_stack(views).collect();
    frames.reverse();
    frames
}

impl PictureFrame {
    /// Creates a frame for a type. It has brackets, which no function has.
    pub fn from_type(name: &str) -> Self {
        Self::named(&format!("[{name}]"))
    }

    pub fn named(name: &str) -> Self {
        Self { name: Untrusted(name).to_string(), source: None, is_of_program: false }
    }

    /// Returns the frames of a stack, in the same order.
    pub fn from_stack<'f>(
        frames: impl Iterator<Item = FrameView<'f>>,
    ) -> impl Iterator<Item = Self> {
        with_program(frames)
            .map(|(frame, is_of_program)| Self { is_of_program, ..Self::from_view(&frame) })
    }

    /// Creates a frame, not knowing whether it is of a program.
    pub fn from_view(frame: &FrameView<'_>) -> Self {
        let name = frame.name;
        let file = name.and_then(|name| name.file.as_deref());
        let line = name.and_then(|name| name.line);
        let source = file.map(|file| (Untrusted(file).to_string(), line));
        // Unknown code is only the same at the same address.
        let name = match frame.identity().address() {
            Some(address) => format!("{frame} 0x{address:X}"),
            None => frame.to_string(),
        };
        Self { source, ..Self::named(&name) }
    }
}
