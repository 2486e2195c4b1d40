//! Spells names of private symbols, and types, like MSVC and DbgHelp, whatever the compiler.
//!
//! clang writes `f<const char *,unsigned long long>`. MSVC, `UnDecorateSymbolName` and therefore DbgHelp write `f<char
//! const *,unsigned __int64>`.

/// Maximum nesting of brackets; compilers produce less.
const MAX_DEPTH: usize = 64;

/// Spells the template arguments of a name as MSVC does. Names without arguments stay as they are.
pub fn spelled(name: &str) -> String {
    if name.len() > 16 << 10 {
        return name.to_owned();
    }
    let name = name.replace("operator\"\"_", "operator \"\"_");
    if let Some(conversion) = conversion(&name) {
        return conversion;
    }
    if !name.contains('<') {
        return name;
    }
    scoped(&name, 0).map_or(name, |spelled| with_arguments_of_class(&spelled).unwrap_or(spelled))
}

/// Respells a conversion, `Op::operator TYPE`, which may have template arguments after a pointer sign.
fn conversion(name: &str) -> Option<String> {
    let (at, ..) = brackets(name).find(|&(at, _, depth)| {
        depth == 0 && name.get(at..).is_some_and(|name| name.starts_with("operator "))
    })?;
    let (scope, operator) = name.split_at_checked(at)?;
    let converted = operator.strip_prefix("operator ")?;
    if ["new", "delete", "co_await", "\""].iter().any(|word| converted.starts_with(word)) {
        return None;
    }
    let end = brackets(converted)
        .find(|&(at, byte, depth)| {
            byte == b'<'
                && depth == 0
                && converted.get(..at).is_some_and(|sign| sign.ends_with(['*', '&']))
        })
        .map_or(converted.len(), |(at, ..)| at);
    let (converted, arguments) = converted.split_at_checked(end)?;
    // Respell the bare arguments as those of a template `f`, then remove the `f`.
    let (scope, converted) = (scoped(scope, 0)?, type_text(converted, 0)?);
    let arguments = scoped(&format!("f{arguments}"), 0)?;
    Some(format!("{scope}operator {converted}{}", arguments.strip_prefix('f')?))
}

/// Adds the arguments of its class to a constructor or destructor of a template; clang leaves them out.
fn with_arguments_of_class(name: &str) -> Option<String> {
    let mut scopes = brackets(name).filter(|&(at, byte, depth)| {
        depth == 0 && byte == b':' && name.get(..at).is_some_and(|name| name.ends_with(':'))
    });
    let at = scopes.next_back()?.0 + 1;
    let (scope, member) = name.split_at_checked(at)?;
    let class = scope.strip_suffix("::")?;
    let class = unscoped(class);
    let (bare, _) = class.split_once('<').filter(|(bare, _)| !bare.is_empty())?;
    let (sign, of_class) = match member.strip_prefix('~') {
        Some(name) => ("~", name),
        None => ("", member),
    };
    let arguments = of_class.strip_prefix(bare).filter(|_| !of_class.starts_with(class))?;
    let is_it = arguments.is_empty() || arguments.starts_with('<');
    is_it.then(|| format!("{scope}{sign}{class}{arguments}"))
}

/// Respells a name with template arguments anywhere in it.
fn scoped(name: &str, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut text = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        text += before;
        // Operators and names of lambdas have angle brackets, too.
        let is_operator = text.ends_with("operator") || text.ends_with("operator<");
        if is_operator || text.ends_with([':', '`']) || text.is_empty() {
            text.push('<');
            rest = from.get(1..)?;
            continue;
        }
        let end = closing(from)?;
        let arguments = split(from.get(1..end)?);
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| argument_text(argument, depth + 1)).collect();
        text = template(&text, &arguments?);
        rest = from.get(end + 1..)?;
    }
    Some(text + rest)
}

/// Returns the bytes of a text outside of character literals (`'>'`), each with its position and the number of brackets
/// around it. A bracket is not inside itself.
fn brackets(text: &str) -> impl DoubleEndedIterator<Item = (usize, u8, usize)> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut depth, mut behind) = (0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        let before = text.get(..at).unwrap_or_default();
        if at < behind {
            continue;
        }
        match byte {
            b'\'' if before.is_empty() || before.ends_with(['<', ',', ' ']) => {
                let rest = text.get(at..).unwrap_or_default();
                behind = at + literal(rest).map_or(1, |(_, length)| length);
                continue;
            }
            b'>' | b')' | b']' if !(byte == b'>' && before.ends_with('-')) => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        bytes.push((at, byte, depth));
        depth += usize::from(b"<([".contains(&byte));
    }
    bytes.into_iter()
}

