//! Columns of `-GroupBy`, for handles and for allocations, and the value of a group in a column.

use handlescope_model::StackIdx;

use crate::answer::Domain;

/// A column of `-GroupBy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupColumn {
    CreateStack,
    CloseStack,
    FreeStack,
    Type,
    Kind,
    Allocator,
    Process,
    Name,
    NamePattern,
    Module,
    Function,
    Caller,
    Thread,
    Lifetime,
    End,
    Size,
    /// The computer, and so on, of the traces of a dataset.
    Machine,
    Build,
    Day,
    Trace,
}

/// The kind of value that the handles or allocations of a group share in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Text,
    Stack,
    Number,
    Bytes,
}

/// The declaration of a column.
struct ColumnSpec {
    /// The word for the column, which never changes.
    word: &'static str,
    /// Help text for handles; `None` if they do not have the column.
    handles: Option<&'static str>,
    /// Help text for allocations; `None` if they do not have the column.
    allocations: Option<&'static str>,
    kind: KeyKind,
    /// Text for a group of handles without a value.
    none: Option<&'static str>,
    /// Name in files of groups of allocations, if it is not the word.
    name: Option<&'static str>,
    /// Title in the text of groups of allocations.
    title: &'static str,
    /// Names of the frames of a stack, for allocations.
    frames: Option<StackNames>,
    /// Title and help text for a dataset; `None` if its groups do not have the column.
    fleet: Option<(&'static str, &'static str)>,
}

/// Names of the frames of a stack.
#[derive(Debug, Clone, Copy)]
pub struct StackNames {
    /// Name in files and title of the innermost frame.
    pub innermost: (&'static str, &'static str),
    /// Name of all frames in files.
    pub text: &'static str,
    /// Heading above the frames in text.
    pub heading: &'static str,
}

/// Declares a column of handles, with its word and help text.
const fn of_handles(word: &'static str, help: &'static str) -> ColumnSpec {
    ColumnSpec {
        word,
        handles: Some(help),
        allocations: None,
        kind: KeyKind::Text,
        none: None,
        name: None,
        title: "",
        frames: None,
        fleet: None,
    }
}

/// Declares a column of allocations, with its word, title and help text.
const fn of_allocations(word: &'static str, title: &'static str, help: &'static str) -> ColumnSpec {
    ColumnSpec { handles: None, allocations: Some(help), title, ..of_handles(word, "") }
}

/// Declares a column of a dataset, with its word, title and help text.
const fn of_fleet(word: &'static str, title: &'static str, help: &'static str) -> ColumnSpec {
    ColumnSpec { handles: None, fleet: Some((title, help)), ..of_handles(word, "") }
}

impl GroupColumn {
    /// Every column of a trace, in the order of the help.
    pub const ALL: [Self; 16] = [
        Self::CreateStack,
        Self::CloseStack,
        Self::FreeStack,
        Self::Type,
        Self::Kind,
        Self::Allocator,
        Self::Process,
        Self::Name,
        Self::NamePattern,
        Self::Module,
        Self::Function,
        Self::Caller,
        Self::Thread,
        Self::Lifetime,
        Self::End,
        Self::Size,
    ];

    /// Columns of a dataset, in the order of the help.
    pub const OF_FLEET: [Self; 10] = [
        Self::Machine,
        Self::Build,
        Self::Day,
        Self::Trace,
        Self::Process,
        Self::Kind,
        Self::Type,
        Self::Allocator,
        Self::CreateStack,
        Self::Function,
    ];

    /// Columns of totals of allocations.
    pub const TOTALS: [Self; 3] = [Self::Kind, Self::Allocator, Self::Process];

    /// Columns of groups of leaked allocations.
    pub const LEAKS: [Self; 6] =
        [Self::Kind, Self::Allocator, Self::Process, Self::Caller, Self::CreateStack, Self::End];

    /// Columns of allocations in pictures and reports: groups of one kind, allocator, owner and stack.
    pub const DRAWN: [Self; 4] = [Self::Kind, Self::Allocator, Self::Process, Self::CreateStack];

