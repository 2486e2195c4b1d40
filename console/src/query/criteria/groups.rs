//! How handles are grouped.

use crate::filter::Filter;
use crate::query::criterion::Criterion;

/// How handles are grouped, and which groups are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupCriteria {
    /// `-GroupBy`: the columns, the outermost first; none for no groups.
    pub by: Vec<GroupColumn>,
    /// `-MinCount`: the fewest handles of a group that is shown.
    pub min_count: u64,
    /// `-Depth`: so many columns are shown.
    pub depth: Option<usize>,
    /// `-FoldStack` and `-StackFrom`
    pub(crate) trims: StackTrims,
    /// `-ShowTime`: into so many parts time is divided.
    pub buckets: Option<usize>,
    /// Whether the handles of groups are kept, for what depends on their times.
    pub keeps_handles: bool,
    /// `-SortBy`: what the groups of each level are ordered by, before what they lose.
    pub order: Option<Figure>,
}

impl GroupCriteria {
    /// Groups of one process, one type and one create stack, with their handles: what leaks, and what
    /// changes, is asked of these.
    pub(in crate::query) fn of_create_stacks() -> Self {
        let by = vec![GroupColumn::Process, GroupColumn::Type, GroupColumn::CreateStack];
        Self { by, keeps_handles: true, ..Self::default() }
    }

    /// Whether the times of handles are needed, besides their figures.
    pub(in crate::query) fn keeps_handles(&self) -> bool {
        self.keeps_handles || self.buckets.is_some()
    }

    /// Whether any column needs the names of frames.
    pub(in crate::query) fn needs_frames(&self) -> bool {
        self.by.iter().any(|column| column.needs_stacks() != (false, false))
    }
}

/// What is left out of stacks before they are compared and shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StackTrims {
    /// `-FoldStack`: frames that are left out.
    pub(crate) fold: Option<Filter>,
    /// `-StackFrom`: where a stack begins, its inner frames being left out.
    pub(crate) from: Option<Filter>,
}

impl StackTrims {
    /// The first of them that is given.
    pub(crate) fn criterion(&self) -> Option<Criterion> {
        let trims = [(&self.fold, Criterion::FoldStack), (&self.from, Criterion::StackFrom)];
        trims.into_iter().find(|(filter, _)| filter.is_some()).map(|(_, criterion)| criterion)
    }
}

/// A column of `-GroupBy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupColumn {
    /// The stack of the event that opened the handle, by its functions.
    CreateStack,
    /// The stack of the event that closed it, by its functions.
    CloseStack,
    /// Type of the object.
    Type,
    /// The owner of the handle, `name.exe(pid)`.
    Process,
    /// Name of the object.
    Name,
    /// The same without its numbers.
    NamePattern,
    /// Module of the first frame of the create stack outside of the system.
    Module,
    /// The frame itself.
    Function,
    /// Id of the thread that opened it, or else of the one that closed it.
    Thread,
    /// How long it was open.
    Lifetime,
}

impl GroupColumn {
    /// Every column, with the word it goes by, which stays the same.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::CreateStack, "createstack"),
        (Self::CloseStack, "closestack"),
        (Self::Type, "type"),
        (Self::Process, "process"),
        (Self::Name, "name"),
        (Self::NamePattern, "namepattern"),
        (Self::Module, "module"),
        (Self::Function, "function"),
        (Self::Thread, "thread"),
        (Self::Lifetime, "lifetime"),
    ];

    /// The word it goes by.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(column, _)| *column == self).map_or("", |(_, word)| word)
    }

    /// Whether it needs stacks of openings, or of closes.
    pub(in crate::query) fn needs_stacks(self) -> (bool, bool) {
        match self {
            Self::CreateStack | Self::Module | Self::Function => (true, false),
            Self::CloseStack => (false, true),
            _ => (false, false),
        }
    }
}

/// One of the figures of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    Leaked,
    ClosedAtExit,
    ClosedUnseen,
    OpenAtEnd,
    Created,
    Duplicated,
    Closed,
    Mapped,
    Unmapped,
    Objects,
    First,
    Last,
}

impl Figure {
    /// Every figure, with its name, which stays the same, and its title.
    pub const ALL: [(Self, &'static str, &'static str); 12] = [
        (Self::Leaked, "leaked", "Leaked"),
        (Self::ClosedAtExit, "closed_at_exit", "At exit"),
        (Self::ClosedUnseen, "closed_unseen", "Closed unseen"),
        (Self::OpenAtEnd, "open_at_end", "Open"),
        (Self::Created, "created", "Created"),
        (Self::Duplicated, "duplicated", "Duplicated"),
        (Self::Closed, "closed", "Closed"),
        (Self::Mapped, "mapped", "Mapped"),
        (Self::Unmapped, "unmapped", "Unmapped"),
        (Self::Objects, "objects", "Objects"),
        (Self::First, "first_ns", "First"),
        (Self::Last, "last_ns", "Last"),
    ];

    /// The figure that goes by a name or a title.
    pub fn named(text: &str) -> Option<Self> {
        let is = |name: &str| name.eq_ignore_ascii_case(text);
        Self::ALL.iter().find(|(_, name, title)| is(name) || is(title)).map(|(figure, ..)| *figure)
    }

    /// Whether it is a point in time, nanoseconds since session start.
    pub fn is_time(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }
}
