//! What a folder, a pattern or a name loads, what it is called, and what is said about the rest.

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::containers::{trace_of_handles, write_7z, write_zip};
use handlescope_tests::foreign::ForeignMembers;

/// Makes a folder `all` with the sample as `leaky.etl` and another program's extract of it.
fn beside_theirs(extract: &str) -> Shell {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("all/Extract")).unwrap();
    fs::rename(shell.path("leaky.etl"), shell.path("all/leaky.etl")).unwrap();
    ForeignMembers::default().pack(&shell.path(extract), "leaky");
    shell
}

#[test]
fn a_folder_or_pattern_loads_the_extract_of_another_program_and_says_so() {
    for extract in ["all/Extract/leaky.json7z", "all/leaky.json7z"] {
        for query in ["all", "all/*", "all/*.etl"] {
            let shell = beside_theirs(extract);
            let run = shell.run(&[query, "-c", ".list", "-c", ".dump Process"]).ok();
            let note =
                format!("all/leaky.etl is not extracted: {extract} is another program's extract");
            assert!(run.stderr.contains(&note), "{query}: {run:?}");
            assert!(run.stderr.contains("name the trace to extract it"), "{run:?}");
            assert!(run.stdout.contains(extract) && run.stdout.contains("LAB-PC1"), "{run:?}");
            let names = |name: &str| fs::read_dir(shell.path("all").join(name)).unwrap().count();
            assert_eq!(names("Extract"), usize::from(extract.contains("Extract")), "{query}");
        }
    }
}

#[test]
fn a_trace_that_is_named_is_extracted_whatever_lies_beside_it() {
    let shell = beside_theirs("all/Extract/leaky.json7z");
    let run = shell.run(&["all/leaky.etl", "-c", ".dump Process"]).ok();
    assert!(run.stdout.contains("explorer.exe"), "{run:?}");
    assert!(run.stderr.contains("is another program's extract and stays"), "{run:?}");
    // Handlescope's own extract exists now, but the folder still loads the extract that is in it.
    let folder = shell.run(&["all", "-c", ".list"]).ok();
    assert!(folder.stdout.contains("LAB-PC1"), "{folder:?}");
}

#[test]
fn a_trace_whose_other_extract_is_none_is_extracted() {
    let shell = beside_theirs("all/other.json7z");
    fs::remove_file(shell.path("all/other.json7z")).unwrap();
    write_7z(&shell.path("all/Extract/leaky.json7z"), &[("notes.txt", b"x".to_vec())]);
    let run = shell.run(&["all", "-c", ".dump Process"]).ok();
    assert!(run.stderr.contains("all/Extract/leaky.json7z cannot be used ("), "{run:?}");
    assert!(run.stdout.contains("explorer.exe"), "{run:?}");
}

