//! The criteria by name: which of them are given, and how many rows each leaves.

/// One of the criteria that choose objects, allocations, or rows of another list, by the name of what gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Criterion(&'static str);

impl Criterion {
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// The name of the option that gives it.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Name of the criterion for the options that choose leaks.
    pub const fn of_leaks(leak: bool, at_exit: bool) -> Criterion {
        match (leak, at_exit) {
            (true, true) => Criterion::LeakOrAtExit,
            (false, true) => Criterion::LeakAtExit,
            (_, false) => Criterion::Leak,
        }
    }
}

macro_rules! criterion {
    ($name:ident) => {
        $crate::criterion::Criterion::named(concat!("-", stringify!($name)))
    };
}

pub(crate) use criterion;

/// Declares the criteria that code asks about by name; the others are named by their list alone.
macro_rules! named {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        #[allow(non_upper_case_globals, reason = "they are named as their options are")]
        impl Criterion {
            $($(#[doc = $doc])* pub const $name: Self = criterion!($name);)*
        }
    };
}

named! {
    Map,
    ObjectName,
    /// The type of an object, or the kind of an allocation where types choose kinds.
    Type,
    /// The kind of an allocation, where it has an option of its own.
    Kind,
    Allocator,
    Object,
    Leak,
    LeakAtExit,
    /// One of the two before.
    LeakOrAtExit,
    MinMaxTime,
    MinMaxDuration,
    Process,
    CmdLine,
    NewProcess,
    RelatedProcess,
    Handle,
    StackFilter,
    DestroyStack,
    /// The stack that freed an allocation, where it has an option of its own.
    FreeStack,
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

/// Syntax of a value, which decides what is suggested when nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// One of the names that are there.
    Name,
    /// A part of a line, which is given more often than the whole.
    Line,
    /// A number as it is written in hexadecimal.
    Number,
}

/// A criterion with its value.
pub struct Given<'c, C: Criteria> {
    pub criterion: Criterion,
    /// Text of its filter as typed; empty if it is not a text filter.
    pub value: &'c str,
    pub syntax: Syntax,
    /// Takes another value in its place, or none.
    pub set: fn(&mut C, Option<&str>),
    pub effect: C::Effect,
}

/// Criteria that choose rows of some kind.
pub trait Criteria: Clone + PartialEq {
    /// Effect of a criterion on the rows, where its list states one.
    type Effect;

    /// Every criterion, with its value if it is given, in the order in which they are named where no row passes.
    fn all(&self) -> Vec<(bool, Given<'_, Self>)>;

    /// The given criteria.
    fn given(&self) -> Vec<Given<'_, Self>> {
        let given = self.all().into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, given)| given).collect()
    }

    /// Returns a copy with only the criteria in front of the given one.
    fn before(&self, criterion: Criterion) -> Self {
        let mut criteria = self.clone();
        let removed = self.given().into_iter().skip_while(|given| given.criterion != criterion);
        removed.for_each(|given| (given.set)(&mut criteria, None));
        criteria
    }

    /// Returns the criteria reduced to what decides how many rows pass and what their names are.
    fn bare(self) -> Self {
        self
    }
}

/// Lists the criteria of a type in the order in which they are named: of each its name, which is that of its option, its
/// field, the type of a filter on text and what its value could mean unless that is a name, and its effect where the rows
/// are not tested elsewhere. `leaks` stands for both that choose leaks, which together choose more than each.
macro_rules! criteria {
    ($criteria:ident($this:ident): $effect:ty { $($list:tt)* } $($more:tt)*) => {
        impl Criteria for $criteria {
            type Effect = $effect;

            fn all(&$this) -> Vec<(bool, Given<'_, Self>)> {
                let mut criteria: Vec<(bool, Given<'_, Self>)> = Vec::new();
                criteria!(@ criteria, $this, $($list)*);
                criteria
            }

            $($more)*
        }
    };
    (@ $all:ident, $this:ident, leaks, $effect:expr; $($rest:tt)*) => {
        $all.extend([($this.leak || $this.leak_at_exit, Given {
            criterion: Criterion::of_leaks($this.leak, $this.leak_at_exit),
            value: "",
            syntax: Syntax::Name,
            set: |criteria: &mut Self, _| (criteria.leak, criteria.leak_at_exit) = (false, false),
            effect: $effect,
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (@ $all:ident, $this:ident, $name:ident => $($rest:tt)*) => {
        criteria!(@ $all, $this, (criterion!($name)) => $($rest)*);
    };
    (
        @ $all:ident, $this:ident,
        ($criterion:expr) => $($field:ident).+: $filter:ident $(as $syntax:ident)? $(, $effect:expr)?; $($rest:tt)*
    ) => {
        $all.extend([($this.$($field).+.is_some(), Given {
            criterion: $criterion,
            value: $this.$($field).+.as_ref().map_or("", <$filter>::text),
            syntax: criteria!(@syntax $($syntax)?),
            set: |criteria: &mut Self, text| criteria.$($field).+ = text.and_then(|text| <$filter>::new(text).ok()),
            effect: criteria!(@effect $($effect)?),
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (
        @ $all:ident, $this:ident,
        ($criterion:expr) => $($field:ident).+ $(, $effect:expr)?; $($rest:tt)*
    ) => {
        $all.extend([(is_given(&$this.$($field).+), Given {
            criterion: $criterion,
            value: "",
            syntax: Syntax::Name,
            set: |criteria: &mut Self, _| criteria.$($field).+ = Default::default(),
            effect: criteria!(@effect $($effect)?),
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (@ $all:ident, $this:ident,) => {};
    (@syntax) => { Syntax::Name };
    (@syntax $syntax:ident) => { Syntax::$syntax };
    (@effect) => { () };
    (@effect $effect:expr) => { $effect };
}

pub(crate) use criteria;

/// Whether the field of a criterion that is no filter on text says anything.
pub fn is_given<T: Default + PartialEq>(field: &T) -> bool {
    *field != T::default()
}

/// Number of rows that criteria leave, counted while they are applied.
#[derive(Debug, Clone, Default)]
pub struct Survivors {
    /// Number of rows before any criterion.
    pub total: usize,
    remaining: Vec<(Criterion, usize)>,
}

impl Survivors {
    pub fn of(total: usize) -> Self {
        Self { total, remaining: Vec::new() }
    }

    /// Notes how many rows a criterion leaves of those that the criteria in front of it do.
    pub fn note(&mut self, criterion: Criterion, remaining: usize) {
        self.remaining.push((criterion, remaining));
    }

    /// Applies a criterion, if it is given: leaves the rows that pass.
    pub fn keep<V, R>(
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

    /// Number of rows that passed a criterion that was applied.
    pub fn after(&self, criterion: Criterion) -> Option<usize> {
        self.remaining.iter().find(|(applied, _)| *applied == criterion).map(|(_, rows)| *rows)
    }

    /// Whether no row passed all of them.
    pub fn are_none(&self) -> bool {
        self.remaining.last().map_or(self.total, |(_, rows)| *rows) == 0
    }
}
