//! Untrusted archives with traces: too large, suspicious, or damaged.

use std::fs::{self, File};
use std::io::{Cursor, Write as _};
use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, ContainerLimits};
use handlescope_sources::extract;
use handlescope_tests::binary::Shell;
use handlescope_tests::containers::{
    ContainerWriter, trace_of_handles, write_7z, write_cab, write_zip,
};
use handlescope_tests::thorough::one_of;
use sevenz_rust::{ArchiveEntry, ArchiveWriter};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn trace() -> Vec<u8> {
    trace_of_handles(50)
}

/// Writes all members in one block, as 7-Zip does.
fn write_solid(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut archive = ArchiveWriter::create(path).unwrap();
    let entries = members.iter().map(|(name, _)| ArchiveEntry::new_file(name)).collect();
    let contents = members.iter().map(|(_, content)| Cursor::new(content.clone()).into());
    archive.push_archive_entries(entries, contents.collect()).unwrap();
    archive.finish().unwrap();
}

const ARCHIVES: [(&str, ContainerWriter); 4] =
    [("a.zip", write_zip), ("b.7z", write_7z), ("solid.7z", write_solid), ("c.cab", write_cab)];

/// Returns why an archive is refused. Nothing may be left behind, and it must not take long.
fn refusal(archive: &Path, limits: ContainerLimits) -> String {
    let output = archive.with_extension("json7z");
    let options = ExtractOptions { limits, ..ExtractOptions::default() };
    let error =
        extract(archive, &output, options, &NoObserver, &Cancel::default()).map(drop).unwrap_err();
    assert!(!output.exists(), "{error}");
    let error = error.to_string();
    let name = archive.file_name().unwrap().to_string_lossy();
    assert!(error.contains(&format!("{name}: ")), "{error}");
    error
}

fn usual() -> ContainerLimits {
    ExtractOptions::default().limits
}

#[test]
fn a_trace_larger_than_the_limit_is_refused_by_what_it_claims() {
    let folder = tempfile::tempdir().unwrap();
    for (name, write) in ARCHIVES {
        let path = folder.path().join(name);
        write(&path, &[("deep/t.etl", trace())]);
        let size = trace().len() as u64;
        let error = refusal(&path, usual().trusted_with(size - 1));
        let said =
            format!("member deep/t.etl has {size} bytes, more than the limit of {}", size - 1);
        assert!(error.contains(&said), "{error}");
        let limits = usual().trusted_with(size);
        let options = ExtractOptions { limits, ..ExtractOptions::default() };
        extract(&path, &path.with_extension("json7z"), options, &NoObserver, &Cancel::default())
            .unwrap();
    }
}

#[test]
fn members_before_the_trace_in_its_block_count_towards_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("solid.7z");
    write_solid(&path, &[("large.bin", vec![7; 1 << 20]), ("t.etl", trace())]);
    let limits = ContainerLimits { total_bytes: 1 << 20, ..usual() };
    assert!(refusal(&path, limits).contains("unpacks to "));
    let path = folder.path().join("folder.cab");
    write_cab(&path, &[("large.bin", vec![7; 1 << 20]), ("t.etl", trace())]);
    assert!(refusal(&path, limits).contains("unpacks to "));
    let path = folder.path().join("solid.7z");
    // In separate blocks, members do not affect each other.
    write_7z(&path, &[("large.bin", vec![7; 1 << 20]), ("t.etl", trace())]);
    let options = ExtractOptions { limits, ..ExtractOptions::default() };
    extract(&path, &path.with_extension("json7z"), options, &NoObserver, &Cancel::default())
        .unwrap();
}

#[test]
fn a_bomb_is_refused_unless_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    for (name, write) in ARCHIVES.into_iter().step_by(one_of(3)) {
        let path = folder.path().join(name);
        let mut bomb = trace();
        bomb.resize(66 << 20, 0);
        write(&path, &[("t.etl", bomb)]);
        if !name.ends_with("7z") {
            // Deflate does not reach a ratio of a thousand with a trace in the archive.
            let error = refusal(&path, ContainerLimits { ratio: 200, ..usual() });
            assert!(error.contains("bytes claim to unpack to 69206016"), "{error}");
        } else {
            let error = refusal(&path, usual());
            assert!(error.contains("bytes claim to unpack to 69206016"), "{error}");
        }
        let limits = usual().trusted_with(66 << 20);
        let options = ExtractOptions { limits, ..ExtractOptions::default() };
        extract(&path, &path.with_extension("json7z"), options, &NoObserver, &Cancel::default())
            .unwrap();
    }
}

