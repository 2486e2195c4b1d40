//! Which member of an archive is the trace.

use std::path::Path;

use crate::error::ExtractError;

/// The only `.etl`, or the one that has the archive's name.
pub(super) fn choose(path: &Path, names: &[String]) -> Result<String, ExtractError> {
    let traces: Vec<&String> =
        names.iter().filter(|name| name.to_ascii_lowercase().ends_with(".etl")).collect();
    match traces[..] {
        [] => {
            return Err(ExtractError::NoTraceIn { path: path.to_path_buf(), held: held(names) });
        }
        [only] => return Ok(only.clone()),
        _ => {}
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

/// Endings of archives, extracts among them.
const ARCHIVES: [&str; 7] = [".zip", ".7z", ".json7z", ".rar", ".gz", ".tar", ".cab"];

/// What an archive without a trace holds, in words.
fn held(names: &[String]) -> String {
    let is_archive = |name: &&String| {
        let name = name.to_ascii_lowercase();
        ARCHIVES.iter().any(|end| name.ends_with(end))
    };
    let archives: Vec<&String> = names.iter().filter(is_archive).collect();
    match (names, archives.as_slice()) {
        ([], _) => "is an empty archive".to_owned(),
        (names, []) => {
            format!("holds no trace (.etl), only {}", listed(&names.iter().collect::<Vec<_>>()))
        }
        (_, archives) => {
            format!(
                "holds archives ({}) and no trace; unpack it and name one of them",
                listed(archives)
            )
        }
    }
}

/// Some of the names, which may have any character.
fn listed(names: &[&String]) -> String {
    const MOST: usize = 3;
    let shown = names.iter().take(MOST).map(|name| name.escape_debug().to_string());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
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
    fn an_archive_without_a_trace_says_what_it_holds() {
        let held = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(Path::new("a.zip"), &names).expect_err("no trace").to_string()
        };
        assert_eq!(held(&[]), "a.zip: is an empty archive");
        assert_eq!(held(&["x.txt"]), "a.zip: holds no trace (.etl), only x.txt");
        let many = held(&["b.zip", "x.txt", "c.7Z", "d.json7z", "e\u{1b}.gz"]);
        let expected = "holds archives (b.zip, c.7Z, d.json7z and 1 more) and no trace; unpack it";
        assert!(many.contains(expected), "{many}");
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
