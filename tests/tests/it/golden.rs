//! Extracts of every layout that ever was stay readable, with the same answers.

use std::path::{Path, PathBuf};

use handlescope_model::SCHEMA_VERSION;
use handlescope_tests::binary::{Run, Shell, sample_symbols};
use serde_json::Value;

fn golden(layout: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/layout-{layout}.json7z"))
}

/// Answer of a file, without its name.
fn answer(shell: &Shell, file: &Path, question: &str) -> String {
    let symbols = sample_symbols();
    let (file, symbols) = (file.to_str().unwrap(), symbols.to_str().unwrap());
    let run = shell.run(&[file, "--symbol-path", symbols, "-c", question]).ok();
    let text = run.stdout.replace(file, "FILE");
    (1..=SCHEMA_VERSION)
        .fold(text, |text, layout| text.replace(&format!("layout-{layout}"), "leaky"))
}

#[test]
fn every_layout_has_an_archive_and_answers_as_the_trace_does() {
    let shell = Shell::new();
    let trace = shell.path("leaky.etl");
    for question in [
        ".dump ObjectRef -ShowStack -ShowRef",
        ".dump ObjectRef -Leak -ShowStack -json",
        ".dump ObjectRef -ShowTotal Process -TopN 5",
        ".dump ObjectRef -CreateStack *GetOrCreate* -csv answers.csv",
        ".dump Process",
        ".dump Module -json",
        ".dump Version",
    ] {
        let expected = answer(&shell, &trace, question);
        assert!(!expected.is_empty());
        assert_eq!(answer(&shell, &golden(SCHEMA_VERSION), question), expected, "{question}");
        for layout in 1..SCHEMA_VERSION {
            let found = answer(&shell, &golden(layout), question);
            assert_eq!(
                known_to_all(&found),
                known_to_all(&expected),
                "layout {layout}: {question}"
            );
        }
    }
}

/// An answer without what only the latest layouts know: members of documents, and drive letters, by which
/// columns of text get another width.
fn known_to_all(answer: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(answer) else {
        let prefixes = [(r"\Device\HarddiskVolume3\", r"C:\"), (r"\SystemRoot\", r"C:\Windows\")];
        let shown =
            prefixes.into_iter().fold(answer.to_owned(), |text, (nt, dos)| text.replace(nt, dos));
        return shown.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    remove(&mut document, &["closed_at_exit", "caveats"]);
    document.to_string()
}

fn remove(value: &mut Value, members: &[&str]) {
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !members.contains(&name.as_str()));
            object.values_mut().for_each(|value| remove(value, members));
        }
        Value::Array(array) => array.iter_mut().for_each(|value| remove(value, members)),
        _ => {}
    }
}

#[test]
fn handles_closed_at_process_exit_are_unknown_before_layout_3() {
    let shell = Shell::new();
    let leaks = |layout| {
        let file = golden(layout);
        shell.run(&[file.to_str().unwrap(), "-c", ".dump ObjectRef -Leak -json"]).ok()
    };
    let at_exit = |run: &Run| {
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        document["objects"][0]["events"][0]["closed_at_exit"].clone()
    };
    let (old, new) = (leaks(2), leaks(3));
    assert_eq!((at_exit(&old), at_exit(&new)), (Value::Null, Value::Bool(false)));
    assert!(
        old.stderr.contains("handles closed only by process exit are unknown"),
        "{}",
        old.stderr
    );
    assert!(!new.stderr.contains("unknown"), "{}", new.stderr);
}

#[test]
fn an_old_layout_is_reported_and_what_it_lacks_is_unknown() {
    let shell = Shell::new();
    let old = golden(1);
    assert!(answer(&shell, &old, ".dump Stats").contains("(layout 1)"));
    let stacks = answer(&shell, &old, ".dump Stack -TopN 1");
    assert!(stacks.contains("Only stacks of handle events"), "{stacks}");
    let new = answer(&shell, &golden(2), ".dump Stack -TopN 1");
    assert!(!new.contains("Only stacks of handle events"), "{new}");
}
