//! Possible operations, as numbers that mean something in every state.

use proptest::prelude::*;

/// Something that happens. Numbers choose among what there is at the time, so that every list of operations is a
/// history, and a part of one, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub what: What,
    /// Process that does it.
    pub process: u8,
    /// Handle or object that it is done with.
    pub which: u8,
    /// Other process that takes part, if any does.
    pub partner: u8,
    /// The processor it happens on.
    pub processor: u8,
    /// Microseconds since the operation before.
    pub pause_us: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A handle of a new object.
    Create,
    /// One more handle of an object that there is.
    Open,
    /// The caller takes a handle from a process.
    Pull,
    /// The caller gives a handle to a process.
    Push,
    Close,
    /// Closes a handle and opens another one of the same value at once, on two processors.
    Replace,
    /// Starts a child, which inherits some handles.
    Start,
    /// Ends a process; what it has open is closed.
    End,
    Map,
    Unmap,
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let what = prop_oneof![
        8 => Just(What::Create),
        3 => Just(What::Open),
        3 => Just(What::Pull),
        3 => Just(What::Push),
        10 => Just(What::Close),
        3 => Just(What::Replace),
        1 => Just(What::Start),
        1 => Just(What::End),
        2 => Just(What::Map),
        2 => Just(What::Unmap),
    ];
    // Most happens within a tick of the system clock.
    let pause = prop_oneof![6 => 1..200_u16, 2 => 200..3_000_u16, 1 => 3_000..40_000_u16];
    let rest = (any::<u8>(), any::<u8>(), any::<u8>(), 0..4_u8, pause);
    (what, rest).prop_map(|(what, (process, which, partner, processor, pause_us))| Operation {
        what,
        process,
        which,
        partner,
        processor,
        pause_us,
    })
}
