//! Minidumps, converted from bytes.

use handlescope_model::tables::Acquisition;
use handlescope_model::{ProcessIdx, TableRows as _};
use minidump_common::format::MINIDUMP_STREAM_TYPE as Kind;

use super::*;

/// Bytes of an AVRF_HANDLE_OPERATION.
const OPERATION_BYTES: usize = 288;

/// A dump with streams one after the other, each with what it is followed by.
fn dump(streams: &[(Kind, Vec<u8>)]) -> Vec<u8> {
    let mut place = 32 + streams.len() * 12;
    let mut bytes = Vec::new();
    let numbers = [0x504D_444D_u32, 0xA793, streams.len() as u32, 32, 0, 1_700_000_000, 0, 0];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    for (kind, stream) in streams {
        let entry = [*kind as u32, stream.len() as u32, place as u32];
        bytes.extend(entry.iter().flat_map(|number| number.to_le_bytes()));
        place += stream.len();
    }
    bytes.extend(streams.iter().flat_map(|(_, stream)| stream));
    bytes
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Operations on handles: kind, handle, pid and return addresses.
fn operations(operations: &[(u32, u64, u32, &[u64])]) -> Vec<u8> {
    let mut bytes = numbers(&[16, OPERATION_BYTES as u32, operations.len() as u32, 0]);
    for (kind, handle, pid, addresses) in operations {
        let start = bytes.len();
        bytes.extend(handle.to_le_bytes());
        bytes.extend(numbers(&[*pid, 7, *kind, 0, addresses.len() as u32, 0]));
        bytes.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
        bytes.resize(start + OPERATION_BYTES, 0);
    }
    bytes
}

/// Descriptors of 32 bytes without names.
fn handles(values: &[u64]) -> Vec<u8> {
    let mut bytes = numbers(&[16, 32, values.len() as u32, 0]);
    for value in values {
        bytes.extend(value.to_le_bytes());
        bytes.extend([0; 24]);
    }
    bytes
}

/// Descriptors of 40 bytes: handle, places of type and name, and of object information.
fn long_handles(descriptors: &[(u64, u32, u32, u32)]) -> Vec<u8> {
    let mut bytes = numbers(&[16, 40, descriptors.len() as u32, 0]);
    for (handle, type_name, name, information) in descriptors {
        bytes.extend(handle.to_le_bytes());
        bytes.extend(numbers(&[*type_name, *name, 0, 0, 0, 0, *information, 0]));
    }
    bytes
}

fn converted(bytes: &[u8]) -> Result<OperationTables, SourceError> {
    let identity =
        SourceIdentity { size: bytes.len() as u64, modified_ns: None, content: String::new() };
    let source = DumpSource { path: Path::new("a.dmp"), name: "a.dmp", identity: &identity };
    tables(bytes, source, &Cancel::default())
}

fn tables_of(streams: &[(Kind, Vec<u8>)]) -> OperationTables {
    converted(&dump(streams)).expect("a dump")
}

/// Number and place of the warnings of a kind.
fn warned(tables: &OperationTables, kind: WarningKind) -> (u64, Option<u64>) {
    let warning = tables.warnings.iter().find(|warning| warning.kind == kind.text());
    warning.map_or((0, None), |warning| (warning.count, warning.first_offset))
}

fn acquisitions(tables: &OperationTables) -> Vec<Acquisition> {
    tables.handles.tables.acquisitions.rows().collect()
}

/// Values of the handles that the dump lists as open.
fn listed(tables: &OperationTables) -> Vec<u64> {
    acquisitions(tables)
        .into_iter()
        .filter(|row| row.in_rundown == Some(true))
        .map(|row| row.key)
        .collect()
}

#[test]
fn operations_without_a_list_of_handles_become_events() {
    let list = operations(&[
        (1, 8, 42, &[0x10, 0x20]),
        (2, 4, 42, &[0x30]),
        (1, 4, 42, &[0x10, 0x20]),
        (3, 12, 42, &[0x30]),
    ]);
    let tables = tables_of(&[(Kind::HandleOperationListStream, list)]);
    assert_eq!(tables.processes.pid, [42]);
    assert_eq!((tables.handles.tables.objects.len(), tables.handles.leaked), (2, 1));
    assert_eq!((tables.stacks.len(), tables.stack_events.len()), (2, 4));
    assert_eq!(warned(&tables, WarningKind::BadReference).0, 1);
    assert_eq!(warned(&tables, WarningKind::UndecidedOrder).0, 0);
    let info = &tables.info;
    assert!(info.is_dump() && !info.has_clock());
    assert_eq!(info.start_filetime(), Some(1_700_000_000 * PER_SECOND + UNIX_EPOCH));
    let times = acquisitions(&tables).into_iter().map(|row| (row.opened_ns, row.ended_ns));
    // The close of handle 4 was stored before its open: the newest stands first.
    assert_eq!(times.collect::<Vec<_>>(), [(Some(1), Some(2)), (Some(3), None)]);
}

#[test]
fn handles_that_no_operation_opened_have_no_events() {
    let tables = tables_of(&[
        (Kind::HandleDataStream, handles(&[4, 8, 16])),
        (Kind::HandleOperationListStream, operations(&[(1, 8, 42, &[1]), (1, 12, 42, &[1])])),
    ]);
    let objects = tables.handles.tables.objects.len();
    assert_eq!((objects, tables.handles.leaked), (4, 1));
    assert_eq!(listed(&tables), [8, 4, 16]);
    // Handle 12 is not open any more.
    assert_eq!(warned(&tables, WarningKind::OpenNotListed).0, 1);
}

#[test]
fn a_handle_listed_after_its_close_is_a_handle_of_its_own() {
    let tables = tables_of(&[
        (Kind::HandleDataStream, handles(&[4])),
        (Kind::HandleOperationListStream, operations(&[(1, 4, 42, &[1]), (2, 4, 42, &[1])])),
    ]);
    // Newest first would be without contradiction: closed, then opened.
    assert_eq!(warned(&tables, WarningKind::ListedAfterClose).0, 0);
    let tables = tables_of(&[
        (Kind::HandleDataStream, handles(&[4])),
        (Kind::HandleOperationListStream, operations(&[(2, 4, 42, &[1])])),
    ]);
    assert_eq!(warned(&tables, WarningKind::ListedAfterClose).0, 1);
    assert_eq!((tables.handles.tables.objects.len(), tables.handles.leaked), (2, 0));
}

#[test]
fn an_operation_of_another_process_belongs_to_the_handles_of_this_one() {
    let misc = numbers(&[24, 1, 42, 0, 0, 0]);
    let tables = tables_of(&[
        (Kind::MiscInfoStream, misc),
        (Kind::HandleOperationListStream, operations(&[(1, 4, 99, &[1]), (1, 8, 99, &[1])])),
    ]);
    assert_eq!(tables.processes.pid, [42, 99]);
    assert_eq!(tables.stack_events.pid, [99, 99]);
    let callers = acquisitions(&tables).into_iter().map(|row| (row.process, row.opened_by));
    let of_other = (Some(ProcessIdx(0)), Some(ProcessIdx(1)));
    assert_eq!(callers.collect::<Vec<_>>(), [of_other, of_other]);
}

#[test]
fn circular_and_broken_chains_are_counted_with_their_places() {
    // The directory ends at 44, descriptors start at 60.
    let information = 60 + 3 * 40;
    let mut stream = long_handles(&[
        (4, 0, 0, information),
        (8, 0, 0, 0xFFFF_FFF0),
        (12, 0, 0, information + 12),
    ]);
    stream.extend(numbers(&[information, 1, 12, 0, 1, 12]));
    let tables = tables_of(&[(Kind::HandleDataStream, stream)]);
    assert_eq!(warned(&tables, WarningKind::BadObjectInformation), (2, Some(60)));
    assert_eq!(listed(&tables), [4, 8, 12]);
}

/// Object information of a kind with fields of a size, of which some have values.
fn information(kind: u32, bytes: u32, field: usize, values: &[(usize, u32)]) -> Vec<u8> {
    let mut content = vec![0; bytes as usize];
    for (place, value) in values {
        content[place * field..place * field + 4].copy_from_slice(&value.to_le_bytes());
    }
    [numbers(&[0, kind, bytes]), content].concat()
}

#[test]
fn objects_without_names_are_named_by_the_thread_and_process_that_they_are_or_belong_to() {
    let (thread, owner) = ([(0, 0x103), (2, 42), (3, 7)], [(0, 42), (1, 7)]);
    let information = [
        information(1, 28, 4, &thread),
        information(1, 48, 8, &thread),
        information(4, 24, 4, &[(0, 0x103), (4, 42)]),
        information(5, 64, 8, &[(1, 0x103), (5, 43)]),
        // Ended.
        information(1, 48, 8, &[(2, 42), (3, 7)]),
        information(4, 48, 8, &[(0, 5), (4, 42)]),
        information(5, 32, 4, &[(1, 0xC000_0005), (5, 43)]),
        information(3, 8, 4, &owner),
        information(3, 16, 8, &owner),
        // Not owned, of another size, of another kind, and with a name.
        information(3, 16, 8, &[]),
        information(1, 44, 8, &thread),
        information(6, 28, 4, &thread),
        information(1, 28, 4, &thread),
    ];
    let mut place = 60 + information.len() as u32 * 40;
    let text = place + information.iter().map(|bytes| bytes.len() as u32).sum::<u32>();
    let mut descriptors = Vec::new();
    for (handle, bytes) in (1..).zip(&information) {
        let name = if handle == information.len() as u64 { text } else { 0 };
        descriptors.push((handle * 4, 0, name, place));
        place += bytes.len() as u32;
    }
    let mut stream = long_handles(&descriptors);
    stream.extend(information.concat());
    stream.extend(numbers(&[4]));
    stream.extend("ab".encode_utf16().flat_map(u16::to_le_bytes));
    let tables = tables_of(&[(Kind::HandleDataStream, stream)]);
    let names = tables.handles.tables.objects.rows().map(|object| {
        let name = object.name.and_then(|name| tables.names.name.get(name.0 as usize));
        name.cloned().unwrap_or_default()
    });
    let (thread, owned) = ("thread 7 of process 42", "owned by thread 7 of process 42");
    let ended = [
        "thread 7 of process 42, ended with 0",
        "process 42, ended with 5",
        "process 43, ended with -1073741819",
    ];
    let running = [thread, thread, "process 42", "process 43"];
    let expected = [&running[..], &ended, &[owned, owned, "", "", "", "ab"]].concat();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert_eq!(warned(&tables, WarningKind::BadObjectInformation).0, 0);
}

#[test]
fn a_handle_that_a_cut_list_lacks_may_be_open() {
    let traced = operations(&[(1, 8, 42, &[1]), (1, 4, 42, &[1])]);
    let leaked_and_unlisted = |list: &[u8]| {
        let list = (Kind::HandleDataStream, list.to_vec());
        let tables = tables_of(&[list, (Kind::HandleOperationListStream, traced.clone())]);
        (tables.handles.leaked, warned(&tables, WarningKind::OpenNotListed).0)
    };
    let whole = handles(&[8, 12]);
    assert_eq!(leaked_and_unlisted(&whole), (1, 1));
    for length in [16 + 32, 16, 11] {
        assert_eq!(leaked_and_unlisted(&whole[..length]), (2, 0), "{length}");
    }
    assert_eq!(leaked_and_unlisted(&handles(&[])), (0, 2));
}

#[test]
fn names_are_read_once_and_bad_ones_are_counted() {
    let text = 60 + 4 * 40;
    let mut stream = long_handles(&[
        (4, text, text, 0),
        (8, text, text, 0),
        (12, text + 2, 0xFFFF_FFFF, 0),
        (4, text, 0, 0),
    ]);
    stream.extend(numbers(&[4]));
    stream.extend("ab".encode_utf16().flat_map(u16::to_le_bytes));
    let tables = tables_of(&[(Kind::HandleDataStream, stream)]);
    assert_eq!(tables.object_types.name, ["ab"]);
    assert_eq!(tables.names.name, ["ab"]);
    assert_eq!(warned(&tables, WarningKind::BadDumpName), (2, Some(140)));
    // A value that is listed twice is one handle.
    assert_eq!(warned(&tables, WarningKind::BadDumpEntry), (1, Some(180)));
}

#[test]
fn cut_streams_and_claims_are_counted_with_their_places() {
    let whole = dump(&[(Kind::HandleDataStream, handles(&[4, 8, 12]))]);
    let tables = converted(&whole[..60 + 2 * 32 + 5]).expect("a dump");
    assert_eq!(warned(&tables, WarningKind::CutStream), (1, Some(44)));
    assert_eq!(warned(&tables, WarningKind::MissingEntries), (1, Some(124)));
    assert_eq!(listed(&tables), [4, 8]);
    let mut many = handles(&[4]);
    many[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let tables = tables_of(&[(Kind::HandleDataStream, many)]);
    assert_eq!(listed(&tables), [4]);
    assert_eq!(warned(&tables, WarningKind::MissingEntries).0, u64::from(u32::MAX) - 1);
    let deep = {
        let mut list = operations(&[(1, 4, 42, &[1]), (9, 4, 42, &[]), (1, 8, 42, &[1])]);
        list[16 + 24..16 + 28].copy_from_slice(&33_u32.to_le_bytes());
        list
    };
    let tables = tables_of(&[(Kind::HandleOperationListStream, deep)]);
    assert_eq!(warned(&tables, WarningKind::BadDumpEntry), (2, Some(60)));
    assert_eq!(tables.handles.events, 1);
}

#[test]
fn a_dump_without_handle_data_and_what_is_no_dump_are_refused() {
    let refused = |bytes: &[u8]| converted(bytes).err().expect("refused").to_string();
    let message = refused(&dump(&[(Kind::MiscInfoStream, numbers(&[24, 1, 42, 0, 0, 0]))]));
    for word in ["a.dmp: ", ".dump /mh", "procdump -ma", "MiniDumpWithHandleData"] {
        assert!(message.contains(word), "{message}");
    }
    assert!(refused(b"MDMP").ends_with("no complete header at offset 0"));
    let mut other = dump(&[]);
    other[4] = 0;
    assert!(refused(&other).ends_with("unknown version of the format at offset 4"));
}

#[test]
fn addresses_of_32_bits_lie_in_modules_however_they_are_extended() {
    let mut system = vec![0; 56];
    system[8..12].copy_from_slice(&6_u32.to_le_bytes());
    let mut modules = numbers(&[1]);
    modules.extend(0xFFFF_FFFF_9000_0000_u64.to_le_bytes());
    modules.extend(numbers(&[0x1000, 0, 0, 0]));
    modules.resize(4 + 108, 0);
    // An empty name.
    let place = 32 + 3 * 12 + 56;
    modules[4 + 20..4 + 24].copy_from_slice(&(place + 4 + 24_u32).to_le_bytes());
    let list = operations(&[(1, 4, 42, &[0x9000_0123, 0xFFFF_FFFF_9000_0456, 0x9000_1000])]);
    let tables = tables_of(&[
        (Kind::SystemInfoStream, system),
        (Kind::ModuleListStream, modules),
        (Kind::HandleOperationListStream, list),
    ]);
    assert_eq!(tables.info.pointer_size, 4);
    assert_eq!(tables.frames.rva, [Some(0x123), Some(0x456), None]);
    assert_eq!(tables.frames.address, [None, None, Some(0x9000_1000)]);
}

#[test]
fn objects_of_listed_handles_have_their_types() {
    let text = 60 + 40;
    let mut stream = long_handles(&[(4, text, 0, 0)]);
    stream.extend(numbers(&[4]));
    stream.extend("Ev".encode_utf16().flat_map(u16::to_le_bytes));
    let tables = tables_of(&[(Kind::HandleDataStream, stream)]);
    let object = tables.handles.tables.objects.row(0).expect("an object");
    assert_eq!((object.type_id.0, object.acquisition_count.0), (1, 1));
    assert_eq!(listed(&tables), [4]);
}
