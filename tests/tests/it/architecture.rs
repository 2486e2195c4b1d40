//! The layers of docs/architecture.md hold: no module imports from a higher layer, and no modules or
//! files import each other in a circle.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use handlescope_tests::folders::files;
use handlescope_tests::source::{Crate, Layers, check, count_words_in, strings};

/// Folders of the crates that the program consists of.
const CRATES: [&str; 6] =
    ["console", "extract", "extract/sources", "extract/symbols", "model", "record"];

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
fn symbols_are_layered() {
    assert_layers("extract/symbols");
}

#[test]
fn sources_are_layered() {
    assert_layers("extract/sources");
}

#[test]
fn record_is_layered() {
    assert_layers("record");
}

#[test]
fn console_is_layered() {
    assert_layers("console");
}

#[test]
fn the_library_of_the_tests_is_layered() {
    assert_layers("tests");
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
    let libraries = CRATES.map(|name| format!("{name}/src/lib.rs"));
    for root in libraries.into_iter().chain(["console/src/main.rs".to_owned()]) {
        let text = fs::read_to_string(workspace.join(&root)).unwrap();
        assert!(text.contains(lints), "{root}");
    }
    let sources = CRATES.iter().flat_map(|name| files(&workspace.join(name).join("src")));
    let mut switched_off: Vec<_> = sources
        .filter(|(_, text)| {
            String::from_utf8_lossy(text).replace(lints, "").contains("clippy::disallowed_")
        })
        .map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    switched_off.sort();
    assert_eq!(switched_off, ["cancel.rs", "margin.rs", "standard.rs"]);
}

/// A colour elsewhere is one that another theme would not change.
#[test]
fn only_the_theme_names_colours() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/src");
    let of_colours = ["Color::", "nu_ansi_term", "Stylize", "anstyle", "owo_colors"];
    let names_any = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        of_colours.iter().any(|name| code.contains(name))
    };
    let files = files(&sources).into_iter().filter(|(_, text)| names_any(text));
    let files: Vec<_> = files.map(|(path, _)| path).collect();
    assert_eq!(files, [sources.join("terminal/theme.rs")]);
}

/// The plans of polars are its own, and change from one version to the next.
#[test]
fn only_the_limit_of_joins_changes_plans_of_polars() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = CRATES.iter().flat_map(|name| files(&workspace.join(name).join("src")));
    let of_plans =
        ["polars_plan::plans", "polars_plan::{", "_collect_post_opt", "FunctionIR", "AExpr"];
    let names_any = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        of_plans.iter().any(|name| text.contains(name))
    };
    let found: Vec<_> = sources.filter(|(_, text)| names_any(text)).map(|(path, _)| path).collect();
    assert_eq!(found, [workspace.join("console/src/sql/joins.rs")]);
}

/// CONTRIBUTING.md: plain technical English, without story-telling.
#[test]
fn documents_code_and_messages_are_in_plain_words() {
    // In parts, as this file is read, too.
    let words = [["tell", "s"], ["to", "ld"], ["no", "body"], ["some", "body"], ["who", "ever"]];
    let words = words.map(|parts| parts.concat());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [
        ".ci",
        "benches",
        "console",
        "dist",
        "docs",
        "examples",
        "extract",
        "fuzz/fuzz_targets",
        "fuzz/src",
        "model",
        "record",
        "tests",
    ];
    let mut texts: Vec<_> =
        folders.iter().flat_map(|folder| files(&workspace.join(folder))).collect();
    let documents = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "Cargo.toml",
        "clippy.toml",
        "rustfmt.toml",
        "fuzz/README.md",
        "fuzz/Cargo.toml",
    ]
    .map(|name| workspace.join(name));
    texts.extend(documents.map(|path| (path.clone(), fs::read(path).unwrap())));
    let endings = [
        "awk", "cpp", "css", "h", "hbs", "html", "in", "js", "md", "py", "rs", "sh", "snap",
        "toml", "txt",
    ];
    texts.retain(|(path, _)| {
        path.extension().is_none_or(|found| endings.iter().any(|ending| found == *ending))
    });
    assert!(texts.len() > 500, "{} files", texts.len());
    let mut found = Vec::new();
    for (path, text) in &texts {
        for (number, line) in String::from_utf8_lossy(text).lines().enumerate() {
            let mut said = line.split(|character: char| !character.is_alphanumeric());
            if said.any(|word| words.iter().any(|banned| word.eq_ignore_ascii_case(banned))) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn doc_comments_start_with_a_noun_or_a_verb_and_bindings_are_named_after_things() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in CRATES {
        let words = count_words_in(&workspace.join(name).join("src"));
        assert!(words.doc_comments > 200, "{name}: {words:?}");
        assert!(words.openers * 200 < words.doc_comments, "{name}: {words:?}");
        assert_eq!(words.own, 0, "{name}: {words:?}");
        assert_eq!(words.lost_handles, 0, "{name}: {words:?}");
    }
}

/// Strings of the console's files below these folders that a condition holds for, with file and line.
fn strings_of_console(folders: &[&str], is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/src");
    let loaded = Crate::read(&sources);
    let files = loaded.files().filter(|file| folders.iter().any(|folder| file.starts_with(folder)));
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(sources.join(file)).unwrap();
        let meant = strings(file, &text).into_iter().filter(|(_, text)| is_meant(text));
        found.extend(meant.map(|(line, text)| format!("{}:{line}: {text}", file.display())));
    }
    found
}

/// The strings in declarations of commands that are such a word: options and commands by their first
/// character, kinds by their case.
fn declared(folder: &str, is_name: fn(&str) -> bool) -> HashSet<String> {
    let is_word = |text: &str| !text.contains(char::is_whitespace) && is_name(text);
    let found = strings_of_console(&[folder], is_word);
    found.iter().filter_map(|line| line.rsplit(": ").next()).map(str::to_owned).collect()
}

/// Whether a text names one of these options and commands, in any case.
fn names_any(names: &HashSet<String>, text: &str) -> bool {
    let is_edge = |c: char| !c.is_alphanumeric() && !"-.?".contains(c);
    let mut words = text.split(is_edge).map(|word| word.trim_end_matches(['.', '?']));
    words.any(|word| word.len() > 1 && names.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

#[test]
fn queries_and_sql_name_neither_options_nor_commands() {
    let names = declared("commands", |text| text.starts_with(['-', '.']));
    assert!([".help", ".dump", "-fd", "-MaxMemory"].iter().all(|name| names.contains(*name)));
    let found = strings_of_console(&["query", "sql"], |text| names_any(&names, text));
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (text, expected) in [
        ("-FD", true),
        ("; choose it with -fd.", true),
        ("; .help sql has examples", true),
        ("a - b", false),
        ("help, x-fd", false),
        ("one. Two", false),
    ] {
        assert_eq!(names_any(&names, text), expected, "{text}");
    }
}

#[test]
fn the_grammar_names_neither_commands_nor_kinds() {
    let commands = declared("commands", |text| text.starts_with('.'));
    let kinds = declared("commands/dump", |text| text.starts_with(char::is_uppercase));
    assert!(commands.contains(".help") && kinds.contains("ObjectRef") && kinds.contains("Why"));
    let found = strings_of_console(&["grammar"], |text| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        names_any(&commands, text) || words.any(|word| kinds.contains(word))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}
