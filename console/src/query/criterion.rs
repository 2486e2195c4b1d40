//! The criteria by name, for what is said of one.

/// One of the criteria that choose objects, allocations, or rows of another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    Ids,
    Mapping,
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
    Time,
    Process,
    CommandLine,
    NewProcess,
    PtrInMap,
    ViewBase,
    MapSize,
    Inherit,
    RelatedProcess,
    Handle,
    Duration,
    Overlapped,
    StackFilter,
    CreateStack,
    DestroyStack,
    /// The stack that freed an allocation, where it has an option of its own.
    FreeStack,
    /// The bytes of an allocation.
    Size,
    /// The parent of a process.
    Parent,
    /// The name of a module.
    Module,
    /// Version, product, description, company or path of a module.
    Version,
    /// The provider of an event.
    Provider,
    /// The name of an event.
    Event,
    /// The number of a stack.
    StackId,
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
}
