//! Writes the stacks part: distinct texts with one line per frame.

use std::collections::HashMap;
use std::fmt::Write;

use handlescope_extract::intern::{ByteInterner, Interner};
use handlescope_model::tables::{Frames, Methods, Modules, StackEvents, Stacks, Symbols};
use handlescope_model::{Cancel, FrameIdx, StackIdx, TableRows, Trace};
use serde::ser::{Serialize, Serializer};

use super::super::records::{UNKNOWN_METHOD, UNKNOWN_MODULE};
use super::json::{Each, SaveError, TableWindow, rows_of};

/// Stacks between two checks for cancellation.
const CHECK_EVERY: usize = 1 << 12;

/// Line terminator. On Windows, ETWAnalyzer ends lines with CR LF. Its own filters then see a CR at the end of each
/// frame, so that none matches a frame exactly. Its reader accepts either.
const LINE_END: &str = "\n";

/// The texts of a trace's stacks.
///
/// The format needs each text once. Stacks share a text if they differ only in properties missing from it, such as
/// offsets after named functions.
pub struct WrittenStackTexts {
    lines: FrameLines,
    /// Line numbers of each text; the first text is empty, for events without stack.
    texts: Interner<u32>,
    /// Number of the text, for each row of the stacks table.
    of_row: Vec<u32>,
    /// First row with each text; `None` if no stack has it.
    first_row: Vec<Option<u32>>,
}

impl WrittenStackTexts {
    pub fn new(
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
        let (mut of_row, mut first_row, mut numbers) = (Vec::new(), vec![None], Vec::new());
        let mut stacks = TableWindow::<Stacks>::new(trace);
        while let Some(stack) = stacks.row(of_row.len())? {
            if of_row.len().is_multiple_of(CHECK_EVERY) {
                cancel.check()?;
            }
            numbers.clear();
            numbers.extend(stack.frames.iter().flat_map(|frame| lines.of(*frame)));
            let text = texts.intern(&numbers);
            if text as usize == first_row.len() {
                first_row.push(Some(of_row.len() as u32));
            }
            of_row.push(text);
        }
        Ok(Self { lines, texts, of_row, first_row })
    }

    /// Returns the number of an event's stack text, and the row of the stack unless it is the first with this text.
    pub fn number(&self, stack: Option<StackIdx>) -> (u32, Option<u32>) {
        let Some(StackIdx(row)) = stack else { return (0, None) };
        let text = self.of_row.get(row as usize).copied().unwrap_or_default();
        let first = self.first_row.get(text as usize).copied().flatten();
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

    /// Returns the first row with each text; `None` if no stack has it.
    fn rows(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.first_row.iter().copied()
    }
}

pub struct StacksPart<'a> {
    pub trace: &'a Trace,
    pub texts: &'a WrittenStackTexts,
    pub frames: &'a Frames,
    pub methods: &'a Methods,
    pub symbols: &'a Symbols,
}

