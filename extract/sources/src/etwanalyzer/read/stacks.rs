//! Reads frames from text.

use std::collections::HashMap;

use handlescope_extract::intern::ByteInterner;
use handlescope_model::rules::is_exit_function;
use handlescope_model::tables::{
    Frame, Frames, Methods, Stack, StackEvents, Stacks, Symbol, Symbols,
};
use handlescope_model::{FrameIdx, ModuleIdx};
use serde::de::MapAccess;

use super::super::record::{Elements, Fill, Member, Record, Rows, members};
use super::super::records::{HANDLESCOPE_MEMBER, UNKNOWN_METHOD, UNKNOWN_MODULE};
use super::modules::ImportedModules;

/// The stacks, which events refer to by number.
#[derive(Default)]
pub struct ImportedStacks {
    /// Row in the stacks table by number; `None` for an empty text.
    rows: Vec<Option<u32>>,
    /// Whether the stack shows process exit, by number.
    of_exits: Vec<bool>,
    table: Stacks,
    frames: FrameTexts,
    trusts_handlescope: bool,
    handlescope: Option<StackTables>,
}

/// The tables made from the stacks, or as this program wrote them.
#[derive(Default)]
pub struct StackTables {
    /// In an extract of this program: row of the stacks table for each number in the file.
    rows: Rows<Option<u32>>,
    pub stacks: Stacks,
    pub frames: Frames,
    pub methods: Methods,
    pub symbols: Symbols,
    pub stack_events: StackEvents,
}

impl Record for ImportedStacks {
    const MEMBERS: &'static [&'static str] = &["StackList", HANDLESCOPE_MEMBER];

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if name != HANDLESCOPE_MEMBER {
            return map.next_value_seed(Fill(&mut Elements(EachText(self))));
        }
        let mut tables = None;
        map.next_value_seed(Fill(&mut tables))?;
        self.handlescope = tables.filter(|_| self.trusts_handlescope).or(self.handlescope.take());
        Ok(())
    }
}

members! { StackTables {
    "Rows" => rows,
    "Stacks" => stacks,
    "Frames" => frames,
    "Methods" => methods,
    "Symbols" => symbols,
    "StackEvents" => stack_events,
} }

/// Takes the texts of the stacks in sequence; null counts as the empty text.
struct EachText<'a>(&'a mut ImportedStacks);

impl Member for EachText<'_> {
    const EXPECTED: &'static str = String::EXPECTED;
    const LIST: &'static str = String::LIST;

    fn null(&mut self) {
        self.0.add("");
    }

    fn text(&mut self, value: &str) -> bool {
        self.0.add(value);
        true
    }
}

impl ImportedStacks {
    /// Creates an empty collection. With `trusts_handlescope`, our own tables are used.
    pub fn new(trusts_handlescope: bool) -> Self {
        Self { trusts_handlescope, ..Self::default() }
    }

    /// Adds the text of the next stack: one line per frame, innermost first.
    fn add(&mut self, text: &str) {
        if self.handlescope.is_some() {
            return;
        }
        let lines = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .filter(|line| !line.is_empty());
        self.of_exits.push(lines.clone().any(is_of_exit));
        let frames: Vec<FrameIdx> = lines.map(|line| self.frames.row(line)).collect();
        self.rows.push((!frames.is_empty()).then_some(self.table.len() as u32));
        if !frames.is_empty() {
            self.table.push(Stack { frames });
        }
    }

    /// Returns the lookup of stacks by number. If `is_missing`, the file has no texts; then the numbers still show
    /// which events share a stack.
    pub fn numbers(&mut self, is_missing: bool) -> StackLookup<'_> {
        if let Some(tables) = &mut self.handlescope {
            let heights = tables.stacks.len() as u32;
            let known = |row: &Option<u32>| row.filter(|row| *row < heights);
            self.rows = tables.rows.0.iter().map(known).collect();
        }
        let is_by_handlescope = self.handlescope.is_some();
        let table = self.handlescope.as_mut().map_or(&mut self.table, |tables| &mut tables.stacks);
        let without_text = is_missing.then(HashMap::new);
        StackLookup {
            rows: &self.rows,
            of_exits: &self.of_exits,
            table,
            is_by_handlescope,
            without_text,
        }
    }

    /// Returns the tables. Modules known only from stacks are added to `modules`.
    pub fn into_tables(self, modules: &mut ImportedModules) -> StackTables {
        if let Some(tables) = self.handlescope {
            return tables;
        }
        let (frames, symbols) = self.frames.tables(modules);
        StackTables { stacks: self.table, frames, symbols, ..StackTables::default() }
    }
}

