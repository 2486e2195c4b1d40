//! The last operations on handles: MINIDUMP_HANDLE_OPERATION_LIST of AVRF_HANDLE_OPERATION, which handle tracing and
//! Application Verifier keep.
//!
//! Microsoft's documentation does not say in which order they stand, and `!htrace` prints the newest first. So the order is
//! that which contradicts itself less: a handle value is opened, closed and opened again, and what is open at the end is in
//! the list of handles.

use std::collections::{HashMap, HashSet};

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_model::{Cancel, Cancelled};
use minidump_common::format::MINIDUMP_STREAM_TYPE;
use scroll::Pread;

use super::container::{DumpStream, Minidump};
use crate::operations::Operation;

/// Operations that are read. Handle tracing keeps far fewer of a process.
const MAX_OPERATIONS: u32 = 1 << 18;

/// The most return addresses of an operation.
const MAX_DEPTH: usize = 32;

/// Entries after which a request to stop is looked for.
const ENTRIES_PER_CHECK: usize = 1 << 12;

/// An AVRF_HANDLE_OPERATION without its return addresses.
#[derive(Debug, Clone, Copy, Pread)]
struct RawOperation {
    handle: u64,
    process_id: u32,
    thread_id: u32,
    operation: u32,
    _spare: u32,
    depth: u32,
    _index: u32,
}

/// Bytes before the return addresses.
const HEAD_BYTES: usize = 32;

/// An operation on a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandleOperation {
    pub handle: u64,
    pub operation: Operation,
    pub pid: u32,
    pub tid: u32,
    /// Return addresses, innermost first.
    pub addresses: Vec<u64>,
}

/// Reads the operations in the order in which they stand; `None` for a dump without them.
pub fn operations(
    dump: &Minidump<'_>,
    mask: u64,
    cancel: &Cancel,
    findings: &mut Diagnostics,
) -> Result<Option<Vec<HandleOperation>>, Cancelled> {
    let Some(stream) = dump.stream(MINIDUMP_STREAM_TYPE::HandleOperationListStream, findings)
    else {
        return Ok(None);
    };
    let mut operations = Vec::new();
    let head = stream.read::<[u32; 3]>(0).filter(|[_, size, _]| *size as usize >= HEAD_BYTES);
    let Some([start, size, count]) = head else {
        findings.count(WarningKind::BadDumpEntry, Some(stream.offset));
        return Ok(Some(operations));
    };
    let beyond = count.saturating_sub(MAX_OPERATIONS);
    findings.add(WarningKind::MissingEntries, beyond.into(), Some(stream.offset));
    let count = count.min(MAX_OPERATIONS);
    let entries = stream.entries(start as usize, size as usize, count, findings);
    for (index, entry) in entries.enumerate() {
        if index.is_multiple_of(ENTRIES_PER_CHECK) {
            cancel.check()?;
        }
        match operation(&entry, mask) {
            Ok(operation) => operations.extend(operation),
            Err(Unreadable) => findings.count(WarningKind::BadDumpEntry, Some(entry.offset)),
        }
    }
    Ok(Some(operations))
}

/// An entry whose content is none of an operation.
struct Unreadable;

/// Reads an entry; an unused one is nothing.
fn operation(entry: &DumpStream<'_>, mask: u64) -> Result<Option<HandleOperation>, Unreadable> {
    let raw: RawOperation = entry.read(0).ok_or(Unreadable)?;
    let operation = match raw.operation {
        0 => return Ok(None),
        1 => Operation::Open,
        2 => Operation::Close,
        3 => Operation::BadReference,
        _ => return Err(Unreadable),
    };
    let depth = raw.depth as usize;
    let room = entry.bytes.len().saturating_sub(HEAD_BYTES) / size_of::<u64>();
    if depth > room.min(MAX_DEPTH) {
        return Err(Unreadable);
    }
    let addresses = (0..depth)
        .map_while(|index| entry.read(HEAD_BYTES + index * 8))
        .take_while(|address: &u64| *address != 0);
    Ok(Some(HandleOperation {
        handle: raw.handle & mask,
        operation,
        pid: raw.process_id,
        tid: raw.thread_id,
        addresses: addresses.map(|address| address & mask).collect(),
    }))
}

