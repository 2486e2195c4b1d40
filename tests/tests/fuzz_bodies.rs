//! What the fuzz targets about tables do, done with seeds and with damage of them.

#[allow(unreachable_pub)]
#[path = "../../fuzz/src/archive.rs"]
mod archive;
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/import.rs"]
mod import;

use std::fs;
use std::io::Read as _;
use std::path::Path;

use handlescope_model::Table;
use handlescope_tests::foreign::Members;
use handlescope_tests::thorough::one_of;
use sevenz_rust::{ArchiveReader, Password};

fn golden() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let archives: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json7z"))
        .map(|path| fs::read(path).unwrap())
        .collect();
    assert!(archives.len() >= 2);
    archives
}

fn behind(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

/// The tables of an archive as input of the target.
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

/// The input with one byte at a time changed, about so many times.
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
    for archive in golden() {
        assert_eq!(archive::read(&behind(archive::WHOLE, &archive)), Table::ALL.len());
        let members = members(&archive);
        assert!(members.len() > 10);
        for member in members {
            // Objects without their events are refused.
            let is_alone = Table::ALL[usize::from(member[0])] == Table::Objects;
            assert_eq!(archive::read(&member), usize::from(!is_alone));
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
    let inputs = Members::default().named("a").into_iter().zip(heads);
    for ((name, content), head) in inputs {
        let input = [head.as_bytes(), &content].concat();
        assert!(import::convert(&input), "{name}");
        for bad in damaged(&input, 100) {
            import::convert(&bad);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json7z");
    Members::default().pack(&path, "a");
    let mut archive = Vec::new();
    fs::File::open(&path).unwrap().read_to_end(&mut archive).unwrap();
    assert!(import::convert(&archive));
    for bad in damaged(&archive, 100) {
        import::convert(&bad);
    }
}
