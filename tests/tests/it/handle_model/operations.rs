//! Possible operations, as numbers that mean something in every state.

use proptest::prelude::*;

/// Something that happens. Numbers choose among what there is at the time, so that every list of operations is a
/// history, and a part of one, too.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub what: What,
    /// Process that does it.
    pub process: u8,
    /// Handle or object that it is done with.
    pub which: u8,
    /// Other process that takes part, if any does.
    pub partner: u8,
    /// The processor it happens on.
    pub processor: u8,
    /// The two low bits of the handle value of a close, which belong to the caller.
    pub tag: u8,
    /// Microseconds since the operation before.
    pub pause_us: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A handle of a new object.
    Create,
    /// One more handle of an object that there is.
    Open,
    /// A driver opens a handle in the table of System, in the context of the process.
    CreateKernel,
    /// A thread of any process closes a handle in the table of System.
    CloseKernel,
    /// The caller takes a handle from a process.
    Pull,
    /// The caller gives a handle to a process.
    Push,
    /// A handle of the caller's own process or thread, duplicated from a pseudo handle.
    Pseudo,
    /// The caller moves a handle of its own to a process, itself perhaps (`DUPLICATE_CLOSE_SOURCE`).
    Give,
    /// The caller moves a handle of a process to itself.
    Take,
    /// The caller sends a handle in a message and closes its own before the other process gets it.
    Send,
    Close,
    /// The caller closes a handle of another process.
    CloseOther,
    /// Closes a handle and opens another one of the same value at once, on two processors.
    Replace,
    /// Starts a child, which inherits some handles.
    Start,
    /// Starts a child of another process.
    StartFor,
    /// Two threads start a child each at the same time; the one that inherits last starts first.
    StartTwo,
    /// A child does not start after it got handles.
    StartFails,
    /// A child that has a pid gets handles before it starts.
    Fork,
    /// Ends a process; what it has open is closed later.
    End,
    /// A debugger ends a process, and its thread closes what that has open.
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
    // Most happens within a tick of the system clock.
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

/// An operation whose handles belong to the process of their events, and are closed by it.
///
/// Where events are missing or the clock stands still, the model has no bounds for what it may lack of kernel handles, handed
/// on and inherited ones yet, so that histories of those have none.
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
