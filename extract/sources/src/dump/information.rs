//! Descriptions of objects that have no name: MINIDUMP_HANDLE_OBJECT_INFORMATION of threads, processes and owned mutants.
//!
//! Microsoft's headers leave its content to the system. Its kinds have the names, and public readers of dumps the fields, of
//! structures that the system returns about objects: THREAD_BASIC_INFORMATION, PROCESS_BASIC_INFORMATION,
//! PROCESS_EXTENDED_BASIC_INFORMATION and MUTANT_OWNER_INFORMATION. It is read as these only if it has their size, which says
//! how large pointers are, too. The first three have the exit status, which is STATUS_PENDING until the end.

use handlescope_model::rules::NamedTarget;
use minidump_common::format::{
    MINIDUMP_HANDLE_OBJECT_INFORMATION, MINIDUMP_HANDLE_OBJECT_INFORMATION_TYPE as Kind,
};

use super::container::Minidump;

/// The longest chain of object information: there are ten kinds of it.
const MAX_CHAIN: usize = 64;

/// STATUS_PENDING, the exit status of what runs.
const RUNNING: i32 = 0x103;

/// A structure that has ids.
struct IdLayout {
    kind: Kind,
    /// Bytes, with pointers of 4 and of 8 bytes.
    sizes: [u32; 2],
    /// Place of the process id, in pointers. That of the thread follows, if there is one.
    place: u64,
    /// Place of the exit status, in pointers, if there is one.
    status: Option<u64>,
}

const LAYOUTS: [IdLayout; 4] = [
    IdLayout { kind: Kind::MiniThreadInformation1, sizes: [28, 48], place: 2, status: Some(0) },
    IdLayout { kind: Kind::MiniProcessInformation1, sizes: [24, 48], place: 4, status: Some(0) },
    IdLayout { kind: Kind::MiniProcessInformation2, sizes: [32, 64], place: 5, status: Some(1) },
    IdLayout { kind: Kind::MiniMutantInformation2, sizes: [8, 16], place: 0, status: None },
];

/// Returns what the chain from `rva` on names, if anything, and whether the chain is sound.
pub fn of(dump: &Minidump<'_>, rva: u32) -> (Option<String>, bool) {
    let (mut text, mut next) = (None, rva);
    for _ in 0..MAX_CHAIN {
        if next == 0 {
            return (text, true);
        }
        let head: Option<MINIDUMP_HANDLE_OBJECT_INFORMATION> = dump.read(next as usize);
        let Some(head) = head else { break };
        text = text.or_else(|| named(dump, next, &head));
        next = head.next_info_rva;
    }
    (text, false)
}

/// The process or thread that an element names.
fn named(
    dump: &Minidump<'_>,
    rva: u32,
    head: &MINIDUMP_HANDLE_OBJECT_INFORMATION,
) -> Option<String> {
    let layout = LAYOUTS.iter().find(|layout| layout.kind as u32 == head.info_type)?;
    let pointer = match layout.sizes.iter().position(|size| *size == head.size_of_info)? {
        0 => 4,
        _ => 8,
    };
    let start = u64::from(rva) + size_of::<MINIDUMP_HANDLE_OBJECT_INFORMATION>() as u64;
    // Ids and statuses have 32 bits; where a pointer has room for one, it is in front.
    let number =
        |place: u64| -> Option<u32> { dump.read(usize::try_from(start + place * pointer).ok()?) };
    let id = |place: u64| number(place).filter(|id| *id != 0);
    let status = layout.status.and_then(number).map(u32::cast_signed);
    let target = NamedTarget {
        pid: id(layout.place)?,
        tid: id(layout.place + 1),
        exit_code: status.filter(|status| *status != RUNNING),
    };
    match layout.kind {
        Kind::MiniThreadInformation1 => target.tid.map(|_| target.to_string()),
        Kind::MiniMutantInformation2 => target.tid.map(|_| format!("owned by {target}")),
        _ => Some(NamedTarget { tid: None, ..target }.to_string()),
    }
}
