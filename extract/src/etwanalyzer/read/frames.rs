//! Frames from text.

use handlescope_model::tables::{Frame, Frames, Symbol, Symbols};
use handlescope_model::{FrameIdx, ModuleIdx};

use super::super::words::{UNKNOWN_METHOD, UNKNOWN_MODULE};
use super::modules_part::ModuleTables;
use crate::intern::ByteInterner;

/// Endings of file names that are certainly modules.
const MODULE_ENDINGS: [&str; 12] =
    ["dll", "exe", "sys", "drv", "ocx", "cpl", "ax", "acm", "ime", "pyd", "node", "winmd"];

/// What a frame text says.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    module: Option<&'a str>,
    function: Option<&'a str>,
    rva: Option<u64>,
}

impl<'a> Place<'a> {
    /// Reads `module!method`, `module+0x1A2B`, `module` or, as early versions wrote, `method`.
    fn parse(text: &'a str, is_module: impl Fn(&str) -> bool) -> Self {
        let nothing = Self { module: None, function: None, rva: None };
        let known = |module: &'a str| Some(module).filter(|name| *name != UNKNOWN_MODULE);
        // Methods may contain anything, modules no `!`.
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
pub(super) struct FrameTexts(ByteInterner);

impl FrameTexts {
    /// The row of the frames table for a text.
    pub(super) fn row(&mut self, text: &str) -> FrameIdx {
        FrameIdx(self.0.intern(text.as_bytes()))
    }

    /// The frames, and the names of those that have one. Modules are added where they are not
    /// known yet.
    pub(super) fn tables(&self, modules: &mut ModuleTables) -> (Frames, Symbols) {
        let (mut frames, mut symbols) = (Frames::default(), Symbols::default());
        for row in 0..self.0.len() {
            let text = self.0.text(row);
            let place = Place::parse(&text, |name| modules.has(name));
            let module = place.module.map(|name| ModuleIdx(modules.row(name)));
            frames.push(Frame { module, rva: place.rva, ..Frame::default() });
            if let Some(function) = place.function {
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
    use super::*;

    fn place(text: &str) -> (Option<&str>, Option<&str>, Option<u64>) {
        let Place { module, function, rva } = Place::parse(text, |name| name == "odd.ext");
        (module, function, rva)
    }

    #[test]
    fn every_form_of_a_frame_is_read() {
        assert_eq!(
            place("ntdll.dll!NtCreateEvent"),
            (Some("ntdll.dll"), Some("NtCreateEvent"), None)
        );
        assert_eq!(
            place("a.exe!std::map<int, char [4]>::operator!= x"),
            (Some("a.exe"), Some("std::map<int, char [4]>::operator!= x"), None)
        );
        assert_eq!(place("<UnknownModule>!Stub"), (None, Some("Stub"), None));
        assert_eq!(place("leaky.exe+0x1A2B"), (Some("leaky.exe"), None, Some(0x1A2B)));
        assert_eq!(place("<UnknownModule>+0x10"), (None, None, Some(0x10)));
        assert_eq!(place("winspool.drv"), (Some("winspool.drv"), None, None));
        assert_eq!(place("odd.ext"), (Some("odd.ext"), None, None));
        assert_eq!(place("<UnknownMethod>"), (None, None, None));
        assert_eq!(place("a.dll!<UnknownMethod>"), (Some("a.dll"), None, None));
    }

    #[test]
    fn names_without_module_are_those_of_early_versions() {
        assert_eq!(place("NtCreateEvent"), (None, Some("NtCreateEvent"), None));
        assert_eq!(place("System.String.Concat"), (None, Some("System.String.Concat"), None));
        assert_eq!(place("operator+0xZZ"), (None, Some("operator+0xZZ"), None));
    }

    #[test]
    fn equal_texts_are_one_frame() {
        let (mut texts, mut modules) = (FrameTexts::default(), ModuleTables::default());
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