    const fn spec(self) -> ColumnSpec {
        match self {
            Self::CreateStack => ColumnSpec {
                fleet: Some(("Created by", "stack that acquired it")),
                handles: Some("stack of the event that opened the handle"),
                kind: KeyKind::Stack,
                none: Some("no stack"),
                name: Some("stack"),
                frames: Some(StackNames {
                    innermost: ("innermost_frame", "Innermost frame"),
                    text: "text",
                    heading: "Allocated on stack",
                }),
                ..of_allocations("createstack", "Stack", "stack that allocated")
            },
            Self::CloseStack => ColumnSpec {
                kind: KeyKind::Stack,
                none: Some("not closed, or no stack"),
                ..of_handles("closestack", "stack of the event that closed it")
            },
            Self::FreeStack => ColumnSpec {
                kind: KeyKind::Stack,
                name: Some("free_stack"),
                frames: Some(StackNames {
                    innermost: ("free_frame", "Innermost frame of the free"),
                    text: "free_text",
                    heading: "Freed on stack",
                }),
                ..of_allocations("freestack", "Free stack", "stack that freed")
            },
            Self::Type => ColumnSpec {
                fleet: Some(("Type", "type of the object; for allocations the kind")),
                ..of_handles("type", "type of the object")
            },
            Self::Kind => ColumnSpec {
                fleet: Some(("Kind", "handle, view, or kind of allocations")),
                ..of_allocations("kind", "Kind", "heap, commit, and so on")
            },
            Self::Allocator => ColumnSpec {
                fleet: Some(("Allocator", "allocator, if the traces name it")),
                ..of_allocations("allocator", "Allocator", "heap or other allocator")
            },
            Self::Process => ColumnSpec {
                fleet: Some(("Process", "executable of the owner")),
                handles: Some("owner of the handle"),
                ..of_allocations("process", "Process", "owner")
            },
            Self::Name => {
                ColumnSpec { none: Some("no name"), ..of_handles("name", "name of the object") }
            }
            Self::NamePattern => ColumnSpec {
                none: Some("no name"),
                ..of_handles("namepattern", "name with # for numbers and GUIDs")
            },
            Self::Module => of_handles("module", "module of the first frame outside the system"),
            Self::Function => ColumnSpec {
                fleet: Some(("Function", "first function of the program on that stack")),
                ..of_handles("function", "that frame")
            },
            Self::Caller => of_allocations(
                "allocated_by",
                "Allocated by",
                "process that allocated, if not the owner",
            ),
            Self::Thread => ColumnSpec {
                handles: Some("thread that opened it"),
                kind: KeyKind::Number,
                name: Some("tid"),
                ..of_allocations("thread", "Thread", "thread that allocated")
            },
            Self::Lifetime => of_handles("lifetime", "how long it was open"),
            Self::End => of_allocations("end", "End", "how it ended"),
            Self::Size => ColumnSpec {
                kind: KeyKind::Bytes,
                ..of_allocations("size", "Size", "bytes of each")
            },
            Self::Machine => of_fleet("machine", "Machine", "computer that recorded the trace"),
            Self::Build => of_fleet("build", "Build", "build of the process"),
            Self::Day => of_fleet("day", "Day", "day of the session start, UTC"),
            Self::Trace => of_fleet("trace", "Trace", "trace, by its id"),
        }
    }

    /// Returns the columns of handles or of allocations.
    pub fn of(domain: Domain) -> Vec<Self> {
        Self::ALL.into_iter().filter(|column| column.help_for(domain).is_some()).collect()
    }

    /// Returns the words of these columns with their help texts.
    pub fn words(domain: Domain) -> Vec<(&'static str, &'static str)> {
        Self::of(domain).into_iter().map(|column| (column.word(), column.help(domain))).collect()
    }

    /// Returns the word for the column.
    pub fn word(self) -> &'static str {
        self.spec().word
    }

    /// Returns the help text; empty if they do not have the column.
    pub fn help(self, domain: Domain) -> &'static str {
        self.help_for(domain).unwrap_or_default()
    }

    fn help_for(self, domain: Domain) -> Option<&'static str> {
        match domain {
            Domain::Handles => self.spec().handles,
            Domain::Allocations => self.spec().allocations,
        }
    }

    /// Returns the words of these columns with their help texts, for a dataset.
    pub fn words_of_fleet(columns: &[Self]) -> Vec<(&'static str, &'static str)> {
        columns.iter().map(|column| (column.word(), column.help_of_fleet())).collect()
    }

    /// Returns the help text for a dataset.
    pub fn help_of_fleet(self) -> &'static str {
        self.spec().fleet.map_or("", |(_, help)| help)
    }

    /// Returns the title in the text of a dataset's groups.
    pub fn title_of_fleet(self) -> &'static str {
        self.spec().fleet.map_or("", |(title, _)| title)
    }

    pub fn kind(self) -> KeyKind {
        self.spec().kind
    }

    /// Returns the text for a group of handles without a value in the column, if there is one.
    pub fn none(self) -> Option<&'static str> {
        self.spec().none
    }

    /// Returns the name in files of groups of allocations, and in tables of a dataset; files of groups of handles have the
    /// word.
    pub fn name(self) -> &'static str {
        let ColumnSpec { word, name, .. } = self.spec();
        name.unwrap_or(word)
    }

    /// Returns the title in the text of groups of allocations.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// Returns the names of the frames of its stack, if it is a stack of allocations.
    pub fn frames(self) -> Option<StackNames> {
        self.spec().frames
    }
}

/// The value that the handles or allocations of a group share in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey<T> {
    /// A name of any kind.
    Text(T),
    Number(i64),
    /// A stack; one of several equal ones.
    Stack(StackIdx),
    /// No value: no name, no stack, not closed.
    None,
}

impl<T> GroupKey<T> {
    pub fn text(self) -> Option<T> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn number(self) -> Option<i64> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    pub fn stack(self) -> Option<StackIdx> {
        if let Self::Stack(stack) = self { Some(stack) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_one_of_a_trace_or_of_a_dataset() {
        let listed = GroupColumn::ALL.into_iter().chain(GroupColumn::OF_FLEET);
        let listed: std::collections::BTreeSet<usize> = listed.map(|it| it as usize).collect();
        assert!(listed.into_iter().eq(0..=GroupColumn::Trace as usize));
    }
}