/// Returns the index of the bracket that closes the one at the start of the text.
fn closing(text: &str) -> Option<usize> {
    brackets(text)
        .find(|&(at, byte, depth)| at > 0 && depth == 0 && b">)]".contains(&byte))
        .map(|(at, ..)| at)
}

/// Splits a text at commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, ..) in brackets(text).filter(|(_, byte, depth)| *byte == b',' && *depth == 0) {
        parts.push(text.get(start..at).unwrap_or_default());
        start = at + 1;
    }
    if !text.is_empty() {
        parts.push(text.get(start..).unwrap_or_default());
    }
    parts.into_iter().map(str::trim).collect()
}

/// Respells a template argument. Decorated names have numbers for values.
fn argument_text(text: &str, depth: usize) -> Option<String> {
    if let Some((character, length)) = literal(text)
        && length == text.len()
    {
        return Some(character.to_string());
    }
    if text == "nullptr" {
        return Some("0".to_owned());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.cast_signed().to_string());
    }
    type_text(text, depth)
}

/// Parses a character literal at the start of a text; returns the character's number and the literal's length.
fn literal(text: &str) -> Option<(u32, usize)> {
    let within = text.strip_prefix('\'')?;
    let escaped = within.strip_prefix('\\');
    let first = escaped.unwrap_or(within).chars().next()?;
    // The first character may itself be a quote.
    let end = within.len() - escaped.unwrap_or(within).len() + first.len_utf8();
    let length = end + within.get(end..)?.find('\'')?;
    let digits = within.get(end..length)?;
    let number = match (escaped.is_some(), first) {
        (true, 'x' | 'u' | 'U') => u32::from_str_radix(digits, 16).ok()?,
        _ if !digits.is_empty() => return None,
        (true, 'a') => 7,
        (true, 'b') => 8,
        (true, 't') => 9,
        (true, 'n') => 10,
        (true, 'v') => 11,
        (true, 'f') => 12,
        (true, 'r') => 13,
        (true, '0') => 0,
        _ => first.into(),
    };
    Some((number, length + 2))
}

/// Respells a type like MSVC.
fn type_text(text: &str, depth: usize) -> Option<String> {
    let (mut text, mut qualifiers) = (text.trim(), Vec::new());
    for word in ["const ", "volatile "] {
        if let Some(rest) = text.strip_prefix(word) {
            qualifiers.push(word.trim());
            text = rest;
        }
    }
    for word in ["struct ", "class ", "union ", "enum "] {
        text = text.strip_prefix(word).unwrap_or(text);
    }
    // The name ends before whatever makes it a pointer, function or array.
    let end = brackets(text)
        .find(|&(at, byte, depth)| at > 0 && depth == 0 && b"*&([".contains(&byte))
        .map_or(text.len(), |(at, ..)| at);
    let name = text.get(..end)?;
    // A calling convention, or the class of a pointer to a member, belongs to the declarator.
    let last = name.trim_end().rfind(' ').map_or("", |at| name.get(at + 1..).unwrap_or_default());
    let is_declarator = last.ends_with("::") || CONVENTIONS.contains(&last.trim_end());
    let name = if is_declarator { name.get(..name.len() - last.len())? } else { name };
    let declarator = text.get(name.len()..)?;
    let name = scoped(name.trim(), depth)?;
    let name = match name.as_str() {
        "long long" => "__int64".to_owned(),
        "unsigned long long" => "unsigned __int64".to_owned(),
        _ => name,
    };
    let named = qualifiers.into_iter().fold(Type::plain(name), Type::with);
    Some(declared(named, declarator, depth)?.text())
}

