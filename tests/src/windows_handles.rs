//! A trace with all the ways in which Windows opens, passes on and closes handles, and their outcomes.

use crate::scenario::{Caller, DuplicatedHandle, KERNEL_HANDLE, MappedView, TraceBuilder};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_0000;
const EVENT: u16 = 16;

const SYSTEM: Caller = Caller { pid: 4, tid: 8, cpu: 0 };
const SERVER: Caller = Caller { pid: 700, tid: 704, cpu: 1 };
const CLIENT: Caller = Caller { pid: 800, tid: 804, cpu: 2 };
const CHILD: Caller = Caller { pid: 900, tid: 904, cpu: 3 };
const DEBUGGER: Caller = Caller { pid: 500, tid: 504, cpu: 0 };
const APP: Caller = Caller { pid: 600, tid: 604, cpu: 1 };

/// Kernel frames of opens, of closes, and of closes at process exit.
const OPEN: [u64; 2] = [0xffff_f800_0000_1100, 0xffff_f800_0000_2000];
const CLOSE: [u64; 2] = [0xffff_f800_0000_1200, 0xffff_f800_0000_2000];
const SWEEP: [u64; 2] = [0xffff_f800_0000_1300, 0xffff_f800_0000_2100];
const USER: [u64; 1] = [0x7ff8_0000_1000];

/// Owner and value of each handle that leaks.
pub const LEAKED: [(&str, &str); 3] =
    [("System", "0x80000008"), ("System", "0x8000000C"), ("server.exe", "0x10C")];

/// Owner and value of each handle that only the exit of its process closed.
pub const AT_EXIT: [(&str, &str); 6] = [
    ("app.exe", "0x20"),
    ("app.exe", "0x24"),
    ("client.exe", "0x4"),
    ("client.exe", "0x8"),
    ("client.exe", "0xC"),
    ("client.exe", "0x40"),
];

/// Number of objects with a handle that was opened.
pub const OBJECTS: usize = 13;

/// Builds the trace; its times are milliseconds after the start.
#[must_use]
pub fn windows_handles() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(SERVER.pid, "server.exe");
    trace.process(DEBUGGER.pid, "debugger.exe");
    trace.process(CLIENT.pid, "client.exe").started(MS).ended(60 * MS);
    trace.process(CHILD.pid, "child.exe").parent(SERVER.pid).started(30 * MS);
    trace.process(APP.pid, "app.exe").parent(DEBUGGER.pid).started(2 * MS).ended(55 * MS);
    trace.object_type(EVENT, "Event");
    trace.sweep_stack(&SWEEP);
    // So that System is also known in parts of the trace.
    trace.rundowns(true, true);
    kernel_handles(&mut trace);
    moved(&mut trace);
    inherited(&mut trace);
    ended(&mut trace);
    trace
}

fn object(number: u64) -> u64 {
    OBJECT + 0x100 * number
}

fn open(trace: &mut TraceBuilder, ms: i64, caller: Caller, number: u64, handle: u32) {
    trace.create_handle(ms * MS, caller, object(number), handle, EVENT).stack(&OPEN, &USER);
}

fn close(trace: &mut TraceBuilder, ms: i64, caller: Caller, number: u64, handle: u32) {
    trace.close_handle(ms * MS, caller, object(number), handle, EVENT, "").stack(&CLOSE, &USER);
}

/// Adds handles in the table of System, opened in the context of the client; the server closes one of three. Also adds
/// a close with a tag bit.
fn kernel_handles(trace: &mut TraceBuilder) {
    for (number, handle) in [(1, 4), (2, 8), (3, 0xC)] {
        open(trace, 2 + number as i64, CLIENT, number, handle | KERNEL_HANDLE);
    }
    close(trace, 6, SERVER, 1, 4 | KERNEL_HANDLE);
    // System opens one without the kernel bit, and closes it with the bit.
    open(trace, 7, SYSTEM, 4, 0x20);
    close(trace, 8, SYSTEM, 4, 0x20 | KERNEL_HANDLE);
    open(trace, 9, SERVER, 5, 0x1A0);
    trace.close_tagged(10 * MS, SERVER, object(5), 0x1A0, EVENT, "").stack(&CLOSE, &USER);
}

