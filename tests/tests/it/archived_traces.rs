//! A trace inside an archive is read in place.

use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::{SourceError, extract};
use handlescope_tests::containers::{
    ContainerWriter, trace_of_handles, write_7z, write_cab, write_zip,
};

/// Archive formats with their writers; Visual Studio's `.diagsession` is a zip archive.
const ARCHIVES: [(&str, ContainerWriter); 4] =
    [("zip", write_zip), ("7z", write_7z), ("diagsession", write_zip), ("cab", write_cab)];

/// Returns the number of objects in the extract of an archive, and the name of the trace inside.
fn objects(archive: &Path) -> Result<(usize, String), SourceError> {
    let output = archive.with_extension("json7z");
    extract(archive, &output, ExtractOptions::default(), &NoObserver, &Cancel::default())?;
    let trace = Trace::open(&output).unwrap();
    let name = trace.column(Table::Trace, "source_name").unwrap();
    Ok((trace.height(Table::Objects).unwrap(), name.str().unwrap().get(0).unwrap().to_owned()))
}

#[test]
fn the_only_trace_of_an_archive_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, write) in ARCHIVES {
        let path = folder.path().join(format!("bundle.{extension}"));
        write(&path, &[("notes.txt", b"hello".to_vec()), ("deep/some.etl", trace_of_handles(3))]);
        let (count, name) = objects(&path).unwrap();
        assert_eq!((count, name.as_str()), (3, "deep/some.etl"), "{extension}");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "{extension}: something unpacked was left behind");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("json7z")).unwrap();
    }
}

#[test]
fn of_several_traces_the_one_named_like_the_archive_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, write) in ARCHIVES {
        let path = folder.path().join(format!("b.{extension}"));
        write(
            &path,
            &[
                ("a.etl", trace_of_handles(1)),
                ("b.etl", trace_of_handles(2)),
                ("c.etl", trace_of_handles(3)),
            ],
        );
        assert_eq!(objects(&path).unwrap().0, 2, "{extension}");
        let path = folder.path().join(format!("x.{extension}"));
        write(&path, &[("a.etl", trace_of_handles(1)), ("b.etl", trace_of_handles(2))]);
        let message = objects(&path).unwrap_err().to_string();
        assert!(message.contains("the archive has 2 .etl files"), "{message}");
    }
}

#[test]
fn a_cut_archive_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, write) in ARCHIVES {
        let path = folder.path().join(format!("cut.{extension}"));
        write(&path, &[("a.etl", trace_of_handles(50))]);
        let bytes = std::fs::read(&path).unwrap();
        for length in [bytes.len() - 1, bytes.len() / 2, 40] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let message = objects(&path).unwrap_err().to_string();
            let names_it = message.contains(&format!("cut.{extension}: "));
            assert!(names_it && message.contains("unpack"), "{message}");
        }
    }
}
