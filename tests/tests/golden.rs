//! Extracts of every layout that ever was stay readable, with the same answers.

use std::path::{Path, PathBuf};

use handlescope_model::SCHEMA_VERSION;
use handlescope_tests::binary::{Shell, sample_symbols};

fn golden(layout: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/layout-{layout}.json7z"))
}

/// What a file answers, without its name.
fn answer(shell: &Shell, file: &Path, question: &str) -> String {
    let symbols = sample_symbols();
    let (file, symbols) = (file.to_str().unwrap(), symbols.to_str().unwrap());
    let run = shell.run(&[file, "--symbol-path", symbols, "-c", question]).ok();
    run.stdout.replace(file, "FILE").replace("layout-1", "leaky").replace("layout-2", "leaky")
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
        for layout in 1..=SCHEMA_VERSION {
            let found = answer(&shell, &golden(layout), question);
            assert_eq!(found, expected, "layout {layout}: {question}");
        }
    }
}

#[test]
fn an_old_layout_is_reported_and_what_it_lacks_is_unknown() {
    let shell = Shell::new();
    let old = golden(1);
    assert!(answer(&shell, &old, ".dump Stats").contains("(layout 1)"));
    let stacks = answer(&shell, &old, ".dump Stack -TopN 1");
    assert!(stacks.contains("These are stacks of handle events"), "{stacks}");
    let new = answer(&shell, &golden(2), ".dump Stack -TopN 1");
    assert!(!new.contains("These are stacks of handle events"), "{new}");
}
