//! Parts of stacks that are joined to their events buffer by buffer are those that a search among all events finds: an
//! extract with all stacks reads each part at its own time.

use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver, StackChoice, extract};
use handlescope_model::Cancel;
use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::sample_trace;
use handlescope_tests::containers::members_of;
use handlescope_tests::data::{hostile, shared_data};
use handlescope_tests::needs_data;

use crate::extraction_threads::{traces, traces_of_any_shape};
use crate::handle_model::with_cases;

/// The tables of events and objects, or the reason why there are none.
fn tables(trace: &Path, stacks: StackChoice) -> Result<[Vec<u8>; 2], String> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.json7z");
    let options = ExtractOptions { stacks, ..ExtractOptions::default() };
    extract(trace, &output, options, &NoObserver, &Cancel::default())
        .map_err(|error| error.to_string())?;
    let members = members_of(&output);
    let content = |name| members.iter().find(|member| member.name == name).unwrap().content.clone();
    Ok(["events.parquet", "objects.parquet"].map(content))
}

fn assert_same_with_all_stacks(trace: &Path) {
    let joined = tables(trace, StackChoice::HandleEvents);
    assert!(joined == tables(trace, StackChoice::All), "{}", trace.display());
}

#[test]
fn of_the_sample() {
    assert_same_with_all_stacks(&sample_trace());
}

#[needs_data]
#[test]
fn of_published_real_and_hostile_traces() {
    for path in traces(&shared_data().join("synthetic"), &[".etl.7z"])
        .into_iter()
        .chain(traces(&shared_data().join("real"), &[".zip", ".7z"]))
        .chain(traces(&hostile(), &[".etl", ".zip"]))
    {
        assert_same_with_all_stacks(&path);
    }
}

#[test]
fn of_traces_of_any_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.etl");
    with_cases(12, traces_of_any_shape(), |trace: LargeTrace| {
        write_large_trace(&path, &trace).unwrap();
        assert_same_with_all_stacks(&path);
    });
}
