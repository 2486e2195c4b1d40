//! Undecorates function names of MSVC and clang, in the spelling of the compiler and of DbgHelp.
//!
//! The grammar is that of `microsoftDemangle` in LLVM (`MicrosoftDemangle.cpp`). The spelling is that of
//! `UnDecorateSymbolName` with `UNDNAME_NAME_ONLY`, without `class`, `struct`, `union` and `enum`, which private
//! symbols lack.

mod types;

use super::spelling::template;

/// Maximum nesting of names and types; compilers produce less.
const MAX_DEPTH: usize = 64;

/// Maximum length of a name, because references within a symbol could make it endless.
const MAX_LENGTH: usize = 16 << 10;

/// Returns the function name of a decorated name; `None` if it is not decorated or not supported.
pub fn undecorated(symbol: &str) -> Option<String> {
    let mut parser =
        DecoratedParser { rest: symbol.strip_prefix('?')?, ..DecoratedParser::default() };
    // A hashed name: the original was too long for the linker.
    if parser.rest.starts_with("?@") {
        return None;
    }
    let name = parser.symbol_name()?;
    // Data have digits here, as do tables and other things the compiler makes.
    let is_function = parser.rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '$');
    is_function.then_some(name)
}

#[derive(Default)]
struct DecoratedParser<'a> {
    rest: &'a str,
    /// The first ten names; digits refer to them.
    names: Vec<String>,
    /// The first ten parameters longer than a letter.
    types: Vec<String>,
    depth: usize,
}

