//! The rundown of the object manager at the end of a trace: what was open then. The names are those of the MOF
//! classes `ObHandleRundownEvent` and `ObTypeEvent`.

/// One for each open handle.
pub const HANDLE_RUNDOWN_END: &str = "HandleDCEnd";

/// One for each type of objects, so that a trace in which nothing was open at the end has some too.
pub const TYPE_RUNDOWN_END: &str = "TypeDCEnd";

/// Whether an event of this name is of that rundown.
pub fn is_of_end_rundown(name: &str) -> bool {
    [HANDLE_RUNDOWN_END, TYPE_RUNDOWN_END].contains(&name)
}
