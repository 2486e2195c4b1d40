//! Possible operations, as numbers that are valid in every state.

use proptest::prelude::*;

/// Something that happens. Its numbers choose among what exists at the time, so that every list of operations, and
/// every part of one, is a history.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub what: What,
    /// The process that does it.
    pub process: u8,
    /// The handle or object it is done with.
    pub which: u8,
    /// The other process, if one takes part.
    pub partner: u8,
    /// The processor it happens on.
    pub processor: u8,
    /// The two low bits of the handle value in a close; they belong to the caller.
    pub tag: u8,
    /// Microseconds since the previous operation.
    pub pause_us: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Opens a handle to a new object.
    Create,
    /// Opens another handle to an existing object.
    Open,
    /// A driver opens a handle in the table of System, in the context of the process.
    CreateKernel,
    /// A thread of any process closes a handle in the table of System.
    CloseKernel,
    /// The caller takes a handle from a process.
    Pull,
    /// The caller gives a handle to a process.
    Push,
    /// Duplicates a pseudo handle of the caller's own process or thread.
    Pseudo,
    /// The caller moves one of its handles to a process, perhaps to itself (`DUPLICATE_CLOSE_SOURCE`).
    Give,
    /// The caller moves a handle of a process to itself.
    Take,
    /// The caller sends a handle in a message and closes its own before the other process gets it.
    Send,
    Close,
    /// The caller closes a handle of another process.
    CloseOther,
    /// Closes a handle and at once opens another one with the same value, on two processors.
    Replace,
    /// Starts a child, which inherits some handles.
    Start,
    /// Starts a child for another process.
    StartFor,
    /// Two threads each start a child at the same time; the one that inherits last starts first.
    StartTwo,
    /// A child gets handles but does not start.
    StartFails,
    /// A child that has a pid gets handles before it starts.
    Fork,
    /// Ends a process; its open handles and views are closed later.
    End,
    /// A debugger ends a process, and the debugger's thread closes the open handles.
    Kill,
    Map,
    Unmap,
}

pub fn operation() -> impl Strategy<Value = Operation> {
    let what = prop_oneof![
        8 => Just(What::Create),
        3 => Just(What::Open),
        3 => Just(What::CreateKernel),
        2 => Just(What::CloseKernel),
        3 => Just(What::Pull),
        3 => Just(What::Push),
        1 => Just(What::Pseudo),
        2 => Just(What::Give),
        1 => Just(What::Take),
        1 => Just(What::Send),
        9 => Just(What::Close),
        1 => Just(What::CloseOther),
        3 => Just(What::Replace),
        2 => prop_oneof![
            Just(What::Start),
            Just(What::StartFor),
            Just(What::StartTwo),
            Just(What::StartFails),
            Just(What::Fork),
        ],
        1 => prop_oneof![3 => Just(What::End), 1 => Just(What::Kill)],
        2 => Just(What::Map),
        2 => Just(What::Unmap),
    ];
    // Most things happen within a tick of the system clock.
    let pause = prop_oneof![6 => 1..200_u16, 2 => 200..3_000_u16, 1 => 3_000..40_000_u16];
    let tag = prop_oneof![5 => Just(0), 1 => 1..4_u8];
    let rest = (any::<u8>(), any::<u8>(), any::<u8>(), 0..4_u8, tag, pause);
    (what, rest).prop_map(|(what, (process, which, partner, processor, tag, pause_us))| Operation {
        what,
        process,
        which,
        partner,
        processor,
        tag,
        pause_us,
    })
}

/// Returns operations with handles that belong to the process of their events and are closed by it.
///
/// With missing events or a clock that stands still, the model has no bounds yet for missing kernel handles, passed-on
/// handles and inherited ones. Those histories therefore have none of these.
pub fn simple_operation() -> impl Strategy<Value = Operation> {
    operation().prop_map(|operation| {
        let what = match operation.what {
            What::CreateKernel | What::Pseudo => What::Create,
            What::CloseKernel | What::CloseOther => What::Close,
            What::Give => What::Push,
            What::Take | What::Send => What::Pull,
            What::StartFor | What::StartTwo | What::StartFails | What::Fork => What::Start,
            What::Kill => What::End,
            what => what,
        };
        Operation { what, tag: 0, ..operation }
    })
}
