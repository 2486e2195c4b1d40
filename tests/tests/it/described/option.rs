//! `-resource` of `extract`, and redacted copies.

use handlescope_tests::binary::Shell;
use handlescope_tests::bytes::ByteString;
use handlescope_tests::header::ManifestEvent;
use handlescope_tests::payload::{manifest_chunks, trace_logging};

use super::{DescribedTrace, MANIFEST, MS, POOL, gui_events, hook};

/// Builds a trace of a pool with unusual event names.
fn pool() -> DescribedTrace {
    let mut described = DescribedTrace::new();
    let items =
        |name: &str| trace_logging(name, b"block\0\x0abytes\0\x08tag\0\x01", "Contoso.Pool");
    for (ms, name, block) in [(10, "Take", 1), (11, "Take", 2), (12, "Give", 1)] {
        let payload = ByteString::new().u64(block).u32(64).utf16z("Secret,\"Tag\"").into_vec();
        let items = items(name);
        let event = ManifestEvent { provider: POOL, items, payload, ..Default::default() };
        described.event(ms, 700, event);
    }
    described
}

const TAKE: &str = "contoso.pool/take acquire handle=block size=bytes allocator=tag";
const GIVE: &str = "*/Give release handle=BLOCK allocator=tag";

/// Lists the open resources of a trace or extract in a folder.
fn open_in(shell: &Shell, file: &str) -> String {
    let sql = ".sql SELECT allocator, provider, key, size FROM allocations WHERE leaked -csv";
    shell.run(&[file, "-c", sql]).ok().stdout
}

#[test]
fn the_option_takes_words_and_files() {
    let shell = Shell::new();
    pool().trace.write(shell.path("a.etl")).unwrap();
    let expected = "\"Secret,\"\"Tag\"\"\",Contoso.Pool,0x2,64";
    let words = format!("{TAKE};{GIVE}");
    let _ = shell.run(&["extract", "a.etl", "-resource", &words, "-outdir", "words"]).ok();
    let found = open_in(&shell, "words/a.json7z");
    assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), [expected], "{found}");
    let entry = |event: &str, action: &str, more: &str| {
        format!(
            "[[resource]]\nevent = '{event}'\naction = '{action}'\nhandle = 'block'\nallocator = 'tag'\n{more}"
        )
    };
    let list = [
        entry("Contoso.Pool/Take", "acquire", "size = 'bytes'\n"),
        entry("Contoso.Pool/Give", "release", ""),
    ];
    std::fs::write(shell.path("pool.toml"), list.concat()).unwrap();
    let _ = shell.run(&["extract", "a.etl", "-resource", "pool.toml", "-outdir", "file"]).ok();
    assert_eq!(open_in(&shell, "file/a.json7z"), found);
    let _ = shell.run(&["extract", "a.etl", "-outdir", "none"]).ok();
    assert_eq!(open_in(&shell, "none/a.json7z").lines().count(), 1);
}

#[test]
fn a_mapping_that_makes_no_sense_is_refused_before_a_trace_is_read() {
    let shell = Shell::new();
    pool().trace.write(shell.path("a.etl")).unwrap();
    std::fs::write(shell.path("bad.toml"), "[[resource]]\nevent = 'P/E'\n").unwrap();
    let kernel = "[[resource]]\nevent = 'Windows Kernel/Process'\naction = 'acquire'\n";
    std::fs::write(shell.path("kernel.toml"), kernel).unwrap();
    for (given, said) in [
        ("Take acquire", "-resource: Take acquire: \"Take\" is not a PROVIDER/EVENT"),
        ("bad.toml", "bad.toml: not a list of mappings: line 1: missing field `action`"),
        (
            "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c/1 acquire",
            "-resource: 3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c/1: events of this kernel provider cannot be mapped",
        ),
        ("kernel.toml", "kernel.toml: Windows Kernel/Process: events of this kernel provider"),
        ("missing.toml", "-resource takes a file with a list in TOML, or mappings in words"),
    ] {
        let run = shell.run(&["extract", "a.etl", "-resource", given, "-outdir", "out"]);
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert!(run.status == Some(1) && !shell.path("out/a.json7z").exists());
    }
}

#[test]
fn a_redacted_copy_has_neither_the_fields_nor_the_names_of_resources() {
    let shell = Shell::new();
    let mut described = pool();
    for chunk in manifest_chunks(POOL, MANIFEST, 200, described.stamp(2, 700)) {
        described.trace.raw_event(2 * MS, 0, chunk);
    }
    described.event(20, 700, hook(1, 0x4242_4242, 100, "Secret Pen"));
    gui_events(&mut described, |id| id);
    described.trace.write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["redact", "a.etl"]).ok();
    let bytes = std::fs::read(shell.path("a.redacted.etl")).unwrap();
    let utf16 = |text: &str| ByteString::new().utf16z(text).into_vec();
    for secret in [
        utf16("Secret"),
        utf16("Pen"),
        b"Contoso.Pool".to_vec(),
        b"AcquireResource".to_vec(),
        0x4242_4242_u32.to_le_bytes().to_vec(),
        0x20010_u64.to_le_bytes().to_vec(),
    ] {
        let secret = secret.strip_suffix(&[0, 0]).filter(|_| secret.len() > 8).unwrap_or(&secret);
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{secret:?}");
    }
    assert_eq!(open_in(&shell, "a.redacted.etl").lines().count(), 1);
}
