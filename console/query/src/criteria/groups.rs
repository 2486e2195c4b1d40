//! Grouping of handles, views and allocations.

use super::columns::GroupColumn;
use crate::criterion::Criterion;
use handlescope_session::filter::Filter;
use handlescope_session::values::TopN;

/// Criteria that group handles or allocations and select the groups to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupCriteria {
    /// `-GroupBy`: the columns, outermost first. `None` for no groups: then objects are listed, and allocations have
    /// totals or leaks with their own columns. Empty for a single sum of allocations.
    pub by: Option<Vec<GroupColumn>>,
    /// `-MinCount`: minimum number of handles in a shown group.
    pub min_count: Option<u64>,
    /// `-Depth`: number of columns shown.
    pub depth: Option<usize>,
    /// `-Rows`: the innermost groups to show, counted over all of them.
    pub rows: Option<TopN>,
    /// `-FoldStack` and `-StackFrom`
    pub trims: StackTrims,
    /// `-ShowTime`: number of parts the time is divided into.
    pub buckets: Option<usize>,
    /// Whether the handles or allocations of groups are kept, for everything that depends on their times.
    pub keeps_members: bool,
    /// Whether innermost groups that leak nothing are left out, with their handles.
    pub leaking: bool,
    /// `-SortBy`: what groups of each level are sorted by first; then by leaks.
    pub order: Option<Stat>,
}

impl GroupCriteria {
    /// Returns criteria for groups by these columns.
    pub fn new(by: impl Into<Vec<GroupColumn>>) -> Self {
        Self { by: Some(by.into()), ..Self::default() }
    }

    /// Returns criteria for groups of one process, type and create stack, with their handles. Leaks and changes are
    /// computed from these.
    pub fn for_create_stacks() -> Self {
        let by = [GroupColumn::Process, GroupColumn::Type, GroupColumn::CreateStack];
        Self { keeps_members: true, ..Self::new(by) }
    }

    /// Returns criteria that also group by object name: handles in a dump may have no stacks.
    pub fn for_dumps() -> Self {
        let mut groups = Self::for_create_stacks();
        groups.by.get_or_insert_default().push(GroupColumn::NamePattern);
        groups
    }

    /// Whether the times of handles or allocations are needed besides their figures.
    pub fn keeps_members(&self) -> bool {
        self.keeps_members || self.buckets.is_some()
    }

    /// Whether any column needs stacks of openings, and of closes.
    pub fn needs_stacks(&self) -> (bool, bool) {
        let has_any =
            |columns: &[GroupColumn]| self.by.iter().flatten().any(|by| columns.contains(by));
        let of_opening = [GroupColumn::CreateStack, GroupColumn::Module, GroupColumn::Function];
        (has_any(&of_opening), has_any(&[GroupColumn::CloseStack]))
    }
}

/// Frames to leave out of stacks before they are compared and shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackTrims {
    /// `-FoldStack`: frames to leave out.
    pub fold: Option<Filter>,
    /// `-StackFrom`: where a stack begins; frames further inside are left out.
    pub from: Option<Filter>,
}

impl StackTrims {
    /// Returns the first of them that is given.
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
    /// Every figure with its name (which never changes), title and meaning.
    pub const ALL: [(Self, &'static str, &'static str, &'static str); 12] = [
        (Self::Leaked, "leaked", "Leaked", "handles and views never closed in the trace"),
        (
            Self::ClosedAtExit,
            "closed_at_exit",
            "At exit",
            "handles closed only by process exit; with `-Leak`, those that `-LeakAtExit` would keep",
        ),
        (
            Self::ClosedUnseen,
            "closed_unseen",
            "Closed unseen",
            "handles and views with a close the trace lost; 0 with `-Leak` and `-LeakAtExit`, \
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

    /// Returns the figure with a name or title.
    pub fn named(text: &str) -> Option<Self> {
        let matches = |name: &str| name.eq_ignore_ascii_case(text);
        let stat = Self::ALL.iter().find(|(_, name, title, _)| matches(name) || matches(title));
        stat.map(|(stat, ..)| *stat)
    }

    /// Whether it is a point in time, in nanoseconds since session start.
    pub fn is_time(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }
}
