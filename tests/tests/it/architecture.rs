//! Rules about the code that neither crates nor lints enforce.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_tests::folders::files;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the code folders of the program's crates.
fn crates() -> Vec<PathBuf> {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members = members.split('"').skip(1).step_by(2);
    let of_program =
        members.filter(|path| !path.starts_with("tests") && !path.starts_with("examples"));
    let folders: Vec<PathBuf> = of_program.map(|path| workspace().join(path).join("src")).collect();
    assert!(folders.len() > 8 && folders.iter().all(|folder| folder.is_dir()), "{folders:?}");
    folders
}

/// Returns the files below these folders with code that `is_meant` accepts.
fn found(folders: &[PathBuf], is_meant: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files(folder))
        .filter(|(_, text)| is_meant(&String::from_utf8_lossy(text)))
        .map(|(path, _)| path)
        .collect();
    paths.sort();
    paths
}

/// The lints in clippy.toml keep other code from printing past the terminal; this test keeps them from being switched
/// off.
#[test]
fn only_the_terminal_opens_standard_output_and_standard_error() {
    let config = fs::read_to_string(workspace().join("clippy.toml")).unwrap();
    for denied in ["std::println", "std::eprintln", "std::io::stdout", "std::path::Path::display"] {
        assert!(config.contains(&format!("path = \"{denied}\"")), "{denied}");
    }
    let lints = "deny(clippy::disallowed_methods, clippy::disallowed_macros)";
    let crates = crates();
    let roots = crates.iter().map(|folder| folder.join("lib.rs"));
    for root in roots.chain([workspace().join("console/src/main.rs")]) {
        let text = fs::read_to_string(&root).unwrap();
        assert!(text.contains(lints), "{}", root.display());
    }
    let switched_off =
        found(&crates, |text| text.replace(lints, "").contains("clippy::disallowed_"));
    let names = switched_off.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["cancel.rs", "margin.rs", "standard.rs"]);
}

/// A colour named elsewhere would not change with the theme.
#[test]
fn only_the_theme_names_colours() {
    let of_colours = ["Color::", "nu_ansi_term", "Stylize", "anstyle", "owo_colors"];
    let names_any = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        of_colours.iter().any(|name| code.contains(name))
    };
    let theme = workspace().join("console/session/src/terminal/theme.rs");
    assert_eq!(found(&crates(), names_any), [theme]);
}

/// Polars' plans are internal, and change from one version to the next.
#[test]
fn only_the_limit_of_joins_changes_plans_of_polars() {
    let of_plans =
        ["polars_plan::plans", "polars_plan::{", "_collect_post_opt", "FunctionIR", "AExpr"];
    let names_any = |text: &str| of_plans.iter().any(|name| text.contains(name));
    assert_eq!(found(&crates(), names_any), [workspace().join("console/sql/src/joins.rs")]);
}