impl DecoratedParser<'_> {
    fn consume(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..)?;
        Some(next)
    }

    /// Parses one level deeper; `None` if that is too deep.
    fn within<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn remember(&mut self, name: &str) {
        if self.names.len() < 10 && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Parses the name at the start of a symbol, including its scopes.
    fn symbol_name(&mut self) -> Option<String> {
        self.within(|parser| {
            let name = parser.unqualified(true)?;
            if let UnqualifiedName::Whole(name) = name {
                return Some(name);
            }
            let scopes = parser.scopes()?;
            let class = scopes.last().map_or("", |class| class);
            let name = match name {
                UnqualifiedName::Name(name) | UnqualifiedName::Whole(name) => name,
                UnqualifiedName::Constructor(arguments) => format!("{class}{arguments}"),
                UnqualifiedName::Destructor => format!("~{class}"),
                // The target type is what the function returns.
                UnqualifiedName::Conversion(arguments) => {
                    format!("operator {}{arguments}", parser.clone_for_return()?)
                }
            };
            let mut parts = scopes;
            parts.push(name);
            let text = parts.join("::");
            (text.len() <= MAX_LENGTH).then_some(text)
        })
    }

    /// Parses ahead to the return type of a function, past its class and qualifiers.
    fn clone_for_return(&mut self) -> Option<String> {
        let mut ahead = DecoratedParser {
            rest: self.rest,
            names: self.names.clone(),
            types: self.types.clone(),
            depth: self.depth,
        };
        let class = ahead.next()?;
        // Non-static members have qualifiers of `this`.
        if !"CDKLSTYZ".contains(class) {
            ahead.this()?;
        }
        ahead.convention()?;
        Some(ahead.returned()?.text())
    }

    /// Parses scopes; returns the outermost first.
    fn scopes(&mut self) -> Option<Vec<String>> {
        let mut scopes = Vec::new();
        while !self.consume("@") {
            let scope = self.scope()?;
            scopes.push(scope);
            if scopes.len() > MAX_DEPTH {
                return None;
            }
        }
        scopes.reverse();
        Some(scopes)
    }

    fn scope(&mut self) -> Option<String> {
        if let Some(known) = self.known_name() {
            return known;
        }
        if self.rest.starts_with("?$") {
            return match self.unqualified(false)? {
                UnqualifiedName::Name(name) => Some(name),
                _ => None,
            };
        }
        if self.consume("?A") {
            let (_, rest) = self.rest.split_once('@')?;
            self.rest = rest;
            let name = "`anonymous namespace'".to_owned();
            self.remember(&name);
            return Some(name);
        }
        if self.consume("?Q") {
            return Some(format!("[{}]", self.simple()?));
        }
        if self.rest.starts_with("??") {
            self.consume("?");
            let function = self.within(|parser| parser.local_scope())?;
            return Some(format!("`{function}'"));
        }
        if self.consume("?") {
            let number = self.number()?;
            return Some(format!("`{number}'"));
        }
        self.simple()
    }

    /// Parses the function that something is defined in: its name and type.
    fn local_scope(&mut self) -> Option<String> {
        self.consume("?").then_some(())?;
        let name = self.symbol_name()?;
        self.function_end()?;
        Some(name)
    }

    /// Skips the type of a function symbol.
    fn function_end(&mut self) -> Option<()> {
        let class = self.next()?;
        if class == '9' {
            return Some(());
        }
        if !class.is_ascii_uppercase() {
            return None;
        }
        // Thunks have an adjustment.
        if "GHOPWX".contains(class) {
            self.number()?;
        }
        if !"CDKLSTYZ".contains(class) {
            self.this()?;
        }
        self.function(String::new())?;
        Some(())
    }

    /// Parses the qualifiers of `this`: `const`, `volatile`, `&` and `&&`.
    fn this(&mut self) -> Option<String> {
        while self.consume("E") || self.consume("F") || self.consume("I") {}
        let reference = match (self.consume("G"), self.consume("H")) {
            (true, _) => " &",
            (_, true) => " &&",
            _ => "",
        };
        Some(self.qualifiers()?.to_owned() + reference)
    }

    fn known_name(&mut self) -> Option<Option<String>> {
        let digit = self.rest.chars().next()?.to_digit(10)?;
        self.next();
        Some(self.names.get(digit as usize).cloned())
    }

    fn simple(&mut self) -> Option<String> {
        let (name, rest) = self.rest.split_once('@')?;
        if name.is_empty() || name.starts_with('?') {
            return None;
        }
        self.rest = rest;
        self.remember(name);
        Some(name.to_owned())
    }

    fn unqualified(&mut self, is_symbol: bool) -> Option<UnqualifiedName> {
        if let Some(known) = self.known_name() {
            return known.map(UnqualifiedName::Name);
        }
        if self.consume("?$") {
            return self.within(|parser| parser.templated(is_symbol));
        }
        if self.consume("?") {
            return self.operator();
        }
        self.simple().map(UnqualifiedName::Name)
    }

    /// Parses a template and its arguments. Back references in it refer only to its own names and types.
    fn templated(&mut self, is_symbol: bool) -> Option<UnqualifiedName> {
        let outer = (std::mem::take(&mut self.names), std::mem::take(&mut self.types));
        let name = if self.consume("?") {
            self.operator()
        } else {
            self.simple().map(UnqualifiedName::Name)
        };
        let arguments = self.arguments();
        (self.names, self.types) = outer;
        let (name, arguments) = (name?, arguments?);
        Some(match name {
            UnqualifiedName::Name(name) => {
                let name = template(&name, &arguments);
                if !is_symbol {
                    self.remember(&name);
                }
                UnqualifiedName::Name(name)
            }
            UnqualifiedName::Constructor(_) => {
                UnqualifiedName::Constructor(template("", &arguments))
            }
            UnqualifiedName::Conversion(_) => UnqualifiedName::Conversion(template("", &arguments)),
            UnqualifiedName::Destructor => UnqualifiedName::Destructor,
            UnqualifiedName::Whole(name) => UnqualifiedName::Whole(name),
        })
    }

    fn operator(&mut self) -> Option<UnqualifiedName> {
        const LETTERS: &str =
            "= >> << ! == != [] ? -> * ++ -- - + & ->* / % < <= > >= , () ~ ^ | && || *= += -=";
        let code = self.next()?;
        let name = match code {
            '0' => return Some(UnqualifiedName::Constructor(String::new())),
            '1' => return Some(UnqualifiedName::Destructor),
            '2' => " new",
            '3' => " delete",
            'B' => return Some(UnqualifiedName::Conversion(String::new())),
            '4'..='9' | 'A'..='Z' => {
                let at = match code.to_digit(10) {
                    Some(digit) => digit as usize - 4,
                    None => code as usize - 'A' as usize + 6,
                };
                LETTERS.split(' ').nth(at)?
            }
            '_' => return self.special(),
            _ => return None,
        };
        Some(UnqualifiedName::Name(format!("operator{name}")))
    }

    fn special(&mut self) -> Option<UnqualifiedName> {
        let name = match self.next()? {
            '0' => "operator/=",
            '1' => "operator%=",
            '2' => "operator>>=",
            '3' => "operator<<=",
            '4' => "operator&=",
            '5' => "operator|=",
            '6' => "operator^=",
            'D' => "`vbase destructor'",
            'E' => "`vector deleting destructor'",
            'F' => "`default constructor closure'",
            'G' => "`scalar deleting destructor'",
            'H' => "`vector constructor iterator'",
            'I' => "`vector destructor iterator'",
            'J' => "`vector vbase constructor iterator'",
            'L' => "`eh vector constructor iterator'",
            'M' => "`eh vector destructor iterator'",
            'N' => "`eh vector vbase constructor iterator'",
            'O' => "`copy constructor closure'",
            'U' => "operator new[]",
            'V' => "operator delete[]",
            '_' => match self.next()? {
                'E' => return self.of_variable("dynamic initializer"),
                'F' => return self.of_variable("dynamic atexit destructor"),
                'K' => {
                    return Some(UnqualifiedName::Name(format!("operator \"\"{}", self.simple()?)));
                }
                'L' => "operator co_await",
                'M' => "operator<=>",
                _ => return None,
            },
            _ => return None,
        };
        Some(UnqualifiedName::Name(name.to_owned()))
    }

    /// Parses a compiler-generated function for a variable.
    fn of_variable(&mut self, label: &str) -> Option<UnqualifiedName> {
        let is_member = self.consume("?");
        let name = self.symbol_name()?;
        if is_member {
            self.symbol_end()?;
            self.consume("@@").then_some(())?;
        }
        Some(UnqualifiedName::Whole(format!("`{label} for '{name}''")))
    }

    fn arguments(&mut self) -> Option<Vec<String>> {
        let mut arguments = Vec::new();
        while !self.consume("@") {
            // Ends and starts of packs.
            if ["$S", "$$V", "$$$V", "$$Z"].iter().any(|empty| self.consume(empty)) {
                continue;
            }
            let argument = self.within(Self::argument)?;
            arguments.push(argument);
            let length: usize = arguments.iter().map(String::len).sum();
            if length > MAX_LENGTH {
                return None;
            }
        }
        Some(arguments)
    }

    fn argument(&mut self) -> Option<String> {
        if self.consume("$M") {
            // A value, preceded by the type of its `auto` parameter.
            self.type_of(false)?;
            return self.value();
        }
        if self.consume("$$Y") {
            return self.scopes_after_name();
        }
        if self.rest.starts_with("$$") {
            return Some(self.type_of(true)?.text());
        }
        if self.consume("$") {
            return self.value();
        }
        Some(self.type_of(true)?.text())
    }

    fn value(&mut self) -> Option<String> {
        if self.consume("0") {
            return Some(self.number()?.to_string());
        }
        // Pointers and references to symbols; for members of classes with several bases, numbers follow.
        let (sign, numbers) = match self.next()? {
            // Pointers to data members of such classes.
            count @ ('F' | 'G') => {
                let numbers: Vec<String> = (0..count as u32 - 'D' as u32)
                    .map(|_| Some(self.number()?.to_string()))
                    .collect::<Option<_>>()?;
                return Some(format!("{{{}}}", numbers.join(",")));
            }
            '1' => ("&", 0),
            'E' => ("", 0),
            'H' => ("&", 1),
            'I' => ("&", 2),
            'J' => ("&", 3),
            _ => return None,
        };
        self.consume("?").then_some(())?;
        let name = self.symbol_name()?;
        self.symbol_end()?;
        for _ in 0..numbers {
            self.number()?;
        }
        Some(format!("{sign}{name}"))
    }

    /// Skips the type of a symbol.
    fn symbol_end(&mut self) -> Option<()> {
        if !self.rest.starts_with(|c: char| ('0'..='4').contains(&c)) {
            return self.function_end();
        }
        // Data: storage class, type, qualifiers.
        self.next();
        self.type_of(false)?;
        self.qualifiers().map(drop)
    }

    /// Parses a number: `?` for minus, then either a digit that is one less than the number, or hexadecimal digits from
    /// `A` up to an `@`.
    fn number(&mut self) -> Option<i128> {
        let is_negative = self.consume("?");
        let first = self.next()?;
        let number = match first.to_digit(10) {
            Some(digit) => i128::from(digit) + 1,
            None => {
                let mut number: i128 = 0;
                let mut digit = first;
                for _ in 0..=16 {
                    if digit == '@' {
                        break;
                    }
                    let value =
                        (digit as u32).checked_sub('A' as u32).filter(|value| *value < 16)?;
                    number = number * 16 + i128::from(value);
                    digit = self.next()?;
                }
                (digit == '@').then_some(number)?
            }
        };
        Some(if is_negative { -number } else { number })
    }

    fn scopes_after_name(&mut self) -> Option<String> {
        let name = match self.unqualified(false)? {
            UnqualifiedName::Name(name) => name,
            _ => return None,
        };
        let mut parts = self.scopes()?;
        parts.push(name);
        Some(parts.join("::"))
    }
}

enum UnqualifiedName {
    Name(String),
    /// A name that includes its scopes.
    Whole(String),
    /// With its template arguments, if any.
    Constructor(String),
    Destructor,
    /// A conversion operator, which is named by its type.
    Conversion(String),
}