#[test]
fn a_member_that_has_more_or_less_than_it_claims_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    write_zip(&path, &[("t.etl", trace())]);
    let good = fs::read(&path).unwrap();
    let size = (trace().len() as u32).to_le_bytes();
    let directory = good.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    assert_eq!(good[directory + 24..directory + 28], size);
    for (claimed, said) in [(1000_u32, "larger than"), (1 << 30, "it ends")] {
        let mut bad = good.clone();
        bad[directory + 24..directory + 28].copy_from_slice(&claimed.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        let error = refusal(&path, usual().trusted_with(1 << 31));
        assert!(error.contains("member t.etl cannot be unpacked"), "{error}");
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn names_that_lead_out_of_the_archive_or_come_twice_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (archive, write) in ARCHIVES {
        for (name, said) in [
            ("../t.etl", "member \"../t.etl\" leads out of the archive"),
            ("a\\..\\..\\t.etl", "leads out of the archive"),
            ("/t.etl", "member \"/t.etl\" has an absolute name"),
            ("C:\\t.etl", "has an absolute name"),
        ] {
            let path = folder.path().join(archive);
            write(&path, &[(name, trace())]);
            let error = refusal(&path, usual());
            assert!(error.contains(said) && error.contains("the archive is refused"), "{error}");
            write(&path, &[("good.etl", trace()), (name, Vec::new())]);
            assert!(refusal(&path, usual()).contains(said));
        }
    }
    for (archive, write) in &ARCHIVES[1..] {
        let path = folder.path().join(archive);
        write(&path, &[("t.etl", trace()), ("t.etl", trace())]);
        assert!(refusal(&path, usual()).contains("member \"t.etl\" occurs twice"));
    }
    // The zip writer refuses to write a name twice.
    let path = folder.path().join("a.zip");
    write_zip(&path, &[("t.etl", trace()), ("u.etl", trace())]);
    let mut bytes = fs::read(&path).unwrap();
    while let Some(place) = bytes.windows(5).position(|name| name == b"u.etl") {
        bytes[place] = b't';
    }
    fs::write(&path, bytes).unwrap();
    assert!(refusal(&path, usual()).contains("two members have the same name"));
}

#[test]
fn a_wrong_checksum_and_a_cut_archive_are_errors_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let path = folder.path().join("a.zip");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    archive.start_file("t.etl", stored).unwrap();
    archive.write_all(&trace()).unwrap();
    archive.finish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = refusal(&path, usual());
    assert!(
        error.contains("member t.etl cannot be unpacked: ") && error.contains("hecksum"),
        "{error}"
    );
    for (name, write) in ARCHIVES {
        let path = folder.path().join(name);
        write(&path, &[("t.etl", trace())]);
        let good = fs::read(&path).unwrap();
        for at in (100..good.len()).step_by(good.len() / 7) {
            fs::write(&path, &good[..at]).unwrap();
            let _ = refusal(&path, usual());
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            fs::write(&path, &bad).unwrap();
            // Not every byte of an archive is read.
            let _ = extract(
                &path,
                &path.with_extension("json7z"),
                ExtractOptions::default(),
                &NoObserver,
                &Cancel::default(),
            );
            let _ = fs::remove_file(path.with_extension("json7z"));
        }
    }
}

#[test]
fn load_and_extract_name_the_option_that_raises_the_limit() {
    let shell = Shell::new();
    write_7z(&shell.path("t.7z"), &[("t.etl", trace())]);
    for refused in [
        shell.run(&["-c", ".load -MaxSize 400 t.7z"]),
        shell.run(&["extract", "-MaxSize", "400", "t.7z"]),
    ] {
        assert_eq!(refused.status, Some(1));
        let said = "t.7z: member t.etl has ";
        assert!(refused.stderr.contains(said), "{refused:?}");
        let said = "more than the limit of 400; if you trust it, raise the limit with -MaxSize";
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    assert!(!shell.path("Extract/t.json7z").exists());
    let _ = shell.run(&["-c", ".load -MaxSize 1MB t.7z", "-c", ".list"]).ok();
    let _ = shell.run(&["extract", "-MaxSize", "1MB", "t.7z"]).ok();
    // The extract is an archive, too.
    let extract = "Extract/t.json7z";
    let refused = shell.run(&["-c", &format!(".load -MaxSize 400 {extract}")]);
    assert_eq!(refused.status, Some(1));
    let said = "bytes, more than the limit of 400; if you trust it, raise the limit with -MaxSize";
    assert!(
        refused.stderr.contains("t.json7z: member ") && refused.stderr.contains(said),
        "{refused:?}"
    );
    let _ = shell.run(&["-c", &format!(".load -MaxSize 1MB {extract}"), "-c", ".list"]).ok();
}
