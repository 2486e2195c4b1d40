//! Grouping of handles.

use super::columns::GroupColumn;
use crate::criterion::Criterion;
use handlescope_session::filter::Filter;
use handlescope_session::values::TopN;

/// Criteria that group handles and choose the groups that are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupCriteria {
    /// `-GroupBy`: the columns, the outermost first; none for no groups.
    pub by: Vec<GroupColumn>,
    /// `-MinCount`: the fewest handles of a group that is shown.
    pub min_count: u64,
    /// `-Depth`: number of columns that are shown.
    pub depth: Option<usize>,
    /// `-Rows`: the groups of the innermost level that are shown, counted over all of them.
    pub rows: Option<TopN>,
    /// `-FoldStack` and `-StackFrom`
    pub trims: StackTrims,
    /// `-ShowTime`: number of parts that time is divided into.
    pub buckets: Option<usize>,
    /// Whether the handles of groups are kept, for what depends on their times.
    pub keeps_handles: bool,
    /// Whether groups of the innermost level that leak nothing are left out, with their handles.
    pub leaking: bool,
    /// `-SortBy`: what the groups of each level are ordered by, before what they leak.
    pub order: Option<Stat>,
}

impl GroupCriteria {
    /// Groups of one process, one type and one create stack, with their handles: what leaks, and what
    /// changes, is asked of these.
    pub fn of_create_stacks() -> Self {
        let by = vec![GroupColumn::Process, GroupColumn::Type, GroupColumn::CreateStack];
        Self { by, keeps_handles: true, ..Self::default() }
    }

    /// Groups by the names of their objects, too: handles of a dump may have no stacks.
    pub fn of_dumps() -> Self {
        let mut groups = Self::of_create_stacks();
        groups.by.push(GroupColumn::NamePattern);
        groups
    }

    /// Whether the times of handles are needed, besides their figures.
    pub fn keeps_handles(&self) -> bool {
        self.keeps_handles || self.buckets.is_some()
    }

    /// Whether any column needs stacks of openings, or of closes.
    pub fn needs_stacks(&self) -> (bool, bool) {
        let needs = self.by.iter().map(|column| column.needs_stacks());
        needs.fold((false, false), |sum, column| (sum.0 | column.0, sum.1 | column.1))
    }
}

/// Frames that are left out of stacks before they are compared and shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackTrims {
    /// `-FoldStack`: frames that are left out.
    pub fold: Option<Filter>,
    /// `-StackFrom`: where a stack begins, its inner frames being left out.
    pub from: Option<Filter>,
}

impl StackTrims {
    /// The first of them that is given.
    pub fn criterion(&self) -> Option<Criterion> {
        let trims = [(&self.fold, Criterion::FoldStack), (&self.from, Criterion::StackFrom)];
        trims.into_iter().find(|(filter, _)| filter.is_some()).map(|(_, criterion)| criterion)
    }
}

/// Meaning of the figures that count events.
const EVENTS: &str = "events";

/// One of the figures of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stat {
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

impl Stat {
    /// Every figure, with its name, which stays the same, its title and its meaning.
    pub const ALL: [(Self, &'static str, &'static str, &'static str); 12] = [
        (Self::Leaked, "leaked", "Leaked", "handles and views that nothing in the trace closes"),
        (
            Self::ClosedAtExit,
            "closed_at_exit",
            "At exit",
            "handles that only the end of their process closed; with `-Leak`, those that \
             `-LeakAtExit` would keep",
        ),
        (
            Self::ClosedUnseen,
            "closed_unseen",
            "Closed unseen",
            "handles and views whose closes the trace lost; 0 with `-Leak` and `-LeakAtExit`, \
             which omit them",
        ),
        (
            Self::OpenAtEnd,
            "open_at_end",
            "Open",
            "handles in the rundown at the end; without a rundown, those opened and not closed",
        ),
        (Self::Created, "created", "Created", EVENTS),
        (Self::Duplicated, "duplicated", "Duplicated", EVENTS),
        (Self::Closed, "closed", "Closed", EVENTS),
        (Self::Mapped, "mapped", "Mapped", EVENTS),
        (Self::Unmapped, "unmapped", "Unmapped", EVENTS),
        (Self::Objects, "objects", "Objects", "distinct objects"),
        (
            Self::First,
            "first_ns",
            "First",
            "time of the first of these events; null if there are none",
        ),
        (Self::Last, "last_ns", "Last", "time of the last of these events; null if there are none"),
    ];

    /// The figure that goes by a name or a title.
    pub fn named(text: &str) -> Option<Self> {
        let matches = |name: &str| name.eq_ignore_ascii_case(text);
        let stat = Self::ALL.iter().find(|(_, name, title, _)| matches(name) || matches(title));
        stat.map(|(stat, ..)| *stat)
    }

    /// Whether it is a point in time, nanoseconds since session start.
    pub fn is_time(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }
}
