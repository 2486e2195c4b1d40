//! Criteria by name: which of them are given, and how many rows each leaves.

/// Declares the criteria under the names of their options.
macro_rules! declared {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A criterion that selects objects, allocations or rows of another list, identified by the name of its option.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Criterion {
            $($(#[doc = $doc])* $name,)*
        }

        impl Criterion {
            /// Returns the name of its option.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("-", stringify!($name)),)*
                }
            }
        }
    };
}

declared! {
    /// The number of an object or stack.
    Id,
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
    Suspect,
    Leak,
    LeakAtExit,
    /// One of the two before.
    LeakOrAtExit,
    MinMaxTime,
    MinMaxSize,
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
    /// Frames that are left out of stacks.
    FoldStack,
    /// The frame that stacks begin with.
    StackFrom,
}

impl Criterion {
    /// Returns the criterion for the given leak options.
    pub const fn for_leaks(leak: bool, at_exit: bool) -> Self {
        match (leak, at_exit) {
            (true, true) => Self::LeakOrAtExit,
            (false, true) => Self::LeakAtExit,
            (_, false) => Self::Leak,
        }
    }

    /// Whether it selects leaks.
    pub fn is_of_leaks(self) -> bool {
        matches!(self, Self::Leak | Self::LeakAtExit | Self::LeakOrAtExit)
    }
}

/// Syntax of a value, which decides what is suggested if nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSyntax {
    /// One of the existing names.
    Name,
    /// Part of a line, which is given more often than a whole line.
    Line,
    /// A number in hexadecimal notation.
    Number,
}

/// A criterion with its value.
pub struct GivenCriterion<'c, C: Criteria> {
    pub criterion: Criterion,
    /// Text of its filter as typed; empty if it is not a text filter.
    pub value: &'c str,
    pub syntax: ValueSyntax,
    /// Replaces its value by another one, or removes it.
    pub set: fn(&mut C, Option<&str>),
}

/// Criteria that select rows of some kind.
pub trait Criteria: Clone + PartialEq {
    /// Returns every criterion in the order of the list, with its value if given.
    fn all(&self) -> Vec<(bool, GivenCriterion<'_, Self>)>;

    /// Returns the given criteria.
    fn given(&self) -> Vec<GivenCriterion<'_, Self>> {
        let given = self.all().into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, given)| given).collect()
    }

    /// Returns a copy with only some of the criteria.
    fn only(&self, kept: &[Criterion]) -> Self {
        let mut criteria = self.clone();
        let removed = self.given().into_iter().filter(|given| !kept.contains(&given.criterion));
        removed.for_each(|given| (given.set)(&mut criteria, None));
        criteria
    }

    /// Returns only the criteria that decide how many rows pass and what their names are.
    fn bare(self) -> Self {
        self
    }
}

/// Lists the criteria of a type in the order they are applied to handles or rows of a list. Each has its name (that of
/// its option), its field and, for text filters, the filter type and the syntax of the value unless it is a name.
/// `processes` stands for the three criteria on processes, `leaks` for both leak options, which together select more
/// than each alone.
macro_rules! criteria {
    ($criteria:ident($this:ident) { $($list:tt)* } $($more:tt)*) => {
        impl Criteria for $criteria {
            fn all(&$this) -> Vec<(bool, GivenCriterion<'_, Self>)> {
                let mut criteria: Vec<(bool, GivenCriterion<'_, Self>)> = Vec::new();
                criteria!(@ criteria, $this, $($list)*);
                criteria
            }

            $($more)*
        }
    };
    (@ $all:ident, $this:ident, leaks; $($rest:tt)*) => {
        $all.extend([($this.leak || $this.leak_at_exit, GivenCriterion {
            criterion: Criterion::for_leaks($this.leak, $this.leak_at_exit),
            value: "",
            syntax: ValueSyntax::Name,
            set: |criteria: &mut Self, _| (criteria.leak, criteria.leak_at_exit) = (false, false),
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (@ $all:ident, $this:ident, processes => $field:ident; $($rest:tt)*) => {
        criteria!(
            @ $all, $this,
            Process => $field.name: ProcessFilter;
            CmdLine => $field.command_line: Filter as Line;
            NewProcess => $field.new_process;
            $($rest)*
        );
    };
    (
        @ $all:ident, $this:ident,
        $name:ident => $($field:ident).+: $filter:ident $(as $syntax:ident)?; $($rest:tt)*
    ) => {
        $all.extend([($this.$($field).+.is_some(), GivenCriterion {
            criterion: Criterion::$name,
            value: $this.$($field).+.as_ref().map_or("", <$filter>::text),
            syntax: criteria!(@syntax $($syntax)?),
            set: |criteria: &mut Self, text| criteria.$($field).+ = text.and_then(|text| <$filter>::new(text).ok()),
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (@ $all:ident, $this:ident, $name:ident => $($field:ident).+; $($rest:tt)*) => {
        $all.extend([(is_given(&$this.$($field).+), GivenCriterion {
            criterion: Criterion::$name,
            value: "",
            syntax: ValueSyntax::Name,
            set: |criteria: &mut Self, _| criteria.$($field).+ = Default::default(),
        })]);
        criteria!(@ $all, $this, $($rest)*);
    };
    (@ $all:ident, $this:ident,) => {};
    (@syntax) => { ValueSyntax::Name };
    (@syntax $syntax:ident) => { ValueSyntax::$syntax };
}

pub(crate) use criteria;

/// Whether the field of a criterion that is no text filter is set.
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
    pub fn new(total: usize) -> Self {
        Self { total, remaining: Vec::new() }
    }

    /// Notes how many rows are left after a criterion and those before it.
    pub fn note(&mut self, criterion: Criterion, remaining: usize) {
        self.remaining.push((criterion, remaining));
    }

    /// Applies a criterion if it is given: keeps the rows that pass.
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

    /// Returns the criteria that were applied up to the first that left no row, and the number of rows before that one.
    /// `None` if there were no rows at all or some passed.
    pub fn exhausted(&self) -> Option<(Vec<Criterion>, usize)> {
        let (mut applied, mut before) = (Vec::new(), self.total);
        for (criterion, rows) in &self.remaining {
            applied.push(*criterion);
            if before > 0 && *rows == 0 {
                return Some((applied, before));
            }
            before = *rows;
        }
        None
    }

    /// Returns how many rows passed an applied criterion.
    pub fn after(&self, criterion: Criterion) -> Option<usize> {
        self.remaining.iter().find(|(applied, _)| *applied == criterion).map(|(_, rows)| *rows)
    }

    /// Whether no row passed all of them.
    pub fn are_none(&self) -> bool {
        self.remaining.last().map_or(self.total, |(_, rows)| *rows) == 0
    }
}
