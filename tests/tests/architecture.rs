//! The layers of docs/architecture.md hold: no module imports from a higher layer, and no modules or
//! files import each other in a circle.

use std::fs;
use std::path::Path;

use handlescope_tests::source::{Crate, Layers, check};

/// Checks a crate against the table `## Layers of …`.
fn assert_layers(name: &str) {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = fs::read_to_string(workspace.join("docs/architecture.md")).unwrap();
    let layers = Layers::parse(&document, name)
        .unwrap_or_else(|| panic!("docs/architecture.md has no table \"Layers of {name}\""));
    let found = check(&Crate::read(&workspace.join(name).join("src")), &layers);
    let lines: Vec<String> = found.iter().map(|message| format!("{name}/src: {message}")).collect();
    assert!(found.is_empty(), "{} rules are broken\n{}", found.len(), lines.join("\n"));
}

#[test]
fn model_is_layered() {
    assert_layers("model");
}

#[test]
fn extract_is_layered() {
    assert_layers("extract");
}

#[test]
fn record_is_layered() {
    assert_layers("record");
}

#[test]
fn console_is_layered() {
    assert_layers("console");
}

/// The lints of clippy.toml keep others from printing past `console/src/terminal`; here, they are kept from
/// being switched off.
#[test]
fn only_the_terminal_opens_standard_output_and_standard_error() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = fs::read_to_string(workspace.join("clippy.toml")).unwrap();
    for denied in ["std::println", "std::eprintln", "std::io::stdout", "std::path::Path::display"] {
        assert!(config.contains(&format!("path = \"{denied}\"")), "{denied}");
    }
    let lints = "deny(clippy::disallowed_methods, clippy::disallowed_macros)";
    for root in [
        "console/src/main.rs",
        "console/src/lib.rs",
        "extract/src/lib.rs",
        "model/src/lib.rs",
        "record/src/lib.rs",
    ] {
        let text = fs::read_to_string(workspace.join(root)).unwrap();
        assert!(text.contains(lints), "{root}");
    }
    let crates = ["console/src", "extract/src", "model/src", "record/src"];
    let mut folders: Vec<_> = crates.map(|folder| workspace.join(folder)).into();
    let mut switched_off = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            if text.replace(lints, "").contains("clippy::disallowed_") {
                switched_off.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    switched_off.sort();
    assert_eq!(switched_off, ["cancel.rs", "margin.rs", "standard.rs"]);
}