/// Applies a declarator to a type: first the signs, then what follows the parentheses, and to the result the part
/// within them.
fn declared(mut declared_type: Type, declarator: &str, depth: usize) -> Option<Type> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut convention = "__cdecl";
    let mut rest = declarator.trim();
    let mut group = None;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '(' | '[' => break,
            '*' => 1,
            '&' => 1 + usize::from(rest.starts_with("&&")),
            _ => {
                let end = brackets(rest)
                    .find(|&(at, byte, depth)| depth == 0 && at > 0 && b"*&([ ".contains(&byte))
                    .map_or(rest.len(), |(at, ..)| at);
                end + usize::from(rest.get(..end)?.ends_with("::"))
            }
        };
        let (word, behind) = rest.split_at_checked(end)?;
        match word {
            "const" | "volatile" => declared_type = declared_type.with(word),
            _ if CONVENTIONS.contains(&word) => convention = word,
            _ if word.ends_with(['*', '&']) => declared_type = declared_type.pointed_to(word),
            _ => return None,
        }
        rest = behind.trim_start();
    }
    if rest.starts_with('(') {
        let end = closing(rest)?;
        let within = rest.get(1..end)?.trim();
        let called = CONVENTIONS.iter().find(|name| within.starts_with(**name));
        let sign = within.get(called.map_or(0, |name| name.len())..)?.trim_start();
        let behind = rest.get(end + 1..)?.trim_start();
        if is_sign(sign) && behind.starts_with(['(', '[']) {
            convention = called.unwrap_or(&convention);
            (group, rest) = (Some(sign), behind);
        }
    }
    if rest.starts_with('(') {
        let end = closing(rest)?;
        let parameters = split(rest.get(1..end)?);
        let parameters: Option<Vec<String>> =
            parameters.into_iter().map(|parameter| type_text(parameter, depth + 1)).collect();
        let parameters = match parameters?.join(",") {
            none if none.is_empty() => "void".to_owned(),
            some => some,
        };
        let suffix = rest.get(end + 1..)?.trim();
        declared_type = declared_type.function(convention, &parameters, suffix);
    } else if !rest.is_empty() {
        declared_type = declared_type.array(rest);
    }
    match group {
        Some(group) => declared(declared_type, group, depth + 1),
        None => Some(declared_type),
    }
}

/// Whether a text starts with the sign of a pointer, a reference or a pointer to a member.
fn is_sign(text: &str) -> bool {
    let sign = brackets(text).find(|(_, byte, depth)| *depth == 0 && b"*&( ".contains(byte));
    sign.is_some_and(|(at, byte, _)| {
        b"*&".contains(&byte)
            && (at == 0 || text.get(..at).is_some_and(|class| class.ends_with("::")))
    })
}

/// The calling conventions of functions.
pub const CONVENTIONS: [&str; 7] =
    ["__cdecl", "__pascal", "__thiscall", "__stdcall", "__fastcall", "__clrcall", "__vectorcall"];

/// A type in two parts, with room for a name or the `*` of a pointer in between.
pub struct Type {
    before: String,
    after: String,
    /// Whether a pointer to it needs parentheses: a function or an array.
    is_compound: bool,
    /// Calling convention of a function.
    convention: String,
}

impl Type {
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            before: text.into(),
            after: String::new(),
            is_compound: false,
            convention: String::new(),
        }
    }

    /// Makes it the return type of a function. `suffix` is what follows the parameters: qualifiers of `this`, and
    /// `noexcept`.
    pub fn function(self, convention: &str, parameters: &str, suffix: &str) -> Self {
        let suffix = suffix.trim();
        let is_spaced = suffix.starts_with(['&', 'n']);
        let [space, end] = [is_spaced, !suffix.is_empty() && !self.after.is_empty()]
            .map(|is_spaced| if is_spaced { " " } else { "" });
        Self {
            before: self.before,
            after: format!("({parameters}){space}{suffix}{end}{}", self.after),
            is_compound: true,
            convention: convention.to_owned(),
        }
    }

    /// Makes it an array; `dimensions` has all of them, such as `[2][3]`.
    pub fn array(self, dimensions: &str) -> Self {
        Self {
            before: self.before,
            after: dimensions.to_owned() + &self.after,
            is_compound: true,
            convention: String::new(),
        }
    }

    pub fn text(self) -> String {
        let Self { before, after, is_compound, convention } = self;
        let space = if is_compound && !before.is_empty() { " " } else { "" };
        format!("{before}{space}{convention}{after}")
    }

    /// Makes it a pointer or reference; `sign` is `*`, `&` or `ns::Class::*`.
    pub fn pointed_to(self, sign: &str) -> Self {
        let Self { before, after, is_compound, convention } = self;
        if is_compound {
            let convention = match (convention.as_str(), sign) {
                ("", _) => String::new(),
                (convention, "*" | "&" | "&&") => convention.to_owned(),
                (convention, _) => format!("{convention} "),
            };
            return Self {
                before: format!("{before} ({convention}{sign}"),
                after: format!("){after}"),
                is_compound: false,
                convention: String::new(),
            };
        }
        // Pointers to pointers to functions stay within the parentheses.
        let space = if before.ends_with(' ') { "" } else { " " };
        Self { before: format!("{before}{space}{sign}"), after, is_compound, convention }
    }

    /// Adds qualifiers unless the type has them already, because a reference to something `const` states it twice.
    pub fn with(mut self, qualifiers: &str) -> Self {
        if !qualifiers.is_empty() && !self.is_compound && !self.before.ends_with(qualifiers) {
            self.before += " ";
            self.before += qualifiers;
        }
        self
    }
}

