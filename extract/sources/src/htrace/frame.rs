//! Parses a line of a stack: `0xADDRESS: module!function+0xOFFSET`, and its shorter forms.

use super::grammar::{hex, without_quote};

/// A return address, with the names printed by the debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLine<'a> {
    pub address: u64,
    pub location: CodeLocation<'a>,
    /// Length of the offset in characters; the same in all lines of a debugger.
    pub offset_digits: usize,
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeLocation<'a> {
    Function {
        module: &'a str,
        function: &'a str,
        offset: Option<u64>,
    },
    /// Bytes from the start of the module.
    Module {
        module: &'a str,
        rva: u64,
    },
    /// An address without symbols or module.
    Unknown,
}

/// At least this many hexadecimal digits are an address even without `0x`.
const ADDRESS_DIGITS: usize = 8;

impl<'a> FrameLine<'a> {
    /// Parses a line; `None` if it is not a frame.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = without_quote(line);
        let (address, behind) = hex(line)?;
        let has_prefix = line.starts_with("0x") || line.starts_with("0X");
        let is_address = has_prefix || line.len() - behind.len() >= ADDRESS_DIGITS;
        let behind = behind.trim_start();
        let text = match behind.strip_prefix(':') {
            Some(text) => text.trim_start(),
            None if behind.is_empty() || has_prefix && behind.contains('!') => behind,
            None => return None,
        };
        let (location, offset_digits) = location(text);
        is_address.then_some(Self { address, location, offset_digits })
    }
}

/// Parses the text after the address.
fn location(text: &str) -> (CodeLocation<'_>, usize) {
    let text = without_comment(text);
    let is_module = |name: &str| !name.is_empty() && !name.contains([' ', '+']);
    if let Some((module, rest)) = text.split_once('!').filter(|(module, _)| is_module(module)) {
        let (function, offset, digits) = split_offset(rest);
        return match function {
            "" => (CodeLocation::Unknown, digits),
            function => (CodeLocation::Function { module, function, offset }, digits),
        };
    }
    match split_offset(text) {
        // Without symbols or module, the debugger repeats the address: `+0x4aa4fe76`.
        (module, Some(rva), digits) if is_module(module) => {
            (CodeLocation::Module { module, rva }, digits)
        }
        (_, _, digits) => (CodeLocation::Unknown, digits),
    }
}

/// Splits `name+0x1A`, `name + 0x1A` and `name+1A` after the name; also returns the length of the offset in characters.
/// The name itself may contain a `+`: `operator+=`.
fn split_offset(text: &str) -> (&str, Option<u64>, usize) {
    for (at, _) in text.match_indices('+') {
        let behind = text.get(at + 1..).unwrap_or_default();
        let digits = behind.trim_start();
        let is_spaced = digits.len() < behind.len();
        let has_prefix = digits.starts_with("0x") || digits.starts_with("0X");
        if let Some((offset, rest)) = hex(digits).filter(|_| has_prefix || !is_spaced)
            && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            let name = text.get(..at).unwrap_or_default().trim_end();
            return (name, Some(offset), digits.len() - rest.len());
        }
    }
    (text, None, 0)
}

/// Strips a comment or source location from the end of a text. Names contain only single spaces.
fn without_comment(text: &str) -> &str {
    let marks = ["  ", "\t", " <-", " //", " ;"].iter().filter_map(|mark| text.find(mark));
    let text = text.get(..marks.min().unwrap_or(text.len())).unwrap_or(text).trim_end();
    let source = text.rfind(" [").filter(|_| text.ends_with(']'));
    text.get(..source.unwrap_or(text.len())).unwrap_or(text).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: &str) -> Option<(u64, CodeLocation<'_>)> {
        FrameLine::parse(line).map(|frame| (frame.address, frame.location))
    }

    fn function<'a>(module: &'a str, function: &'a str, offset: u64) -> CodeLocation<'a> {
        CodeLocation::Function { module, function, offset: Some(offset) }
    }

    #[test]
    fn addresses_are_read_in_every_form() {
        let location = function("ntdll", "NtClose", 0xC);
        for line in [
            "0x77ca310c: ntdll!NtClose+0x0000000c",
            "77ca310c: ntdll!NtClose+0xC",
            "0x00000000`77ca310c: ntdll!NtClose+0xc",
            "0x0000000077ca310c : ntdll!NtClose + 0x000000000000000c",
            "  0X77CA310C: ntdll!NtClose+C",
            "0x77ca310c ntdll!NtClose+0xc",
            "> 0x77ca310c: ntdll!NtClose+0xc   <---- second close + 0x1",
        ] {
            assert_eq!(frame(line), Some((0x77CA_310C, location)), "{line}");
        }
    }

    #[test]
    fn names_may_have_spaces_signs_and_templates() {
        for name in [
            "std::map<int,char [4]>::operator+=",
            "operator++",
            "operator new",
            "`anonymous namespace'::f",
            "<lambda_0a1b2c3d>::operator()",
            "A<1+2>::f",
            "System.Collections.Generic.List`1[[System.__Canon, mscorlib]].Add(!0)",
        ] {
            let line = format!("0x1: my_app!{name}+0x1f");
            assert_eq!(frame(&line), Some((1, function("my_app", name, 0x1F))), "{line}");
            let line = format!("0x1: my_app!{name}");
            let location =
                CodeLocation::Function { module: "my_app", function: name, offset: None };
            assert_eq!(frame(&line), Some((1, location)), "{line}");
        }
    }

    #[test]
    fn without_symbols_there_is_a_module_or_nothing() {
        assert_eq!(
            frame("0x1234: clr+0x34"),
            Some((0x1234, CodeLocation::Module { module: "clr", rva: 0x34 }))
        );
        for line in
            ["0x1234:", "0x1234", "0x1234: +0x1234", "0x1234: +1234", "0x1234: why is that!"]
        {
            assert_eq!(frame(line), Some((0x1234, CodeLocation::Unknown)), "{line}");
        }
    }

    #[test]
    fn comments_are_passed_over() {
        for comment in ["  <--- here + there", " // 0x1 + 0x2", " <- leak!", " [c:\\a.cpp @ 12]"] {
            for (name, offset) in [("a!f+0x2", Some(2)), ("a!f", None)] {
                let line = format!("0x1: {name}{comment}");
                let location = CodeLocation::Function { module: "a", function: "f", offset };
                assert_eq!(frame(&line), Some((1, location)), "{line}");
            }
        }
    }

    #[test]
    fn unrelated_lines_are_no_frames() {
        for line in [
            "*** WARNING: Unable to verify checksum for a.exe",
            "eax=00000000 ebx=00000000",
            "7794433c cc              int     3",
            "0:000> g",
            "00: x",
            "dead: beef",
            "0xd9 new stack traces since the previous snapshot.",
            "00007ff8`12345678 00007ff8`12345678 ntdll!NtClose+0x14",
            "ntdll!DbgBreakPoint:",
            "",
        ] {
            assert_eq!(frame(line), None, "{line}");
        }
    }
}
