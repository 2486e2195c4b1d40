//! The stacks part: texts, each once.

use handlescope_model::tables::{Frames, Methods, Modules, StackEvents, Stacks, Symbols};
use handlescope_model::{Cancel, StackIdx, TableRows, Trace};
use serde::ser::{Serialize, Serializer};

use super::error::SaveError;
use super::frames::FrameLines;
use super::json::{Each, Window, rows_of};
use crate::intern::Interner;
use crate::lifecycle::NONE;

/// Stacks between two looks at Ctrl-C.
const CHECK_EVERY: usize = 1 << 12;

/// What ends a line. ETWAnalyzer on Windows ends them with CR LF, which its own filters then find at
/// the end of each frame, so that none matches a frame exactly; its reader takes either.
const LINE_END: &str = "\n";

/// The texts of the stacks of a trace.
///
/// The format wants each text once. Stacks that differ only in what the text does not hold, as in
/// offsets after named functions, share one.
pub(super) struct StackTexts {
    lines: FrameLines,
    /// Numbers of lines, for each text; the first one is empty, for events without stack.
    texts: Interner<u32>,
    /// For each row of the stacks table the number of its text.
    of_row: Vec<u32>,
    /// For each text the first row that has it, or [`NONE`].
    first_row: Vec<u32>,
}

impl StackTexts {
    pub(super) fn new(
        trace: &Trace,
        frames: &Frames,
        modules: &Modules,
        methods: &Methods,
        symbols: &Symbols,
        cancel: &Cancel,
    ) -> Result<Self, SaveError> {
        let lines = FrameLines::new(frames, modules, methods, symbols);
        let mut texts = Interner::default();
        texts.intern(&[]);
        let (mut of_row, mut first_row, mut numbers) = (Vec::new(), vec![NONE], Vec::new());
        let mut stacks = Window::<Stacks>::new(trace);
        while let Some(stack) = stacks.row(of_row.len())? {
            if of_row.len().is_multiple_of(CHECK_EVERY) {
                cancel.check()?;
            }
            numbers.clear();
            numbers.extend(stack.frames.iter().flat_map(|frame| lines.of(*frame)));
            let text = texts.intern(&numbers);
            if text as usize == first_row.len() {
                first_row.push(of_row.len() as u32);
            }
            of_row.push(text);
        }
        Ok(Self { lines, texts, of_row, first_row })
    }

    /// The number of the text of an event's stack, and its row if that is not the first one with
    /// this text.
    pub(super) fn number(&self, stack: Option<StackIdx>) -> (u32, Option<u32>) {
        let Some(StackIdx(row)) = stack else { return (0, None) };
        let text = self.of_row.get(row as usize).copied().unwrap_or_default();
        let first = self.first_row.get(text as usize).copied();
        (text, Some(row).filter(|row| Some(*row) != first))
    }

    fn text(&self, number: usize) -> String {
        let mut text = Vec::new();
        for line in self.texts.get(number as u32) {
            text.extend_from_slice(self.lines.text(*line));
            text.extend_from_slice(LINE_END.as_bytes());
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The first row of each text; null for a text that is not that of a stack.
    fn rows(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.first_row.iter().map(|row| Some(*row).filter(|row| *row != NONE))
    }
}

pub(super) struct StacksPart<'a> {
    pub(super) trace: &'a Trace,
    pub(super) texts: &'a StackTexts,
    pub(super) frames: &'a Frames,
    pub(super) methods: &'a Methods,
    pub(super) symbols: &'a Symbols,
}

impl Serialize for StacksPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Part<O, L> {
            // In front of the texts: who knows it need not take them apart.
            handlescope: O,
            stack_list: L,
        }
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Own<F, M, Y, S, R, E> {
            frames: F,
            methods: M,
            symbols: Y,
            stacks: S,
            rows: R,
            stack_events: E,
        }
        let texts = self.texts;
        Part {
            handlescope: Own {
                frames: Each(|| self.frames.rows()),
                methods: Each(|| self.methods.rows()),
                symbols: Each(|| self.symbols.rows()),
                stacks: rows_of::<Stacks>(self.trace),
                rows: Each(|| texts.rows()),
                stack_events: rows_of::<StackEvents>(self.trace),
            },
            stack_list: Each(|| (0..texts.first_row.len()).map(|number| texts.text(number))),
        }
        .serialize(serializer)
    }
}