fn is_of_exit(frame: &str) -> bool {
    frame.split_once('!').is_some_and(|(_, function)| is_exit_function(function))
}

/// Looks up stacks by their number in the file.
pub struct StackLookup<'a> {
    rows: &'a [Option<u32>],
    of_exits: &'a [bool],
    table: &'a mut Stacks,
    is_by_handlescope: bool,
    without_text: Option<HashMap<i64, u32>>,
}

impl StackLookup<'_> {
    /// Returns the row of a stack; `None` for the empty text and for unknown numbers.
    pub fn row(&mut self, number: Option<i64>) -> Option<u32> {
        let number = number.filter(|number| *number >= 0)?;
        if let Some(known) = &mut self.without_text {
            let table = &mut *self.table;
            return Some(*known.entry(number).or_insert_with(|| {
                table.push(Stack::default());
                table.len() as u32 - 1
            }));
        }
        self.rows.get(usize::try_from(number).ok()?).copied().flatten()
    }

    /// Whether the text of a stack shows process exit.
    pub fn is_of_exit(&self, number: Option<i64>) -> bool {
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.and_then(|number| self.of_exits.get(number)).copied().unwrap_or_default()
    }

    /// Returns the row recorded by this program.
    pub fn handlescope_row(&self, row: Option<u32>) -> Option<u32> {
        row.filter(|row| self.is_by_handlescope && (*row as usize) < self.table.len())
    }

    /// Whether there is a stack of this number, even with an empty text.
    pub fn has(&self, number: i64) -> bool {
        self.without_text.is_some()
            || usize::try_from(number).is_ok_and(|number| number < self.rows.len())
    }
}

/// File extensions that certainly belong to modules.
const MODULE_ENDINGS: [&str; 12] =
    ["dll", "exe", "sys", "drv", "ocx", "cpl", "ax", "acm", "ime", "pyd", "node", "winmd"];

/// The parsed text of a frame.
#[derive(Debug, PartialEq, Eq)]
struct FrameText<'a> {
    module: Option<&'a str>,
    function: Option<&'a str>,
    rva: Option<u64>,
}

impl<'a> FrameText<'a> {
    /// Parses `module!method`, `module+0x1A2B`, `module` or, in extracts of early versions, `method`.
    fn parse(text: &'a str, is_module: impl Fn(&str) -> bool) -> Self {
        let nothing = Self { module: None, function: None, rva: None };
        let known = |module: &'a str| Some(module).filter(|name| *name != UNKNOWN_MODULE);
        // Methods may contain anything; modules contain no `!`.
        if let Some((module, function)) = text.split_once('!') {
            let function =
                Some(function).filter(|text| *text != UNKNOWN_METHOD && !text.is_empty());
            return Self { module: known(module), function, rva: None };
        }
        if text == UNKNOWN_METHOD || text == UNKNOWN_MODULE {
            return nothing;
        }
        if let Some((module, digits)) = text.rsplit_once("+0x")
            && let Ok(rva) = u64::from_str_radix(digits, 16)
        {
            return Self { module: known(module), rva: Some(rva), ..nothing };
        }
        let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
        if MODULE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)) || is_module(text)
        {
            return Self { module: Some(text), ..nothing };
        }
        Self { function: Some(text), ..nothing }
    }
}

/// Distinct frame texts.
#[derive(Default)]
pub struct FrameTexts(ByteInterner);

impl FrameTexts {
    /// Returns the row of a text in the frames table.
    pub fn row(&mut self, text: &str) -> FrameIdx {
        FrameIdx(self.0.intern(text.as_bytes()))
    }