#[test]
fn an_archive_named_after_its_trace_is_shown_by_the_name_of_the_trace() {
    let shell = Shell::new();
    fs::create_dir(shell.path("in")).unwrap();
    write_7z(&shell.path("in/x.etl.7z"), &[("x.etl", trace_of_handles(2))]);
    write_zip(&shell.path("in/y.etl.zip"), &[("y.etl", trace_of_handles(3))]);
    let script = ".list\n.dump ObjectRef -TopN 1\n.dump Version\n.converttime -time 1s\n\
                  .dump Process -fd in/x -csv\n.unload in/y\n.list\n.dump ObjectRef -json\n";
    let run = shell.script(&["in/x.etl.7z", "in/y.etl.zip"], script).ok();
    let (before, document) = run.stdout.split_at(run.stdout.find("{").unwrap());
    for shown in ["  in/x  ", "  in/y  ", "    x\n", "    y\n", "\nin/x\n", " for file y"] {
        assert!(before.contains(shown), "{shown:?}: {before}");
    }
    assert!(!before.contains(".etl.7z") && !before.contains("x.etl"), "{before}");
    assert!(document.contains(r#""path":"in/x.etl.7z""#), "{document}");
    let list = before.rsplit("#  File").next().unwrap();
    assert!(list.contains("in/x") && !list.contains("in/y"), "{list}");
}

#[test]
fn a_trace_is_known_by_its_content_and_an_event_log_is_named() {
    let shell = Shell::new();
    for name in ["leaky", "leaky.etl.bak"] {
        fs::copy(shell.path("leaky.etl"), shell.path(name)).unwrap();
        let run = shell.run(&[name, "-c", ".dump Process"]).ok();
        assert!(run.stdout.contains("leaky.exe"), "{name}: {run:?}");
    }
    for name in ["system.evtx", "system.etl"] {
        fs::write(shell.path(name), b"ElfFile\0\0\0\0\0\0\0\0\0").unwrap();
        let run = shell.run(&[name, "-c", ".list"]);
        let expected = format!(
            "error: {name}: is a Windows event log (.evtx), not a trace; it has no handles; record them with \
             handlescope record or wprp\n"
        );
        assert_eq!(run.stderr, expected, "{run:?}");
    }
}

#[test]
fn files_of_other_programs_are_named_with_what_to_do() {
    let shell = Shell::new();
    let objects = |class: &str| [b"\x14\0\0\0!FastSerialization.1\x05", class.as_bytes()].concat();
    for (name, content, expected) in [
        (
            "a.etlx",
            objects("Microsoft.Diagnostics.Tracing.Etlx.TraceLog"),
            "is PerfView's copy of a trace (.etlx), not a trace; load the .etl that it was made from",
        ),
        (
            "a.nettrace",
            b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec(),
            "is a recording of the .NET runtime (.nettrace), not a trace; it has no handles; record them",
        ),
        (
            "pointer.etl",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n".to_vec(),
            "is a pointer of Git LFS, not a trace; fetch the file with git lfs pull",
        ),
        (
            "pointer.json7z",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n".to_vec(),
            "is a pointer of Git LFS, not a 7z archive; fetch the file with git lfs pull",
        ),
        (
            "page.etl.zip",
            b"\r\n<!DOCTYPE html>\n<html><body>Sign in</body></html>".to_vec(),
            "is a web page (HTML), not a trace; download the file that the page offers, or save its text",
        ),
    ] {
        fs::write(shell.path(name), &content).unwrap();
        // The name does not matter, except for extracts.
        let unnamed = format!("{name}.bin");
        fs::write(shell.path(&unnamed), &content).unwrap();
        let names = [name, &unnamed];
        for name in names.into_iter().take(if name.ends_with("json7z") { 1 } else { 2 }) {
            let run = shell.run(&[name, "-c", ".list"]);
            assert_eq!(run.status, Some(1), "{run:?}");
            assert!(run.stderr.contains(&format!("error: {name}: {expected}")), "{run:?}");
        }
    }
    write_zip(&shell.path("a.trace.zip"), &[("a.trace/perf.data.txt", b"swapper".to_vec())]);
    let run = shell.run(&["a.trace.zip", "-c", ".list"]);
    assert!(run.stderr.contains("a.trace.zip: is a Linux recording by perfcollect"), "{run:?}");
}

#[test]
fn a_trace_with_the_longest_name_is_loaded_and_its_extract_is_of_it() {
    let shell = Shell::new();
    let folder = |length: usize| shell.path(&format!("of{length}"));
    for length in [230, 251, 252, 255] {
        let name = format!("{}.etl", "a".repeat(length - ".etl".len()));
        fs::create_dir(folder(length)).unwrap();
        fs::copy(shell.path("leaky.etl"), folder(length).join(&name)).unwrap();
        let folder = format!("of{length}");
        let first = shell.run(&[&format!("{folder}/{name}"), "-c", ".list"]).ok();
        assert!(first.stderr.contains(" objects, "), "{length}: {first:?}");
        let again = shell.run(&[&folder, "-c", ".list"]).ok();
        assert_eq!(again.stdout.lines().count(), 2, "{length}: {again:?}");
        assert!(!again.stderr.contains(" objects, "), "{length}: {again:?}");
    }
}

#[test]
fn a_folder_of_unusable_files_ends_in_one_line_with_a_count_and_examples() {
    let shell = Shell::new();
    fs::create_dir(shell.path("many")).unwrap();
    fs::rename(shell.path("leaky.etl"), shell.path("many/leaky.etl")).unwrap();
    for number in 0..2_900 {
        fs::write(shell.path(&format!("many/bad{number:04}.etl")), "no trace").unwrap();
    }
    let run = shell.run(&["--keep-going", "many", "-c", ".list"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stdout.contains("many/leaky.etl"), "{run:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let example = |number| format!("many/bad{number:04}.etl: is a text file, not a trace");
    let expected = format!(
        "warning: 2,900 files cannot be loaded: {}; {}; {}; and 2,897 more",
        example(0),
        example(1),
        example(2)
    );
    assert_eq!(lines.last(), Some(&expected.as_str()), "{run:?}");
    assert!(lines.contains(&"loaded many/leaky.etl"), "{run:?}");
    assert!(lines.len() < 6, "{run:?}");
}

#[test]
fn archives_of_all_sorts_in_a_folder_are_one_note_and_a_few_are_named() {
    let shell = Shell::new();
    for number in 0..5 {
        let name = format!("a{number}.zip");
        write_zip(&shell.path(&name), &[("notes.txt", b"x".to_vec())]);
    }
    let run = shell.run(&[".", "-c", ".list"]).ok();
    assert!(
        run.stderr.contains(
            "\n5 files cannot be loaded: a0.zip: holds no trace (.etl or .dmp), only notes.txt; "
        ),
        "{run:?}"
    );
    for number in 2..5 {
        fs::remove_file(shell.path(&format!("a{number}.zip"))).unwrap();
    }
    let run = shell.run(&[".", "-c", ".list"]).ok();
    for name in ["a0.zip", "a1.zip"] {
        let note = format!("\n{name}: holds no trace (.etl or .dmp), only notes.txt\n");
        assert!(run.stderr.contains(&note), "{run:?}");
    }
}

#[test]
fn a_failed_extraction_leaves_no_folder_behind() {
    let shell = Shell::new();
    fs::create_dir(shell.path("t")).unwrap();
    fs::create_dir(shell.path("own")).unwrap();
    fs::write(shell.path("t/text.etl"), "time,pid\n1,2\n").unwrap();
    for arguments in [
        &["t/text.etl", "-c", ".list"][..],
        &["extract", "t/text.etl"],
        &["extract", "t/text.etl", "-outdir", "a/b"],
        &["extract", "t/text.etl", "-outdir", "own"],
    ] {
        let run = shell.run(arguments);
        assert!(run.status == Some(1) && run.stderr.contains("a text file"), "{run:?}");
    }
    assert!(!shell.path("t/Extract").exists() && !shell.path("a").exists());
    assert!(shell.path("own").exists(), "it was there before");
    let run = shell.run(&["extract", "t/text.etl", "leaky.etl", "-outdir", "a/b"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(shell.path("a/b/leaky.json7z").exists());
}

#[test]
fn a_file_of_another_kind_is_refused_with_its_kind() {
    let shell = Shell::new();
    fs::write(shell.path("text.etl"), "time,pid\n1,2\n").unwrap();
    fs::write(shell.path("text.zip"), "not packed").unwrap();
    fs::write(shell.path("text.json7z"), "not packed").unwrap();
    fs::write(shell.path("empty.etl"), "").unwrap();
    fs::write(shell.path("empty.7z"), "").unwrap();
    fs::write(shell.path("empty.json7z"), "").unwrap();
    write_zip(&shell.path("archives.zip"), &[("a.zip", vec![1]), ("b.7z", vec![1])]);
    write_7z(&shell.path("archives.7z"), &[("d/a.etl.zip", vec![1]), ("notes.txt", vec![1])]);
    write_zip(&shell.path("in.zip"), &[("in.etl", Vec::new())]);
    write_7z(&shell.path("notes.7z"), &[("notes.etl", b"words".to_vec())]);
    for (file, message) in [
        ("text.etl", "text.etl: is a text file, not a trace"),
        ("text.zip", "text.zip: is a text file, not a trace"),
        ("text.json7z", "text.json7z: is a text file, not a 7z archive"),
        ("empty.etl", "empty.etl: is empty (0 bytes), not a trace"),
        ("empty.7z", "empty.7z: is empty (0 bytes), not a trace"),
        ("empty.json7z", "empty.json7z: is empty (0 bytes), not a 7z archive"),
        (
            "archives.zip",
            "archives.zip: holds archives (a.zip, b.7z) and no trace; unpack it and name one of them",
        ),
        ("archives.7z", "archives.7z: holds archives (d/a.etl.zip) and no trace; unpack it"),
        ("in.zip", "in.zip: its in.etl is empty (0 bytes), not a trace"),
        ("notes.7z", "notes.7z: its notes.etl is a text file, not a trace"),
    ] {
        for arguments in [&[file, "-c", ".list"][..], &["-c", &format!(".load {file}")]] {
            let run = shell.run(arguments);
            assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{file}: {run:?}");
            assert!(run.stderr.contains(message), "{file}: {run:?}");
        }
    }
}