impl Serialize for StacksPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct StacksFile<O, L> {
            // Before the texts, so that a reader that knows these tables need not parse the texts.
            handlescope: O,
            stack_list: L,
        }
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct StackLists<F, M, Y, S, R, E> {
            frames: F,
            methods: M,
            symbols: Y,
            stacks: S,
            rows: R,
            stack_events: E,
        }
        let texts = self.texts;
        StacksFile {
            handlescope: StackLists {
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

/// ETWAnalyzer writes an offset after modules with these extensions, only in lower case.
const WITH_OFFSET: [&str; 3] = [".dll", ".exe", ".sys"];

/// The lines of each frame: one for the frame itself, and one for each function inlined there.
#[derive(Default)]
pub struct FrameLines {
    texts: ByteInterner,
    /// Numbers of lines that belong together.
    lists: Interner<u32>,
    /// List of each frame.
    of_frame: Vec<u32>,
}

impl FrameLines {
    pub fn new(frames: &Frames, modules: &Modules, methods: &Methods, symbols: &Symbols) -> Self {
        let functions = functions_by_frame(symbols);
        let mut lines = Self::default();
        let mut list = Vec::new();
        for (row, frame) in (0..).map(FrameIdx).zip(frames.rows()) {
            let module = frame.module.and_then(|module| modules.name.get(module.row()));
            let method = frame.method.and_then(|method| methods.row(method.row()));
            let native = functions.get(&row).map_or(&[][..], Vec::as_slice);
            list.clear();
            match method {
                Some(method) => {
                    let assembly = method.module.as_deref().unwrap_or(UNKNOWN_MODULE);
                    let dot = if method.type_name.is_empty() { "" } else { "." };
                    let (of_type, name) = (&method.type_name, &method.name);
                    list.push(lines.line(&format!("{assembly}!{of_type}{dot}{name}")));
                }
                None if native.is_empty() => list.push(lines.line(&location(module, frame.rva))),
                None => {
                    let module = module.map_or(UNKNOWN_MODULE, String::as_str);
                    for (_, function) in native {
                        list.push(lines.line(&format!("{module}!{function}")));
                    }
                }
            }
            let list = lines.lists.intern(&list);
            lines.of_frame.push(list);
        }
        lines
    }

    /// Returns the number of a line.
    fn line(&mut self, text: &str) -> u32 {
        // A frame is one line, even if a function has a line break in its name.
        self.texts.intern(text.replace(['\r', '\n'], " ").as_bytes())
    }

    /// Returns the numbers of a frame's lines; equal texts have equal numbers.
    pub fn of(&self, frame: FrameIdx) -> &[u32] {
        self.of_frame.get(frame.row()).map_or(&[], |list| self.lists.get(*list))
    }

    pub fn text(&self, line: u32) -> &[u8] {
        self.texts.get(line)
    }
}

/// Returns the functions of each frame with their depths, innermost first.
fn functions_by_frame(symbols: &Symbols) -> HashMap<FrameIdx, Vec<(u32, &str)>> {
    let mut functions: HashMap<FrameIdx, Vec<(u32, &str)>> = HashMap::new();
    let rows = symbols.frame.iter().zip(&symbols.depth).zip(&symbols.function);
    for ((frame, depth), function) in rows {
        functions.entry(*frame).or_default().push((*depth, function));
    }
    for functions in functions.values_mut() {
        functions.sort_by_key(|(depth, _)| u32::MAX - depth);
    }
    functions
}

/// Formats a frame without a name.
fn location(module: Option<&String>, rva: Option<u64>) -> String {
    let Some(module) = module else { return UNKNOWN_METHOD.to_owned() };
    let mut text = module.clone();
    let has_offset = WITH_OFFSET.iter().any(|ending| module.ends_with(ending));
    if let Some(rva) = rva.filter(|rva| *rva > 0 && has_offset) {
        // Writing to a string does not fail.
        let _ = write!(text, "+0x{rva:X}");
    }
    text
}

#[cfg(test)]
mod tests {
    use handlescope_model::tables::{Frame, Method, Module, Symbol};
    use handlescope_model::{MethodIdx, ModuleIdx};

    use super::*;

    fn lines(frames: &[Frame], symbols: &[(u32, u32, &str)]) -> Vec<Vec<String>> {
        let mut tables = (Frames::default(), Modules::default(), Methods::default());
        for frame in frames {
            tables.0.push(frame.clone());
        }
        for name in ["a.dll", "B.EXE", "c.drv", "d.sys"] {
            tables.1.push(Module { name: name.into(), ..Module::default() });
        }
        let method = |module: Option<&str>, type_name: &str, name: &str| Method {
            module: module.map(str::to_owned),
            type_name: type_name.into(),
            name: name.into(),
            ..Method::default()
        };
        tables.2.push(method(Some("System.Core.dll"), "System.List`1[T]", "Add"));
        tables.2.push(method(None, "", "Main"));
        let mut table = Symbols::default();
        for (frame, depth, function) in symbols {
            let (frame, function) = (FrameIdx(*frame), (*function).to_owned());
            table.push(Symbol { frame, depth: *depth, function, ..Symbol::default() });
        }
        let lines = FrameLines::new(&tables.0, &tables.1, &tables.2, &table);
        let text = |line: &u32| String::from_utf8(lines.text(*line).to_vec()).unwrap();
        (0..frames.len())
            .map(|f| lines.of(FrameIdx::from_row(f)).iter().map(text).collect())
            .collect()
    }

    fn at(module: Option<u32>, rva: Option<u64>) -> Frame {
        Frame { module: module.map(ModuleIdx), rva, ..Frame::default() }
    }

    #[test]
    fn frames_without_name_have_an_offset_as_etw_analyzer_writes_it() {
        let frames = [
            at(Some(0), Some(0x1A2B)),
            at(Some(1), Some(0x1A2B)),
            at(Some(2), Some(0x1A2B)),
            at(Some(3), Some(0)),
            at(Some(3), Some(10)),
            at(Some(0), None),
            at(None, None),
            Frame { address: Some(0x7FF0), ..Frame::default() },
        ];
        let expected =
            ["a.dll+0x1A2B", "B.EXE", "c.drv", "d.sys", "d.sys+0xA", "a.dll", "<UnknownMethod>"];
        let lines: Vec<_> = lines(&frames, &[]).into_iter().flatten().collect();
        assert_eq!(lines[..7], expected);
        assert_eq!(lines[7], "<UnknownMethod>");
    }

    #[test]
    fn inlined_functions_are_separate_lines_innermost_first() {
        let frames = [at(Some(0), Some(5)), at(None, None), at(Some(0), Some(9))];
        let symbols = [(0, 0, "outer"), (0, 1, "inner a b"), (1, 0, "Stub"), (2, 0, "x\r\ny")];
        let expected = [
            vec!["a.dll!inner a b", "a.dll!outer"],
            vec!["<UnknownModule>!Stub"],
            vec!["a.dll!x  y"],
        ];
        assert_eq!(lines(&frames, &symbols), expected);
    }

    #[test]
    fn managed_methods_are_named_by_their_assembly() {
        let method = |row| Frame { method: Some(MethodIdx(row)), ..at(Some(0), Some(5)) };
        let expected = [["System.Core.dll!System.List`1[T].Add"], ["<UnknownModule>!Main"]];
        assert_eq!(lines(&[method(0), method(1)], &[]), expected);
    }
}
