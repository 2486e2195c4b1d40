//! Types in the spelling of MSVC and DbgHelp.

/// Words for the calling conventions of functions.
pub(super) const CONVENTIONS: [&str; 7] =
    ["__cdecl", "__pascal", "__thiscall", "__stdcall", "__fastcall", "__clrcall", "__vectorcall"];

/// A type in two parts, between which a name or the `*` of a pointer stands.
pub(super) struct Type {
    before: String,
    after: String,
    /// Whether a pointer to it needs parentheses: a function or an array.
    is_compound: bool,
    /// Calling convention of a function.
    convention: String,
}

impl Type {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            before: text.into(),
            after: String::new(),
            is_compound: false,
            convention: String::new(),
        }
    }

    /// A function; `suffix` is what follows its parameters: qualifiers of `this`, and `noexcept`.
    pub(super) fn function(self, convention: &str, parameters: &str, suffix: &str) -> Self {
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

    /// An array; `dimensions` are all of it: `[2][3]`.
    pub(super) fn array(self, dimensions: &str) -> Self {
        Self {
            before: self.before,
            after: dimensions.to_owned() + &self.after,
            is_compound: true,
            convention: String::new(),
        }
    }

    pub(super) fn text(self) -> String {
        let Self { before, after, is_compound, convention } = self;
        let space = if is_compound && !before.is_empty() { " " } else { "" };
        format!("{before}{space}{convention}{after}")
    }

    /// A pointer or reference to it, `sign` being `*`, `&` or `ns::Class::*`.
    pub(super) fn pointed_to(self, sign: &str) -> Self {
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

    /// The type with qualifiers that it may have already: a reference to what is `const` says so twice.
    pub(super) fn with(mut self, qualifiers: &str) -> Self {
        if !qualifiers.is_empty() && !self.is_compound && !self.before.ends_with(qualifiers) {
            self.before += " ";
            self.before += qualifiers;
        }
        self
    }
}

/// The name of a template with its arguments, as the compiler joins them: `> >`, and a space after a qualifier.
pub(super) fn template(name: &str, arguments: &[String]) -> String {
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

/// The name of a class with its template arguments, without its scopes.
pub(super) fn unscoped(class: &str) -> &str {
    let end = class.find('<').unwrap_or(class.len());
    let scope = class.get(..end).and_then(|name| name.rfind("::"));
    scope.and_then(|at| class.get(at + 2..)).unwrap_or(class)
}