    /// Returns the frames, and the names of those that have one. Unknown modules are added.
    pub fn tables(&self, modules: &mut ImportedModules) -> (Frames, Symbols) {
        let (mut frames, mut symbols) = (Frames::default(), Symbols::default());
        for row in 0..self.0.count() {
            let text = self.0.text(row);
            let frame = FrameText::parse(&text, |name| modules.has(name));
            let module = frame.module.map(|name| ModuleIdx(modules.row(name)));
            frames.push(Frame { module, rva: frame.rva, ..Frame::default() });
            if let Some(function) = frame.function {
                symbols.push(Symbol {
                    frame: FrameIdx(row),
                    function: function.to_owned(),
                    ..Symbol::default()
                });
            }
        }
        (frames, symbols)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;

    use super::*;

    fn stacks(text: &str) -> ImportedStacks {
        let mut stacks = ImportedStacks::default();
        Fill(&mut stacks)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        stacks
    }

    #[test]
    fn lines_end_in_lf_or_cr_lf_or_at_the_end_of_the_text() {
        let mut stacks = stacks(r#"{"StackList":["","a!F\r\nb!G\r\n","a!F\nb!G","b!G\n\n",null]}"#);
        let mut numbers = stacks.numbers(false);
        let rows = [0, 1, 2, 3, 4, 5, -1].map(|number| numbers.row(Some(number)));
        assert_eq!(rows, [None, Some(0), Some(1), Some(2), None, None, None]);
        assert_eq!(numbers.row(None), None);
        let table = stacks.into_tables(&mut ImportedModules::default()).stacks;
        let (a, b) = (FrameIdx(0), FrameIdx(1));
        assert_eq!(table.frames, [vec![a, b], vec![a, b], vec![b]]);
    }

    #[test]
    fn without_texts_equal_numbers_are_equal_stacks() {
        let mut stacks = ImportedStacks::default();
        let mut numbers = stacks.numbers(true);
        let rows = [9, 5, 9, -1].map(|number| numbers.row(Some(number)));
        assert_eq!(rows, [Some(0), Some(1), Some(0), None]);
        assert_eq!(stacks.into_tables(&mut ImportedModules::default()).stacks.len(), 2);
    }

    fn frame(text: &str) -> (Option<&str>, Option<&str>, Option<u64>) {
        let FrameText { module, function, rva } = FrameText::parse(text, |name| name == "odd.ext");
        (module, function, rva)
    }

    #[test]
    fn every_form_of_a_frame_is_read() {
        assert_eq!(
            frame("ntdll.dll!NtCreateEvent"),
            (Some("ntdll.dll"), Some("NtCreateEvent"), None)
        );
        assert_eq!(
            frame("a.exe!std::map<int, char [4]>::operator!= x"),
            (Some("a.exe"), Some("std::map<int, char [4]>::operator!= x"), None)
        );
        assert_eq!(frame("<UnknownModule>!Stub"), (None, Some("Stub"), None));
        assert_eq!(frame("leaky.exe+0x1A2B"), (Some("leaky.exe"), None, Some(0x1A2B)));
        assert_eq!(frame("<UnknownModule>+0x10"), (None, None, Some(0x10)));
        assert_eq!(frame("winspool.drv"), (Some("winspool.drv"), None, None));
        assert_eq!(frame("odd.ext"), (Some("odd.ext"), None, None));
        assert_eq!(frame("<UnknownMethod>"), (None, None, None));
        assert_eq!(frame("a.dll!<UnknownMethod>"), (Some("a.dll"), None, None));
    }

    #[test]
    fn names_without_module_are_those_of_early_versions() {
        assert_eq!(frame("NtCreateEvent"), (None, Some("NtCreateEvent"), None));
        assert_eq!(frame("System.String.Concat"), (None, Some("System.String.Concat"), None));
        assert_eq!(frame("operator+0xZZ"), (None, Some("operator+0xZZ"), None));
    }

    #[test]
    fn equal_texts_share_a_frame() {
        let (mut texts, mut modules) = (FrameTexts::default(), ImportedModules::default());
        let rows = ["a.dll!F", "a.dll!G", "a.dll!F"].map(|text| texts.row(text));
        assert_eq!(rows, [0, 1, 0].map(FrameIdx));
        let (frames, symbols) = texts.tables(&mut modules);
        assert_eq!(frames.module, [Some(ModuleIdx(0)), Some(ModuleIdx(0))]);
        assert_eq!(
            (symbols.function, symbols.offset),
            (vec!["F".into(), "G".into()], vec![None, None])
        );
    }
}
