//! Untrusted ETWAnalyzer extracts: damaged, suspicious and too large ones.

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::data::unpack;
use handlescope_tests::foreign::{ForeignMembers, pack, pack_with, refusal};
use sevenz_rust::EncoderMethod;

#[test]
fn broken_json_is_refused_with_member_and_position() {
    let shell = Shell::new();
    let cases = [
        ("", "member Bad_Derived_Handle.json, line 1, column 0: EOF while parsing a value"),
        (r#"{"ObjectReferences":[{"ObjectPtr":1},"#, "line 1, column 37: EOF while parsing"),
        ("{\n\"ObjectReferences\":[{\"ObjectPtr\":\"x\"}]}", "line 2, column 36: invalid type"),
        (r#"{"ObjectReferences":[]} x"#, "column 25: trailing characters"),
        ("[]", "invalid type: sequence, expected an object"),
        ("{\"a\":\"\u{1}\"}", "control character"),
    ];
    for (handle, said) in cases {
        let members = ForeignMembers { handle: handle.into(), ..ForeignMembers::default() };
        members.pack(&shell.path("Bad.json7z"), "Bad");
        let error = refusal(&shell, "Bad.json7z");
        assert!(error.contains("Bad.json7z: member Bad_Derived_Handle.json"), "{error}");
        assert!(error.contains(said), "{said}: {error}");
    }
    let deep = format!("{{\"Unknown\":{}", "[".repeat(100_000));
    ForeignMembers { handle: deep, ..ForeignMembers::default() }
        .pack(&shell.path("Bad.json7z"), "Bad");
    assert!(refusal(&shell, "Bad.json7z").contains("nested deeper than 64 levels, at byte 74"));
    let long = format!("{{\"Unknown\":\"{}", "x".repeat(17 << 20));
    ForeignMembers { handle: long, ..ForeignMembers::default() }
        .pack(&shell.path("Bad.json7z"), "Bad");
    assert!(refusal(&shell, "Bad.json7z").contains("a string of more than 16777216 bytes"));
}

#[test]
fn other_json_and_other_archives_are_not_extracts() {
    let shell = Shell::new();
    fs::write(shell.path("other.json"), r#"{"name":"package"}"#).unwrap();
    assert!(refusal(&shell, "other.json").contains("neither SessionStart nor Processes"));
    pack(&shell.path("other.json7z"), &[("readme.txt".into(), b"x".to_vec())]);
    assert!(
        refusal(&shell, "other.json7z").contains("not an extract of handlescope or ETWAnalyzer")
    );
    let handle = ForeignMembers::default().named("x").swap_remove(1);
    pack(&shell.path("other.json7z"), &[handle]);
    assert!(refusal(&shell, "other.json7z").contains("no main member"));
}

#[test]
fn names_that_lead_out_and_names_that_are_there_twice_are_refused() {
    let shell = Shell::new();
    for (name, said) in [
        ("../Bad.json", "leads out of the archive"),
        ("a\\..\\..\\Bad.json", "leads out of the archive"),
        ("/etc/Bad.json", "absolute name"),
        ("C:\\Bad.json", "absolute name"),
        ("Bad.json", "occurs twice"),
    ] {
        let mut members = ForeignMembers::default().named("Bad");
        members.push((name.to_owned(), b"{}".to_vec()));
        pack(&shell.path("Bad.json7z"), &members);
        let error = refusal(&shell, "Bad.json7z");
        assert!(error.contains(said) && error.contains("the archive is refused"), "{error}");
    }
}

#[test]
fn a_damaged_archive_is_refused_wherever_the_damage_is() {
    let shell = Shell::new();
    let path = shell.path("Bad.json7z");
    for method in [EncoderMethod::COPY, EncoderMethod::LZMA2] {
        pack_with(&path, &ForeignMembers::default().named("Bad"), method);
        let good = fs::read(&path).unwrap();
        for at in (40..good.len()).step_by(good.len() / 6) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            fs::write(&path, &bad).unwrap();
            let _ = refusal(&shell, "Bad.json7z");
            fs::write(&path, &good[..at]).unwrap();
            let _ = refusal(&shell, "Bad.json7z");
        }
    }
    pack(&path, &ForeignMembers::default().named("Bad"));
    let mut bad = fs::read(&path).unwrap();
    let in_handle = bad.windows(6).position(|bytes| bytes == b"Demo_0").unwrap();
    bad[in_handle] ^= 1;
    fs::write(&path, &bad).unwrap();
    let error = refusal(&shell, "Bad.json7z");
    assert!(error.contains("member Bad_Derived_Handle.json cannot be unpacked"), "{error}");
}

#[test]
fn an_extract_of_ours_is_not_believed_more() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    fs::rename(shell.path("leaky.json7z"), shell.path("ours.7z")).unwrap();
    let unpacked = unpack(&shell.path("ours.7z"));
    let mut members: Vec<(String, Vec<u8>)> = fs::read_dir(unpacked.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    for (name, said) in [
        ("../acquisitions.parquet", "leads out of the archive"),
        ("/acquisitions.parquet", "absolute name"),
        ("acquisitions.parquet", "occurs twice"),
    ] {
        members.push((name.to_owned(), b"x".to_vec()));
        pack(&shell.path("bad.json7z"), &members);
        let error = refusal(&shell, "bad.json7z");
        assert!(error.contains(said) && error.contains("the archive is refused"), "{error}");
        members.pop();
    }
    members.push(("more.parquet".into(), vec![0; 80 << 20]));
    pack_with(&shell.path("bad.json7z"), &members, EncoderMethod::LZMA2);
    let error = refusal(&shell, "bad.json7z");
    assert!(error.contains("bytes claim to unpack to 83"), "{error}");
}

#[test]
fn a_part_that_is_too_large_is_refused_unless_it_is_allowed() {
    let shell = Shell::new();
    ForeignMembers::default().pack(&shell.path("Demo.json7z"), "Demo");
    for (name, content) in ForeignMembers::default().named("Plain") {
        fs::write(shell.path(&name), content).unwrap();
    }
    for file in ["Demo.json7z", "Plain.json"] {
        let refused = shell.run(&["-c", &format!(".load -MaxSize 400 {file}")]);
        assert_eq!(refused.status, Some(1));
        assert!(
            refused.stderr.contains("bytes, more than the limit of 400; if you"),
            "{refused:?}"
        );
        let _ = shell.run(&["-c", &format!(".load -MaxSize 1MB {file}"), "-c", ".list"]).ok();
    }
}

#[test]
fn a_bomb_is_refused_by_what_it_claims() {
    let shell = Shell::new();
    let mut members = ForeignMembers::default().named("Bad");
    members[1].1 = vec![b' '; 80 << 20];
    pack_with(&shell.path("Bad.json7z"), &members, EncoderMethod::LZMA2);
    let error = refusal(&shell, "Bad.json7z");
    assert!(error.contains("bytes claim to unpack to 838"), "{error}");
}
