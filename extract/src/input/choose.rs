//! Which member of an archive is the trace.

use std::path::Path;

use crate::error::ExtractError;

/// The only `.etl`, or the one that has the archive's name.
pub(super) fn choose(path: &Path, names: &[String]) -> Result<String, ExtractError> {
    let traces: Vec<&String> =
        names.iter().filter(|name| name.to_ascii_lowercase().ends_with(".etl")).collect();
    if let [only] = traces[..] {
        return Ok(only.clone());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let stem = stem.strip_suffix(".etl").unwrap_or(&stem);
    let has_archive_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(".etl") == Some(stem)
    };
    let mut named = traces.iter().filter(|name| has_archive_name(name));
    match (named.next(), named.next()) {
        (Some(name), None) => Ok((*name).clone()),
        _ => Err(ExtractError::WhichTrace { path: path.to_path_buf(), found: traces.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(archive: &str, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        choose(Path::new(archive), &names).ok()
    }

    #[test]
    fn the_only_trace_is_taken_under_any_name() {
        assert_eq!(chosen("x.zip", &["a.txt", "d/b.ETL"]).as_deref(), Some("d/b.ETL"));
    }

    #[test]
    fn of_several_traces_the_one_with_the_archives_name_is_taken() {
        assert_eq!(chosen("b.zip", &["a.etl", "x/b.etl"]).as_deref(), Some("x/b.etl"));
        assert_eq!(chosen("b.etl.7z", &["a.etl", "b.etl"]).as_deref(), Some("b.etl"));
        assert_eq!(chosen("c.zip", &["a.etl", "b.etl"]), None);
        assert_eq!(chosen("c.zip", &["x/c.etl", "y/c.etl"]), None);
        assert_eq!(chosen("c.zip", &[]), None);
    }
}
