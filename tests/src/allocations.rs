//! A trace with allocations, for tests of the answers about them.

use crate::bytes::{ByteString, Guid, PointerSize};
use crate::header::{ExtendedItem, ManifestEvent, Stamp};
use crate::payload::{HeapCall, MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord};
use crate::scenario::TraceBuilder;

/// Nanoseconds in a millisecond.
pub const MS: i64 = 1_000_000;

/// The handle of the heap.
pub const HEAP: u64 = 0x1_0000;

/// Builds a trace of two programs: one leaks heap blocks, the other commits memory and exits.
#[must_use]
pub fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe");
    trace.process(800, "tool.exe").command_line("tool.exe --once").started(MS).ended(90 * MS);
    trace.module(700, r"C:\leaky.exe", 0x1000_0000, 0x10000);
    trace.module(800, r"C:\tool.exe", 0x2000_0000, 0x10000);
    let leaky = (700, 701);
    for n in 0..4u64 {
        let (time, address) = (MS * (2 + n as i64 * 10), 0x5000 + n * 0x100);
        let call = HeapCall::Alloc { address, size: 10 + n };
        trace.heap(time, leaky, HEAP, call).stack(&[], &[0x1000_0010]);
    }
    trace.heap(60 * MS, leaky, HEAP, HeapCall::Free { address: 0x5000 });
    trace.heap(61 * MS, leaky, HEAP, HeapCall::Free { address: 0x5000 });
    let range =
        RangeRecord { base: 0x10_0000, size: 0x4000, pid: 800, flags: MEM_COMMIT | MEM_RESERVE };
    trace.virtual_alloc(3 * MS, (800, 801), range).stack(&[], &[0x2000_0020]);
    let other = RangeRecord { base: 0x20_0000, ..range };
    trace.virtual_alloc(4 * MS, (800, 801), other).stack(&[], &[0x2000_0030]);
    let freed = RangeRecord { flags: MEM_RELEASE, size: 0, ..other };
    trace.virtual_free(5 * MS, (800, 801), freed).stack(&[], &[0x2000_0040]);
    trace
}

/// Creates a GDI handle, which has no size in bytes, with a stack in its own process.
pub fn gdi_handle(trace: &mut TraceBuilder, ns: i64, pid: u32, value: u64) {
    gui_event(trace, ns, (pid, pid + 1), GuiEvent::CREATE_GDI, &[value], pid);
}

/// The kind of an event of a GDI or USER handle, and its stack.
#[derive(Debug, Clone, Copy)]
pub struct GuiEvent<'a> {
    id: u16,
    stack: &'a [u64],
}

impl<'a> GuiEvent<'a> {
    pub const CREATE_USER: Self = Self::new(452);
    pub const DESTROY_USER: Self = Self::new(453);
    pub const CREATE_GDI: Self = Self::new(455);
    pub const DESTROY_GDI: Self = Self::new(456);
    /// The handle gets another owner.
    pub const OWNER_GDI: Self = Self::new(457);
    /// The handle gets another value.
    pub const TRANSFORM: Self = Self::new(458);

    const fn new(id: u16) -> Self {
        Self { id, stack: &[] }
    }

    /// Returns the event with a stack, innermost frame first.
    #[must_use]
    pub fn on(self, stack: &'a [u64]) -> Self {
        Self { stack, ..self }
    }
}

/// Logs an event of a GDI or USER handle on a thread. `values` holds the handle's value, or the old and the new value
/// for [`GuiEvent::TRANSFORM`].
pub fn gui_event(
    trace: &mut TraceBuilder,
    ns: i64,
    (pid, tid): (u32, u32),
    event: GuiEvent<'_>,
    values: &[u64],
    owner: u32,
) {
    const WIN32K: Guid = Guid::new(0x8c41_6c79_d49b_4f01_a467_e56d_3aa8_234c);
    const BITMAP: u32 = 5;
    let payload = ByteString::new().ptrs(PointerSize::Eight, values);
    let payload = payload.u32(BITMAP).u32(1).u32(owner).into_vec();
    let stamp = Stamp::new(trace.options().raw(ns), pid, tid);
    let items = match event.stack {
        [] => Vec::new(),
        stack => vec![ExtendedItem::stack64(stack)],
    };
    let event = ManifestEvent {
        stamp,
        provider: WIN32K,
        id: event.id,
        payload,
        items,
        ..Default::default()
    };
    trace.raw_event(ns, 0, event.encode());
}
