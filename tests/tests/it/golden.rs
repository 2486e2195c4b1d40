//! The golden extract of the current layout gives the answers of its trace; an extract with another layout is refused.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_model::tables::TraceInfos;
use handlescope_model::{ContainerLimits, SCHEMA_VERSION, Table, Trace, replace_table};
use handlescope_tests::binary::{Shell, sample_symbols};
use polars::prelude::Column;

/// Returns the path of the golden extract.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/layout-{SCHEMA_VERSION}.json7z"))
}

/// Makes a sound extract claim another layout.
pub fn give_layout(extract: &Path, version: u32) {
    let mut info = Trace::open(extract).unwrap().frame(Table::Trace).unwrap();
    let name = TraceInfos::schema_version.name();
    info.with_column(Column::new(name.into(), [version])).unwrap();
    let limits = ContainerLimits::for_members_of(1 << 30);
    replace_table(extract, Table::Trace, Ok(info), &limits).unwrap();
}

/// Returns the answer about a file, without the file's name.
fn answer(shell: &Shell, file: &Path, question: &str) -> String {
    let symbols = sample_symbols();
    let (file, symbols) = (file.to_str().unwrap(), symbols.to_str().unwrap());
    let run = shell.run(&[file, "--symbol-path", symbols, "-c", question]).ok();
    run.stdout.replace(file, "FILE").replace(&format!("layout-{SCHEMA_VERSION}"), "leaky")
}

#[test]
fn the_golden_archive_answers_as_the_trace_does() {
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
        assert_eq!(answer(&shell, &golden(), question), expected, "{question}");
    }
}

#[test]
fn an_extract_of_another_layout_is_refused_in_one_sentence() {
    let shell = Shell::new();
    for (version, remedy) in [
        (SCHEMA_VERSION - 1, "extract the trace again"),
        (SCHEMA_VERSION + 1, "use a newer handlescope"),
    ] {
        fs::copy(golden(), shell.path("other.json7z")).unwrap();
        give_layout(&shell.path("other.json7z"), version);
        let run = shell.run(&["other.json7z", "-c", ".dump ObjectRef"]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        let sentence = format!(
            "error: other.json7z: layout version {version}, this program reads {SCHEMA_VERSION}; {remedy}\n"
        );
        assert_eq!(run.stderr, sentence);
    }
}
