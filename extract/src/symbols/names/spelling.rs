//! Names of private symbols in the spelling of MSVC, for every compiler.
//!
//! clang writes `f<const char *,unsigned long long>` where MSVC, `UnDecorateSymbolName` and so DbgHelp write
//! `f<char const *,unsigned __int64>`.

use super::decorated::template;

/// Brackets within each other; names of compilers have fewer.
const DEEPEST: usize = 64;

/// Spells the template arguments of a name as MSVC does. Names without arguments stay as they are.
pub(super) fn spelled(name: &str) -> String {
    if !name.contains('<') || name.len() > 16 << 10 {
        return name.to_owned();
    }
    scoped(name, 0).unwrap_or_else(|| name.to_owned())
}

/// A name with template arguments anywhere in it.
fn scoped(name: &str, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let mut text = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        text += before;
        // Operators have angle brackets, too, and names of lambdas.
        let is_operator = text.ends_with("operator") || text.ends_with("operator<");
        if is_operator || text.ends_with([':', '`']) || text.is_empty() {
            text.push('<');
            rest = from.get(1..)?;
            continue;
        }
        let end = closing(from)?;
        let arguments = split(from.get(1..end)?);
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| spelled_type(argument, depth + 1)).collect();
        text = template(&text, &arguments?);
        rest = from.get(end + 1..)?;
    }
    Some(text + rest)
}

/// Where the bracket closes that a text starts with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if text.get(..at)?.ends_with('-') => {}
            b'>' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The parts between commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(text.get(start..).unwrap_or_default());
    }
    parts.into_iter().map(str::trim).collect()
}

/// A type or value in the spelling of MSVC.
fn spelled_type(text: &str, depth: usize) -> Option<String> {
    if let Some(character) = character(text) {
        return Some(character.to_string());
    }
    let (mut text, mut own) = (text.trim(), Vec::new());
    for word in ["const ", "volatile "] {
        if let Some(rest) = text.strip_prefix(word) {
            own.push(word.trim());
            text = rest;
        }
    }
    for word in ["struct ", "class ", "union ", "enum "] {
        text = text.strip_prefix(word).unwrap_or(text);
    }
    // The name ends in front of what makes it a pointer, function or array.
    let mut end = text.len();
    let mut brackets = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => brackets += 1,
            b'>' => brackets = brackets.saturating_sub(1),
            b'*' | b'&' | b'(' | b'[' if brackets == 0 && at > 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (name, marks) = text.split_at_checked(end)?;
    // A pointer to a member names its class in front of the sign.
    let member = name.rfind(' ').filter(|_| name.ends_with("::") && marks.starts_with('*'));
    let (name, marks) = match member {
        Some(at) => (name.get(..at)?, text.get(at..)?),
        None => (name, marks),
    };
    let name = scoped(name.trim(), depth)?;
    let name = match name.as_str() {
        "long long" => "__int64".to_owned(),
        "unsigned long long" => "unsigned __int64".to_owned(),
        _ => name,
    };
    let name = own.into_iter().fold(name, |name, word| format!("{name} {word}"));
    Some(name + &spelled_marks(marks.trim(), depth)?)
}

/// The number of a character, which decorated names have instead.
fn character(text: &str) -> Option<u32> {
    let mut characters = text.strip_prefix('\'')?.strip_suffix('\'')?.chars();
    let character = characters.next()?;
    characters.next().is_none().then_some(character.into())
}

/// What follows the name of a type: signs, parameters, dimensions.
fn spelled_marks(marks: &str, depth: usize) -> Option<String> {
    let mut text = String::new();
    let mut rest = marks;
    while let Some(first) = rest.chars().next() {
        match first {
            '(' => {
                let end = closing(rest)?;
                let within = rest.get(1..end)?;
                let is_pointer = text.trim_end().is_empty() && within.contains(['*', '&']);
                rest = rest.get(end + 1..)?.trim_start();
                if is_pointer {
                    // Functions have a calling convention, arrays have none.
                    let is_function = rest.starts_with('(');
                    let sign = within.trim_start_matches("__cdecl").trim();
                    let convention = match sign.starts_with("__") || !is_function {
                        true => "",
                        false if sign.starts_with(['*', '&']) => "__cdecl",
                        false => "__cdecl ",
                    };
                    let sign = sign.replace("*const", "* const").replace("**", "* *");
                    text += &format!(" ({convention}{sign})");
                } else {
                    let parameters = split(within);
                    let parameters: Option<Vec<String>> =
                        parameters.into_iter().map(|one| spelled_type(one, depth + 1)).collect();
                    let parameters = match parameters?.join(",") {
                        none if none.is_empty() => "void".to_owned(),
                        some => some,
                    };
                    text += &format!("({parameters})");
                }
            }
            '[' => {
                let end = closing(rest)?;
                if !text.ends_with([']', ')']) {
                    text.push(' ');
                }
                text += rest.get(..=end)?;
                rest = rest.get(end + 1..)?;
            }
            '*' => {
                text += " *";
                rest = rest.get(1..)?;
            }
            '&' => {
                let sign = if rest.starts_with("&&") { "&&" } else { "&" };
                text += &format!(" {sign}");
                rest = rest.get(sign.len()..)?;
            }
            ' ' => rest = rest.trim_start(),
            _ => {
                let end = rest.find(['(', '[', '*', '&', ' ']).unwrap_or(rest.len());
                // The class of a pointer to a member.
                let is_class = rest.get(..end)?.ends_with("::");
                text += &format!(" {}", rest.get(..end)?);
                rest = rest.get(end..)?;
                if is_class {
                    text += "*";
                    rest = rest.get(1..)?;
                }
            }
        }
    }
    Some(text)
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
        ] {
            assert_eq!(spelled(clang), msvc, "{clang}");
            assert_eq!(spelled(msvc), msvc, "{msvc}");
        }
    }

    #[test]
    fn other_names_stay_as_they_are() {
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
