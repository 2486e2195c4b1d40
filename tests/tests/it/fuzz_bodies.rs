//! Runs the bodies of the fuzz targets on seeds and on damaged seeds.

#[path = "../../../fuzz/src/archive.rs"]
mod archive;
#[path = "../../../fuzz/src/etl.rs"]
mod etl;
#[path = "../../../fuzz/src/metadata.rs"]
mod metadata;
#[path = "../../../fuzz/src/sources.rs"]
mod sources;
#[path = "../../../fuzz/src/symbols.rs"]
mod symbols;

use std::ops::ControlFlow;
use std::path::Path;
use std::{env, fs};

use handlescope_extract::OpenRecording;
use handlescope_extract::etl::{Event, Selector};
use handlescope_model::Table;
use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::examples;
use handlescope_tests::dump::{DumpModule, SampleDump, TraceOperation};
use handlescope_tests::folders::files;
use handlescope_tests::foreign::ForeignMembers;
use handlescope_tests::thorough::one_of;
use sevenz_rust::{ArchiveReader, Password};

/// Returns the seeds of a target. If `HANDLESCOPE_FUZZ_SEEDS` names a folder, they are also written there for the
/// fuzzer.
fn seeds(target: &str, seeds: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let seeds: Vec<Vec<u8>> = seeds.into_iter().collect();
    if let Some(folder) = env::var_os("HANDLESCOPE_FUZZ_SEEDS") {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder).unwrap();
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("{number}-{}", seed.len())), seed).unwrap();
        }
    }
    seeds
}

fn golden() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let archives: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json7z"))
        .map(|path| fs::read(path).unwrap())
        .collect();
    assert!(!archives.is_empty());
    archives
}