/// Joins the name of a template and its arguments like the compiler does: `> >`, and a space after a qualifier.
pub fn template(name: &str, arguments: &[String]) -> String {
    let spaced = |text: &String| {
        let is_qualifier = ["const", "volatile"].iter().any(|word| {
            let before = text.strip_suffix(word);
            before.is_some_and(|before| before.ends_with([' ', ')']) && !before.ends_with("* "))
        });
        if is_qualifier { format!("{text} ") } else { text.clone() }
    };
    let mut text = arguments.iter().map(spaced).collect::<Vec<_>>().join(",");
    if text.ends_with('>') {
        text.push(' ');
    }
    format!("{name}<{text}>")
}

/// Returns the name of a class with its template arguments but without its scopes.
fn unscoped(class: &str) -> &str {
    let end = class.find('<').unwrap_or(class.len());
    let scope = class.get(..end).and_then(|name| name.rfind("::"));
    scope.and_then(|at| class.get(at + 2..)).unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clang_are_spelled_as_msvc_does() {
        for (clang, msvc) in [
            ("f<const char *const>", "f<char const * const>"),
            ("f<const int>", "f<int const >"),
            ("A<unsigned long long,long long>::g", "A<unsigned __int64,__int64>::g"),
            (
                "f<std::vector<int,std::allocator<int>>>",
                "f<std::vector<int,std::allocator<int> > >",
            ),
            ("f<std::pair<const int, int>, 5>", "f<std::pair<int const ,int>,5>"),
            ("g<int (*)(const char *, ...)>", "g<int (__cdecl*)(char const *,...)>"),
            ("g<void (*const)()>", "g<void (__cdecl* const)(void)>"),
            ("g<int (ns::S::*)(int)>", "g<int (__cdecl ns::S::*)(int)>"),
            ("g<int ns::S::*>", "g<int ns::S::*>"),
            ("f<int[4]>", "f<int [4]>"),
            ("f<int **>", "f<int * *>"),
            ("n<'a'>", "n<97>"),
            (
                "std::function<S *(S &, const char *)>",
                "std::function<S * __cdecl(S &,char const *)>",
            ),
            ("A<B<int>>::~A", "A<B<int> >::~A<B<int> >"),
            ("operator\"\"_km", "operator \"\"_km"),
        ] {
            assert_eq!(spelled(clang), msvc, "{clang}");
            assert_eq!(spelled(msvc), msvc, "{msvc}");
        }
    }

    #[test]
    fn names_that_are_not_decorated_stay_as_they_are() {
        for name in [
            "NtCreateEvent",
            "Op::operator<",
            "Op::operator<<",
            "Op::operator->*",
            "Op::operator<=>",
            "`main'::`4'::<lambda_1>::operator()",
            "thread_start<unsigned int (__cdecl*)(void *),1>",
            "core::ptr::drop_in_place<alloc::vec::Vec<u8,alloc::alloc::Global> >",
            "enum2$<core::option::Option<u32> >",
            "<impl A for B>::run",
            "broken<int",
            "broken>",
            "<",
            "",
        ] {
            assert_eq!(spelled(name), name);
        }
    }
}
