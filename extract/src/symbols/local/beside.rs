//! Symbols that were saved with a trace: folders beside it, and members of the archive it lies in.
//!
//! WPR writes PDBs of native images to `X.etl.NGENPDB`, Visual Studio to `X.etl.NGENPDBS` (learn, "CLR 4.0 NGEN
//! PDB support"), ETWAnalyzer reads `X.etl.EmbeddedPdbs`; PerfView packs `symbols` and `X.etl.ngenpdbs` into the
//! `.zip`, and looks for `symbols` beside a trace. All are laid out as symbol servers are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::symbols::local::packed::{ENDS, FOR_ALL, is_archive};

/// Where symbols lie that were saved with a trace: real folders, no links, and the trace itself where that is a
/// `.zip` or `.7z`. To be searched first, in this order.
///
/// `trace` is the trace or an extract of it; one in a folder `Extract` is searched from the folder above, too.
pub fn symbols_beside(trace: &Path) -> Vec<PathBuf> {
    let name = trace.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let (Some(name), Some(folder)) = (name, trace.parent()) else { return Vec::new() };
    let stem = [".etl.zip", ".etl.7z", ".json7z", ".zip", ".7z", ".etl"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    let own = ENDS.iter().flat_map(|end| [format!("{stem}.etl{end}"), format!("{stem}{end}")]);
    let names: Vec<String> = own.chain([FOR_ALL.to_owned()]).collect();
    let is_extract = folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case("extract"));
    let above = folder.parent().filter(|_| is_extract);
    let mut found = Vec::new();
    for folder in [Some(folder), above].into_iter().flatten() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        found.extend(folders_named(folder, &names));
    }
    if is_archive(trace) && trace.is_file() {
        found.push(trace.to_owned());
    }
    found
}

/// The folders in a folder that have one of some names, in the order of these.
fn folders_named(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let place = names.iter().position(|known| *known == name);
        // The type of the entry: a link is none.
        let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let Some(place) = place.filter(|_| is_folder()) {
            found.push((place, entry.path()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::symbols::Outcome;
    use crate::symbols::fixture::{TestPdb, names_from};

    fn folder_with(names: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        folder
    }

    fn beside(folder: &TempDir, trace: &str) -> Vec<String> {
        let found = symbols_beside(&folder.path().join(trace));
        let relative = |path: &PathBuf| {
            let path = path.strip_prefix(folder.path()).expect("in the folder");
            path.to_string_lossy().replace('\\', "/")
        };
        found.iter().map(relative).collect()
    }

    #[test]
    fn folders_that_belong_to_the_trace_are_found_in_perfviews_order() {
        let names =
            ["A.ngenpdb", "a.etl.EmbeddedPdbs", "a.etl.NGENPDB", "a.ETL.ngenpdbs", "b.etl.NGENPDB"];
        let folder = folder_with(&names);
        let all = ["a.ETL.ngenpdbs", "a.etl.NGENPDB", "A.ngenpdb", "a.etl.EmbeddedPdbs"];
        for trace in ["a.etl", "A.etl.zip", "a.zip", "a.json7z", "Extract/a.json7z"] {
            assert_eq!(beside(&folder, trace), all, "{trace}");
        }
        assert_eq!(beside(&folder, "b.etl"), ["b.etl.NGENPDB"]);
        assert!(beside(&folder, "c.etl").is_empty());
    }

    #[test]
    fn a_folder_for_all_traces_comes_behind_those_of_one() {
        let folder = folder_with(&["Symbols", "a.etl.NGENPDB", "Extract/symbols"]);
        assert_eq!(beside(&folder, "a.etl"), ["a.etl.NGENPDB", "Symbols"]);
        assert_eq!(beside(&folder, "b.etl"), ["Symbols"]);
        let all = ["Extract/symbols", "a.etl.NGENPDB", "Symbols"];
        assert_eq!(beside(&folder, "Extract/a.json7z"), all);
    }

    #[test]
    fn the_archive_of_a_trace_is_a_place_itself() {
        let folder = folder_with(&[]);
        for name in ["a.etl.zip", "a.7z"] {
            fs::write(folder.path().join(name), b"").expect("a file");
            assert_eq!(beside(&folder, name), [name]);
        }
        fs::write(folder.path().join("a.json7z"), b"").expect("a file");
        assert!(beside(&folder, "a.json7z").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_beside_a_trace_is_not_followed() {
        let folder = folder_with(&["elsewhere"]);
        let link = folder.path().join("a.etl.NGENPDB");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).expect("a link");
        assert!(beside(&folder, "a.etl").is_empty());
    }

    #[test]
    fn symbols_beside_a_trace_need_no_symbol_path() {
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        let folder = folder_with(&["a.etl.NGENPDB"]);
        let file = folder.path().join("a.etl.NGENPDB").join(pdb.store_path("a.pdb"));
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(&file, pdb.bytes()).expect("a file");
        let places = symbols_beside(&folder.path().join("a.etl"));
        let (chain, outcome) = names_from(places, &pdb, 1 << 30);
        assert_eq!(chain.first().map(|frame| &*frame.function), Some("Work"));
        assert_eq!(outcome, Outcome::Resolved { file, was_converted: false });
        assert_eq!(names_from(Vec::new(), &pdb, 1 << 30).1, Outcome::NoSymbolPath);
    }
}