/// The client takes a handle from the server. The server moves one of its own, which keeps its value. The client gets
/// one in a message after the server closed it.
fn moved(trace: &mut TraceBuilder) {
    open(trace, 11, SERVER, 6, 0x108);
    open(trace, 12, SERVER, 7, 0x10C);
    open(trace, 13, SERVER, 8, 0x110);
    let duplicate =
        DuplicatedHandle { type_id: EVENT, source_pid: Some(700), ..DuplicatedHandle::default() };
    let taken = DuplicatedHandle { object: object(6), source_handle: 0x108, ..duplicate };
    let taken = DuplicatedHandle { target_handle: 0x40, target_pid: CLIENT.pid, ..taken };
    trace.move_handle(14 * MS, CLIENT, taken).stack(&OPEN, &USER);
    let own = DuplicatedHandle { object: object(7), source_handle: 0x10C, ..duplicate };
    let own = DuplicatedHandle { target_handle: 0x10C, target_pid: SERVER.pid, ..own };
    trace.move_handle(15 * MS, SERVER, own).stack(&OPEN, &USER);
    close(trace, 16, SERVER, 8, 0x110);
    let sent = DuplicatedHandle { object: object(8), source_handle: 0x110, ..duplicate };
    let sent = DuplicatedHandle { target_handle: 0x44, target_pid: CLIENT.pid, ..sent };
    trace.duplicate_handle(17 * MS, CLIENT, sent).stack(&OPEN, &USER);
    close(trace, 18, CLIENT, 8, 0x44);
}

/// The child inherits a handle and gets a standard handle, which it closes. A failed process creation comes first.
fn inherited(trace: &mut TraceBuilder) {
    let duplicate =
        DuplicatedHandle { object: object(7), source_handle: 0x10C, ..DuplicatedHandle::default() };
    let duplicate = DuplicatedHandle { type_id: EVENT, source_pid: Some(SERVER.pid), ..duplicate };
    let same = DuplicatedHandle { target_handle: 0x10C, ..duplicate };
    let other = Caller { tid: SERVER.tid + 4, ..SERVER };
    trace.inherit_handle(26 * MS, other, same).stack(&OPEN, &USER);
    let failed = trace.close_handle(27 * MS, other, object(7), 0x10C, EVENT, "");
    failed.stack(&SWEEP, &USER);
    trace.inherit_handle(28 * MS, SERVER, same).stack(&OPEN, &USER);
    let standard = DuplicatedHandle { target_handle: 0x60, ..duplicate };
    trace.inherit_handle(29 * MS, SERVER, standard).stack(&OPEN, &USER);
    close(trace, 40, CHILD, 7, 0x10C);
    close(trace, 41, CHILD, 7, 0x60);
}

/// The exit of the client closes what it has open, its view last. The debugger's thread closes the handles of the
/// process it ends.
fn ended(trace: &mut TraceBuilder) {
    for (number, handle) in [(20, 4), (21, 8), (22, 0xC)] {
        open(trace, number as i64, CLIENT, number, handle);
    }
    let view =
        MappedView { base: 0x2_0000_0000, size: 0x1000, pid: CLIENT.pid, ..MappedView::default() };
    trace.map(23 * MS, CLIENT, view).stack(&OPEN, &USER);
    open(trace, 24, APP, 30, 0x20);
    open(trace, 25, APP, 31, 0x24);
    for (number, handle, us) in [(30, 0x20, 0), (31, 0x24, 20)] {
        let ns = 54 * MS + us * 1_000;
        trace.close_handle(ns, DEBUGGER, object(number), handle, EVENT, "").stack(&SWEEP, &[]);
    }
}
