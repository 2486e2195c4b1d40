//! The criteria by name: which of them are given, and how many rows each leaves.

use strum::IntoStaticStr;

/// One of the criteria that choose objects, allocations, or rows of another list, named as what gives it. Those of objects
/// are in the order in which they are applied, but for the filter on stacks of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(prefix = "-")]
pub enum Criterion {
    MinMaxId,
    Map,
    MultiProcess,
    ObjectName,
    /// The type of an object, or the kind of an allocation where types choose kinds.
    Type,
    /// The kind of an allocation, where it has an option of its own.
    Kind,
    Allocator,
    Object,
    /// The id of a suspect.
    Suspect,
    Leak,
    LeakAtExit,
    /// One of the two before.
    LeakOrAtExit,
    MinMaxTime,
    Process,
    CmdLine,
    NewProcess,
    PtrInMap,
    ViewBase,
    MinMaxMapSize,
    Inherit,
    RelatedProcess,
    Handle,
    MinMaxDuration,
    Overlapped,
    StackFilter,
    CreateStack,
    DestroyStack,
    /// The stack that freed an allocation, where it has an option of its own.
    FreeStack,
    /// The bytes of an allocation.
    MinMaxSize,
    /// The parent of a process.
    Parent,
    /// The name of a module.
    Dll,
    /// Version, product, description, company or path of a module.
    VersionFilter,
    /// The provider of an event.
    Provider,
    /// The name of an event.
    Event,
    /// The number of a stack.
    Id,
    /// Frames that are left out of stacks.
    FoldStack,
    /// The frame that stacks begin with.
    StackFrom,
}

impl Criterion {
    /// What both of the options that choose leaks are called; `None` when none of them is given.
    pub(super) fn of_leaks(leak: bool, at_exit: bool) -> Option<Criterion> {
        match (leak, at_exit) {
            (true, true) => Some(Criterion::LeakOrAtExit),
            (true, false) => Some(Criterion::Leak),
            (false, true) => Some(Criterion::LeakAtExit),
            (false, false) => None,
        }
    }

    /// Whether it chooses leaks.
    pub(super) fn is_of_leaks(self) -> bool {
        matches!(self, Self::Leak | Self::LeakAtExit | Self::LeakOrAtExit)
    }

    /// Whether it tests lines of a text, of which a part is given more often than the whole.
    pub(super) fn is_of_lines(self) -> bool {
        matches!(
            self,
            Self::CreateStack
                | Self::DestroyStack
                | Self::FreeStack
                | Self::StackFilter
                | Self::CmdLine
                | Self::VersionFilter
        )
    }

    /// Whether it tests numbers as they are written in hexadecimal.
    pub(super) fn is_of_numbers(self) -> bool {
        matches!(self, Self::Handle | Self::Object | Self::ViewBase)
    }
}

/// A criterion that was given.
pub(super) struct Given<'c, C> {
    pub(super) criterion: Criterion,
    /// Its filter as it was typed; empty where it is no filter on text.
    pub(super) value: &'c str,
    /// Takes another value in its place, or none.
    pub(super) set: fn(&mut C, Option<&str>),
}

/// Criteria that choose rows of some kind.
pub(super) trait Criteria: Clone + PartialEq {
    /// Those that are given, in the order in which they are named where no row passes.
    fn given(&self) -> Vec<Given<'_, Self>>;

    /// The same with only those in front of a criterion.
    fn before(&self, criterion: Criterion) -> Self {
        let mut before = self.clone();
        let behind = self.given().into_iter().skip_while(|given| given.criterion != criterion);
        behind.for_each(|given| (given.set)(&mut before, None));
        before
    }

    /// The same, where no more is asked than how many rows pass and what their names are.
    fn bare(self) -> Self {
        self
    }
}

/// Lists the criteria of a type with their fields, in the order in which they are named, and the types of filters on
/// text. `leaks` stands for both that choose leaks, which together choose more than each.
macro_rules! criteria {
    ($criteria:ident($this:ident) { $($list:tt)* } $($more:tt)*) => {
        impl Criteria for $criteria {
            fn given(&$this) -> Vec<Given<'_, Self>> {
                let mut given: Vec<Given<'_, Self>> = Vec::new();
                criteria!(@ given, $this, $($list)*);
                given
            }

            $($more)*
        }
    };
    (@ $given:ident, $this:ident, leaks, $($rest:tt)*) => {
        $given.extend(Criterion::of_leaks($this.leak, $this.leak_at_exit).map(|criterion| {
            let set = |to: &mut Self, _: Option<&str>| (to.leak, to.leak_at_exit) = (false, false);
            Given { criterion, value: "", set }
        }));
        criteria!(@ $given, $this, $($rest)*);
    };
    (@ $given:ident, $this:ident, $name:ident => $($rest:tt)*) => {
        criteria!(@ $given, $this, (Criterion::$name) => $($rest)*);
    };
    (@ $given:ident, $this:ident, ($criterion:expr) => $($field:ident).+: $filter:ty, $($rest:tt)*) => {
        $given.extend($this.$($field).+.as_ref().map(|filter| Given {
            criterion: $criterion,
            value: <$filter>::text(filter),
            set: |to: &mut Self, text| to.$($field).+ = text.and_then(|text| <$filter>::new(text).ok()),
        }));
        criteria!(@ $given, $this, $($rest)*);
    };
    (@ $given:ident, $this:ident, ($criterion:expr) => $($field:ident).+, $($rest:tt)*) => {
        $given.extend(is_given(&$this.$($field).+).then_some(Given {
            criterion: $criterion,
            value: "",
            set: |to: &mut Self, _| to.$($field).+ = Default::default(),
        }));
        criteria!(@ $given, $this, $($rest)*);
    };
    (@ $given:ident, $this:ident,) => {};
}

pub(super) use criteria;

/// Whether the field of a criterion that is no filter on text says anything.
pub(super) fn is_given<T: Default + PartialEq>(field: &T) -> bool {
    *field != T::default()
}

/// How many rows criteria leave, counted while they are applied.
#[derive(Debug, Clone, Default)]
pub(super) struct Survivors {
    /// How many rows there are.
    pub(super) all: usize,
    left: Vec<(Criterion, usize)>,
}

impl Survivors {
    pub(super) fn of(all: usize) -> Self {
        Self { all, left: Vec::new() }
    }

    /// Notes how many rows a criterion leaves of those that the criteria in front of it do.
    pub(super) fn note(&mut self, criterion: Criterion, left: usize) {
        self.left.push((criterion, left));
    }

    /// Applies a criterion, if it is given: leaves the rows that pass.
    pub(super) fn keep<V, R>(
        &mut self,
        criterion: Criterion,
        value: &Option<V>,
        rows: &mut Vec<R>,
        mut passes: impl FnMut(&V, &mut R) -> bool,
    ) {
        if let Some(value) = value {
            rows.retain_mut(|row| passes(value, row));
            self.note(criterion, rows.len());
        }
    }

    /// How many rows passed a criterion that was applied.
    pub(super) fn after(&self, criterion: Criterion) -> Option<usize> {
        self.left.iter().find(|(applied, _)| *applied == criterion).map(|(_, left)| *left)
    }

    /// Whether no row passed all of them.
    pub(super) fn are_none(&self) -> bool {
        self.left.last().map_or(self.all, |(_, left)| *left) == 0
    }
}