/// Evidence about the order of operations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Evidence {
    /// Opens of open handles, closes of closed ones, and handles whose last operation is not what they are at the end.
    contradictions: u64,
    /// Opens whose handle is closed next.
    pairs: u64,
}

impl Evidence {
    fn new<'o>(
        operations: impl Iterator<Item = &'o HandleOperation>,
        open: Option<&HashSet<u64>>,
    ) -> Self {
        let mut evidence = Self::default();
        let mut last: HashMap<u64, Operation> = HashMap::new();
        for operation in operations.filter(|it| it.operation != Operation::BadReference) {
            match (last.insert(operation.handle, operation.operation), operation.operation) {
                (Some(Operation::Open), Operation::Close) => evidence.pairs += 1,
                (Some(before), now) if before == now => evidence.contradictions += 1,
                _ => {}
            }
        }
        let Some(open) = open else { return evidence };
        for (handle, operation) in last {
            let is_open = operation == Operation::Open;
            evidence.contradictions += u64::from(is_open != open.contains(&handle));
        }
        evidence
    }
}

/// Puts operations into the order in which they happened, as far as they show it; `open` are the handles that are open at
/// the end, if the dump lists all of them. An order that is not decided is counted.
pub fn put_in_order(
    operations: &mut [HandleOperation],
    open: Option<&HashSet<u64>>,
    findings: &mut Diagnostics,
) {
    let oldest_first = Evidence::new(operations.iter(), open);
    let newest_first = Evidence::new(operations.iter().rev(), open);
    let by_evidence = oldest_first
        .contradictions
        .cmp(&newest_first.contradictions)
        .then(newest_first.pairs.cmp(&oldest_first.pairs));
    if by_evidence.is_eq() && operations.len() > 1 {
        findings.count(WarningKind::UndecidedOrder, None);
    }
    if by_evidence.is_ge() {
        operations.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(text: &str) -> Vec<HandleOperation> {
        let operation = |word: &str| {
            let (kind, handle) = word.split_at(1);
            HandleOperation {
                handle: handle.parse().unwrap(),
                operation: match kind {
                    "o" => Operation::Open,
                    "c" => Operation::Close,
                    _ => Operation::BadReference,
                },
                pid: 1,
                tid: 1,
                addresses: Vec::new(),
            }
        };
        text.split_whitespace().map(operation).collect()
    }

    /// Whether the operations were reversed, and whether that is counted as not decided.
    fn ordered(text: &str, open: Option<&[u64]>) -> (bool, bool) {
        let before = operations(text);
        let mut after = before.clone();
        let mut findings = Diagnostics::default();
        let open = open.map(|open| open.iter().copied().collect());
        put_in_order(&mut after, open.as_ref(), &mut findings);
        let reversed: Vec<_> = before.iter().rev().cloned().collect();
        assert!(after == before || after == reversed);
        (after == reversed, findings.of(WarningKind::UndecidedOrder) > 0)
    }

    #[test]
    fn an_open_before_its_close_decides() {
        assert_eq!(ordered("o4 c4 o8", None), (false, false));
        assert_eq!(ordered("o8 c4 o4", None), (true, false));
        // Of handle 8 tracing has forgotten the open.
        assert_eq!(ordered("c8 o4 c4 o8 o12 c12", None), (false, false));
    }

    #[test]
    fn the_list_of_handles_decides() {
        assert_eq!(ordered("c4 o4", Some(&[4])), (false, false));
        assert_eq!(ordered("o4 c4", Some(&[4])), (true, false));
        assert_eq!(ordered("o4 c4 o8 c8", Some(&[])), (false, false));
        assert_eq!(ordered("c4 o4 c8 o8", Some(&[])), (true, false));
    }

    #[test]
    fn contradictions_count_more_than_pairs() {
        assert_eq!(ordered("o4 o4 c4", Some(&[])), (false, false));
        assert_eq!(ordered("c4 o4 o4", Some(&[])), (true, false));
    }

    #[test]
    fn what_decides_nothing_is_counted() {
        assert_eq!(ordered("o4 o8", None), (true, true));
        assert_eq!(ordered("o4 b4 o8", Some(&[4, 8])), (true, true));
        assert!(!ordered("o4", None).1 && !ordered("", None).1);
    }
}
