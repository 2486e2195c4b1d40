//! Possible operations, as numbers that are valid in every state.

use proptest::prelude::*;

/// Something that happens. Its numbers choose among what exists at the time, so that every list of operations, and
/// every part of one, is a history.
#[derive(Debug, Clone, Copy)]
pub struct ModelOperation {
    pub what: OperationKind,
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
pub enum OperationKind {
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

pub fn operation() -> impl Strategy<Value = ModelOperation> {
    let what = prop_oneof![
        8 => Just(OperationKind::Create),
        3 => Just(OperationKind::Open),
        3 => Just(OperationKind::CreateKernel),
        2 => Just(OperationKind::CloseKernel),
        3 => Just(OperationKind::Pull),
        3 => Just(OperationKind::Push),
        1 => Just(OperationKind::Pseudo),
        2 => Just(OperationKind::Give),
        1 => Just(OperationKind::Take),
        1 => Just(OperationKind::Send),
        9 => Just(OperationKind::Close),
        1 => Just(OperationKind::CloseOther),
        3 => Just(OperationKind::Replace),
        2 => prop_oneof![
            Just(OperationKind::Start),
            Just(OperationKind::StartFor),
            Just(OperationKind::StartTwo),
            Just(OperationKind::StartFails),
            Just(OperationKind::Fork),
        ],
        1 => prop_oneof![3 => Just(OperationKind::End), 1 => Just(OperationKind::Kill)],
        2 => Just(OperationKind::Map),
        2 => Just(OperationKind::Unmap),
    ];
    // Most things happen within a tick of the system clock.
    let pause = prop_oneof![6 => 1..200_u16, 2 => 200..3_000_u16, 1 => 3_000..40_000_u16];
    let tag = prop_oneof![5 => Just(0), 1 => 1..4_u8];
    let rest = (any::<u8>(), any::<u8>(), any::<u8>(), 0..4_u8, tag, pause);
    (what, rest).prop_map(|(what, (process, which, partner, processor, tag, pause_us))| {
        ModelOperation { what, process, which, partner, processor, tag, pause_us }
    })
}

/// Returns operations with handles that belong to the process of their events and are closed by it.
///
/// With missing events or a clock that stands still, the model has no bounds yet for missing kernel handles, passed-on
/// handles and inherited ones. Those histories therefore have none of these.
pub fn simple_operation() -> impl Strategy<Value = ModelOperation> {
    operation().prop_map(|operation| {
        let what = match operation.what {
            OperationKind::CreateKernel | OperationKind::Pseudo => OperationKind::Create,
            OperationKind::CloseKernel | OperationKind::CloseOther => OperationKind::Close,
            OperationKind::Give => OperationKind::Push,
            OperationKind::Take | OperationKind::Send => OperationKind::Pull,
            OperationKind::StartFor
            | OperationKind::StartTwo
            | OperationKind::StartFails
            | OperationKind::Fork => OperationKind::Start,
            OperationKind::Kill => OperationKind::End,
            what => what,
        };
        ModelOperation { what, tag: 0, ..operation }
    })
}