fn behind(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

/// Returns the tables of an archive as input of the target.
fn members(archive: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = ArchiveReader::new(std::io::Cursor::new(archive), Password::empty()).unwrap();
    let mut found = Vec::new();
    for (kind, table) in (0..).zip(Table::ALL) {
        if let Ok(content) = reader.read_file(&table.member()) {
            found.push(behind(kind, &content));
        }
    }
    found
}

/// Changes one byte of the input at a time, about `times` times.
fn damaged(input: &[u8], times: usize) -> impl Iterator<Item = Vec<u8>> {
    let step = (input.len() / times).max(1) * one_of(16);
    (1..input.len()).step_by(step).map(|place| {
        let mut bad = input.to_vec();
        bad[place] ^= [0x01, 0x80, 0xFF, 0x55][place % 4];
        bad
    })
}

#[test]
fn golden_archives_are_read_as_they_are_and_part_by_part() {
    let whole = golden().into_iter().map(|archive| behind(archive::WHOLE, &archive));
    seeds("archive", whole.chain(golden().iter().flat_map(|archive| members(archive))));
    for archive in golden() {
        assert_eq!(archive::read(&behind(archive::WHOLE, &archive)), Table::ALL.len());
        let members = members(&archive);
        assert!(members.len() > 10);
        for member in members {
            // Objects without their events are refused.
            let refused = Table::ALL[usize::from(member[0])] == Table::Objects;
            assert_eq!(archive::read(&member), usize::from(!refused));
        }
    }
}

#[test]
fn no_damage_of_a_table_ends_in_a_panic() {
    for archive in golden() {
        for member in members(&archive) {
            for bad in damaged(&member, 60) {
                archive::read(&bad);
            }
        }
    }
}

#[test]
fn no_damage_of_a_table_of_contents_ends_in_a_panic() {
    for archive in golden() {
        let offset = u64::from_le_bytes(archive[12..20].try_into().unwrap());
        let contents = &archive[32 + usize::try_from(offset).unwrap()..];
        let input = [&[archive::CONTENTS, 0, 0], contents].concat();
        archive::read(&input);
        for bad in damaged(&input, 300) {
            archive::read(&bad);
        }
    }
}

#[test]
fn extracts_of_etwanalyzer_are_converted_or_refused() {
    let heads = ["modules\n", "", "stacks\n", "main\n"];
    let inputs = ForeignMembers::default()
        .named("a")
        .into_iter()
        .zip(heads)
        .map(|((_, content), head)| [head.as_bytes(), &content].concat());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json7z");
    ForeignMembers::default().pack(&path, "a");
    for input in seeds("etwanalyzer_import", inputs.chain([fs::read(path).unwrap()])) {
        assert!(sources::import_extract(&input), "{}", String::from_utf8_lossy(&input));
        for bad in damaged(&input, 100) {
            sources::import_extract(&bad);
        }
    }
}

/// Returns sound metadata of each kind, with a payload, as input of the target.
fn metadata_seeds() -> Vec<Vec<u8>> {
    let mut record = vec![7; 32];
    record.resize(112, 0);
    record[32] = 5;
    let text: Vec<u8> = "Go \0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    // A count, structures of a counted text, bytes, and a pointer; all have the same name.
    let fields =
        [(0, 6, 0, 1, 2), (5, 4, 1, 0, 0), (2, 14, 0, 1, 0), (0, 16, 0, 1, 8), (2, 1, 0, 1, 0)];
    let name = 112 + 24 * fields.len() as u32;
    for (at, number) in [(52, name), (68, name), (72, name), (100, 5), (104, 4)] {
        record[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    for (flags, kind, members, count, length) in fields {
        record.extend([flags, name].iter().flat_map(|n: &u32| n.to_le_bytes()));
        record.extend(
            [kind, members, 0, 0, count, length, 0, 0].iter().flat_map(|n: &u16| n.to_le_bytes()),
        );
    }
    record.extend(&text);
    let mut map = vec![7; 16];
    map.extend([24_u32, 1, 1, 0, 24, 1].iter().flat_map(|n| n.to_le_bytes()));
    map.extend(text);
    let manifest = br#"<m><provider name="P"><events><event value="1" task="T" template="A"/></events>
        <templates><template tid="A"><data name="n" inType="win:UInt16"/><struct name="s" count="n">
        <data name="t" inType="win:UnicodeString"/></struct></template></templates></provider></m>"#;
    let schema = b"\x17\0\0Go\0s\0\x98\x02a\0\x48b\0\x01c\0\x61\x02\0xy";
    let payload = [2_u8, 0, b'a', 0, 0, 0, b'b', 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0];
    let seed = |(kind, metadata): (u8, &[u8])| {
        let all = metadata.len() + payload.len();
        let share = (metadata.len() * 255).div_ceil(all) as u8;
        // Padded, so that the share of the metadata is exact.
        let mut payload = payload.to_vec();
        while (metadata.len() + payload.len()) * usize::from(share) / 255 < metadata.len() {
            payload.push(0);
        }
        [&[kind, share], metadata, &payload].concat()
    };
    [(0, &record[..]), (1, &map), (2, manifest), (4, schema)].map(seed).into()
}

#[test]
fn no_damage_of_metadata_ends_in_a_panic_or_a_hang() {
    let seeds = seeds("metadata", metadata_seeds());
    let decoded: Vec<usize> = seeds.iter().map(|seed| metadata::decode(seed)).collect();
    assert_eq!(decoded, [1, 0, 1, 1]);
    for seed in seeds {
        for bad in damaged(&seed, 2000) {
            metadata::decode(&bad);
        }
        for end in 0..seed.len() {
            metadata::decode(&seed[..end]);
        }
    }
}

#[test]
fn no_damage_of_a_minidump_ends_in_a_panic() {
    let dump = SampleDump {
        modules: vec![DumpModule::new(r"C:\demo\server.exe", 0x7FF6_0000_0000, 0x1000)],
        has_information: true,
        command_line: Some("server.exe".to_owned()),
        ..SampleDump::default()
    };
    let dump =
        dump.handle(4, "Event", "Go").operation(TraceOperation::Open, 4, &[0x7FF6_0000_0010]);
    for seed in seeds("dump", [dump.to_bytes()]) {
        assert!(sources::read_dump(&seed));
        for bad in damaged(&seed, 400) {
            sources::read_dump(&bad);
        }
    }
}

/// Builds a trace file with a few handle and heap events.
fn small_trace(compressed: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    let trace = LargeTrace {
        handle_events: 60,
        heap_events: 30,
        other_events: 20,
        cpus: 2,
        distinct_stacks: 6,
        stack_depth: 5,
        leak_percent: 10,
        processes: 2,
        seed: 7,
        compressed,
    };
    write_large_trace(&path, &trace).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn no_damage_of_a_trace_ends_in_a_panic_or_makes_threads_differ() {
    let whole = |trace| behind(etl::WHOLE, trace);
    let plain = small_trace(false);
    let inputs = [whole(&plain), whole(&small_trace(true)), etl::recipe(&plain)];
    let with = |bit| inputs.clone().map(|input| behind(input[0] | bit, &input[1..]));
    let (decoded, of_events) = (with(etl::DECODED), with(etl::STACKS_OF_EVENTS));
    for seed in seeds("etl", inputs.into_iter().chain(decoded).chain(of_events)) {
        assert!(etl::read(&seed));
        let times = if seed[0] & etl::DECODED == 0 { 40 } else { 1000 };
        for bad in damaged(&seed, times) {
            etl::read(&bad);
        }
    }
}

/// Selects every event.
struct Everything;

impl Selector for Everything {
    fn select(&mut self, _: &Event<'_>) -> bool {
        true
    }
}

#[test]
fn a_recipe_of_a_trace_has_its_events() {
    let events = |trace: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.etl");
        fs::write(&path, trace).unwrap();
        let mut events = Vec::new();
        let open = OpenRecording::open(&path).unwrap();
        let take = |event: &Event<'_>| events.push((event.id, event.time, event.payload.to_vec()));
        open.read(&mut Everything, |_| ControlFlow::Continue(()), take).unwrap();
        events
    };
    let plain = small_trace(false);
    let recipe = etl::recipe(&plain);
    assert!(events(&etl::assembled(&recipe[1..])) == events(&plain));
}

#[test]
fn no_damage_of_a_text_of_a_debugger_or_of_a_list_ends_in_a_panic() {
    let texts = [
        "0:001> !handle 0 f\nHandle a44\n  Type         \tThread\n  HandleCount  \t2\n  Name         \t<none>\n\
         \x20   Thread Id   1a.2b\n1 Handles\nType           \tCount\nThread         \t1\n",
        "<p>Handle = 0x3c - OPEN<br>\nThread ID = 0x17ec, Process ID = 0x17e8<br>\n0x1: a!f&#43;0x2<br></p>",
        "Nthandle v5.0 - Handle viewer\n\na.exe pid: 8 ME\n   48: File  (RW-)   C:\\a\nb.exe  pid: 9  type: Key  5: HKLM\n",
        "Handle type summary:\n  Event           : 3\n  <Unknown type>  : 1\nTotal handles: 4\n",
        "Process,PID,User,Handle,Type,Share Flags,Name\na.exe,7,ME,0x4,Event,,\n",
        "\"Process\",\"Type\",\"Name\",\"Handle\"\n\"a.exe (42)\",\"File\",\"C:\\a\",\"0x54\"\n",
    ];
    let texts = texts.into_iter().map(|text| text.as_bytes().to_vec());
    let log = fs::read(examples().join("htrace.log")).unwrap();
    for text in seeds("htrace", texts.chain([log])) {
        assert!(sources::read_text(&text), "{}", String::from_utf8_lossy(&text));
        for bad in damaged(&text, 200) {
            sources::read_text(&bad);
        }
    }
}

#[test]
fn symbol_files_resolve_and_no_damage_of_one_ends_in_a_panic() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut resolved = 0;
    let examples = ["symbols", "bin"].iter().flat_map(|folder| files(&examples.join(folder)));
    for file in seeds("resolve", examples.map(|(_, file)| file)) {
        resolved += symbols::resolve(&file);
        for bad in damaged(&file, 10) {
            symbols::resolve(&bad);
        }
    }
    assert!(resolved > 0);
}

#[test]
fn every_text_is_a_symbol_path() {
    let texts =
        ["", " ; ", r"C:\a;srv*b*https://x", "cache*c;symsrv*a.dll*d*http://[::1", "\0*;é", "none"];
    for text in seeds("symbol_path", texts.map(|text| text.as_bytes().to_vec())) {
        symbols::read_path(str::from_utf8(&text).unwrap());
        for bad in damaged(&text, 20) {
            symbols::read_path(&String::from_utf8_lossy(&bad));
        }
    }
}
