//! Types within decorated names.

use super::super::spelling::{CONVENTIONS, Type};
use super::{DecoratedParser, MAX_DEPTH, MAX_LENGTH};

impl DecoratedParser<'_> {
    /// Parses `const` and `volatile`; `None` if the letter is not that of qualifiers.
    pub fn qualifiers(&mut self) -> Option<&'static str> {
        while self.consume("E") || self.consume("F") || self.consume("I") {}
        Some(match self.next()? {
            'A' | 'Q' => "",
            'B' | 'R' => "const",
            'C' | 'S' => "volatile",
            'D' | 'T' => "const volatile",
            _ => return None,
        })
    }

    pub fn convention(&mut self) -> Option<&'static str> {
        let at = "ABCDEFGHIJMNQ".find(self.next()?)?;
        CONVENTIONS.get(at / 2).copied()
    }

    pub fn returned(&mut self) -> Option<Type> {
        if self.consume("@") {
            return Some(Type::plain(""));
        }
        let qualifiers = if self.consume("?") { self.qualifiers()? } else { "" };
        Some(self.type_of(false)?.with(qualifiers))
    }

    pub fn parameters(&mut self) -> Option<String> {
        if self.consume("X") {
            return Some("void".to_owned());
        }
        let mut parameters: Vec<String> = Vec::new();
        loop {
            if self.consume("@") {
                break;
            }
            if self.rest.starts_with('Z') {
                self.consume("Z");
                parameters.push("...".to_owned());
                break;
            }
            let digit = self.rest.chars().next()?.to_digit(10);
            if let Some(digit) = digit {
                self.next();
                parameters.push(self.types.get(digit as usize)?.clone());
            } else {
                let before = self.rest.len();
                let text = self.within(|parser| parser.type_of(false))?.text();
                if before - self.rest.len() > 1 && self.types.len() < 10 {
                    self.types.push(text.clone());
                }
                parameters.push(text);
            }
            if parameters.iter().map(String::len).sum::<usize>() > MAX_LENGTH {
                return None;
            }
        }
        Some(parameters.join(","))
    }

    pub fn type_of(&mut self, is_argument: bool) -> Option<Type> {
        self.within(|parser| parser.type_within(is_argument))
    }

    fn type_within(&mut self, is_argument: bool) -> Option<Type> {
        for (code, sign) in [("$$Q", "&&"), ("$$R", "&&")] {
            if self.consume(code) {
                return self.pointee(sign, "");
            }
        }
        if self.consume("$$C") {
            let qualifiers = self.qualifiers()?;
            return Some(self.type_of(false)?.with(qualifiers));
        }
        if self.consume("$$T") {
            return Some(Type::plain("std::nullptr_t"));
        }
        if self.consume("$$B") {
            return self.type_of(false);
        }
        if self.consume("$$A6") {
            return self.function(String::new());
        }
        if self.consume("$$A8@@") {
            let this = self.this()?;
            return self.function(this);
        }
        // A digit refers back to a parameter's type, and only parameter lists may have one.
        if !is_argument && self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let simple = match self.next()? {
            'X' => "void",
            'C' => "signed char",
            'D' => "char",
            'E' => "unsigned char",
            'F' => "short",
            'G' => "unsigned short",
            'H' => "int",
            'I' => "unsigned int",
            'J' => "long",
            'K' => "unsigned long",
            'M' => "float",
            'N' => "double",
            'O' => "long double",
            '_' => match self.next()? {
                'D' => "__int8",
                'E' => "unsigned __int8",
                'F' => "__int16",
                'G' => "unsigned __int16",
                'H' => "__int32",
                'I' => "unsigned __int32",
                'J' => "__int64",
                'K' => "unsigned __int64",
                'L' => "__int128",
                'M' => "unsigned __int128",
                'N' => "bool",
                'P' => "auto",
                'Q' => "char8_t",
                'S' => "char16_t",
                'T' => "decltype(auto)",
                'U' => "char32_t",
                'W' => "wchar_t",
                _ => return None,
            },
            'T' | 'U' | 'V' => return Some(Type::plain(self.scopes_after_name()?)),
            'W' => {
                self.next()?.is_ascii_digit().then_some(())?;
                return Some(Type::plain(self.scopes_after_name()?));
            }
            'A' => return self.pointee("&", ""),
            'B' => return self.pointee("&", "volatile"),
            'P' => return self.pointee("*", ""),
            'Q' => return self.pointee("*", "const"),
            'R' => return self.pointee("*", "volatile"),
            'S' => return self.pointee("*", "const volatile"),
            'Y' => return self.array(""),
            _ => return None,
        };
        Some(Type::plain(simple))
    }

    /// Parses the target of a pointer or reference, after its letter.
    fn pointee(&mut self, sign: &str, pointer_qualifiers: &str) -> Option<Type> {
        if self.consume("6") {
            let target = self.function(String::new())?;
            return Some(target.pointed_to(sign).with(pointer_qualifiers));
        }
        if self.consume("8") {
            let class = self.scopes_after_name()?;
            let this = self.this()?;
            let target = self.function(this)?;
            return Some(target.pointed_to(&format!("{class}::{sign}")).with(pointer_qualifiers));
        }
        while self.consume("E") || self.consume("F") || self.consume("I") {}
        let letter = self.rest.chars().next()?;
        let qualifiers = self.qualifiers()?;
        let sign = match letter {
            // A pointer to a member.
            'Q'..='T' => format!("{}::{sign}", self.scopes_after_name()?),
            _ => sign.to_owned(),
        };
        let target = if self.consume("Y") {
            self.array(qualifiers)?
        } else {
            self.type_of(false)?.with(qualifiers)
        };
        Some(target.pointed_to(&sign).with(pointer_qualifiers))
    }

    fn array(&mut self, qualifiers: &str) -> Option<Type> {
        let dimensions =
            usize::try_from(self.number()?).ok().filter(|count| *count <= MAX_DEPTH)?;
        let mut text = String::new();
        for _ in 0..dimensions {
            text += &match self.number()? {
                0 => "[]".to_owned(),
                count => format!("[{count}]"),
            };
        }
        let element_qualifiers = if self.consume("$$C") { self.qualifiers()? } else { "" };
        Some(self.type_of(false)?.with(element_qualifiers).with(qualifiers).array(&text))
    }

    /// Parses a function type, starting at its convention; `suffix` has the qualifiers of a member function.
    pub fn function(&mut self, mut suffix: String) -> Option<Type> {
        let convention = self.convention()?;
        let returned = self.returned()?;
        let parameters = self.parameters()?;
        match (self.consume("Z"), self.consume("_E")) {
            (true, _) => {}
            (_, true) => suffix += " noexcept",
            _ => return None,
        }
        Some(returned.function(convention, &parameters, &suffix))
    }
}
