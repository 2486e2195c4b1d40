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

/// What most columns have in common.
const TEXT: ColumnSpec = ColumnSpec {
    word: "",
    handles: None,
    allocations: None,
    kind: KeyKind::Text,
    none: None,
    name: None,
    title: "",
    frames: None,
};

impl GroupColumn {
    /// Every column, in the order of the help.
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

    /// Columns of totals of allocations.
    pub const TOTALS: [Self; 3] = [Self::Kind, Self::Allocator, Self::Process];

    /// Columns of groups of leaked allocations.
    pub const LEAKS: [Self; 6] =
        [Self::Kind, Self::Allocator, Self::Process, Self::Caller, Self::CreateStack, Self::End];

    /// Columns of compared allocations: groups of one kind, allocator, owner and stack.
    pub const COMPARED: [Self; 4] = [Self::Kind, Self::Allocator, Self::Process, Self::CreateStack];

    const fn spec(self) -> ColumnSpec {
        match self {
            Self::CreateStack => ColumnSpec {
                word: "createstack",
                handles: Some("stack of the event that opened the handle"),
                allocations: Some("stack that allocated"),
                kind: KeyKind::Stack,
                none: Some("no stack"),
                name: Some("stack"),
                title: "Stack",
                frames: Some(StackNames {
                    innermost: ("innermost_frame", "Innermost frame"),
                    text: "text",
                    heading: "Allocated on stack",
                }),
            },
            Self::CloseStack => ColumnSpec {
                word: "closestack",
                handles: Some("stack of the event that closed it"),
                kind: KeyKind::Stack,
                none: Some("not closed, or no stack"),
                ..TEXT
            },
            Self::FreeStack => ColumnSpec {
                word: "freestack",
                allocations: Some("stack that freed"),
                kind: KeyKind::Stack,
                name: Some("free_stack"),
                title: "Free stack",
                frames: Some(StackNames {
                    innermost: ("free_frame", "Innermost frame of the free"),
                    text: "free_text",
                    heading: "Freed on stack",
                }),
                ..TEXT
            },
            Self::Type => ColumnSpec { word: "type", handles: Some("type of the object"), ..TEXT },
            Self::Kind => ColumnSpec {
                word: "kind",
                allocations: Some("heap, commit, and so on"),
                title: "Kind",
                ..TEXT
            },
            Self::Allocator => ColumnSpec {
                word: "allocator",
                allocations: Some("heap or other allocator"),
                title: "Allocator",
                ..TEXT
            },
            Self::Process => ColumnSpec {
                word: "process",
                handles: Some("owner of the handle"),
                allocations: Some("owner"),
                title: "Process",
                ..TEXT
            },
            Self::Name => ColumnSpec {
                word: "name",
                handles: Some("name of the object"),
                none: Some("no name"),
                ..TEXT
            },
            Self::NamePattern => ColumnSpec {
                word: "namepattern",
                handles: Some("name with # for numbers and GUIDs"),
                none: Some("no name"),
                ..TEXT
            },
            Self::Module => ColumnSpec {
                word: "module",
                handles: Some("module of the first frame outside the system"),
                ..TEXT
            },
            Self::Function => {
                ColumnSpec { word: "function", handles: Some("that frame"), ..TEXT }
            }
            Self::Caller => ColumnSpec {
                word: "allocated_by",
                allocations: Some("process that allocated, if not the owner"),
                title: "Allocated by",
                ..TEXT
            },
            Self::Thread => ColumnSpec {
                word: "thread",
                handles: Some("thread that opened it"),
                allocations: Some("thread that allocated"),
                kind: KeyKind::Number,
                name: Some("tid"),
                title: "Thread",
                ..TEXT
            },
            Self::Lifetime => {
                ColumnSpec { word: "lifetime", handles: Some("how long it was open"), ..TEXT }
            }
            Self::End => ColumnSpec {
                word: "end",
                allocations: Some("how it ended"),
                title: "End",
                ..TEXT
            },
            Self::Size => ColumnSpec {
                word: "size",
                allocations: Some("bytes of each"),
                kind: KeyKind::Bytes,
                title: "Size",
                ..TEXT
            },
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

    pub fn kind(self) -> KeyKind {
        self.spec().kind
    }

    /// Returns the text for a group of handles without a value in the column, if there is one.
    pub fn none(self) -> Option<&'static str> {
        self.spec().none
    }

    /// Returns the name in files of groups of allocations; files of groups of handles have the word.
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
