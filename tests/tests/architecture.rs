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
fn console_is_layered() {
    assert_layers("console");
}
