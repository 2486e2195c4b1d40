//! The checker finds what it is for, in small made-up crates.

use std::path::Path;

use super::lines::{Lines, count_lines};
use super::{Crate, Layers, check};

const TABLE: &str = "\
# Architecture

## Layers of demo

| Layer | Modules | What it does |
|---|---|---|
| 1 | `low/` | small tools |
| 2 | `middle`, `beside/` | |
| 3 | `high/` | commands |

## Layers of other

| Layer | Modules | What it does |
|---|---|---|
| 1 | `none` | |
";

/// Violations in a crate of these files, except for missing rows.
fn broken(files: &[(&str, &str)]) -> Vec<String> {
    let mut all: Vec<(&str, &str)> = [
        ("lib.rs", "mod low; mod middle; mod beside; mod high;"),
        ("low/mod.rs", ""),
        ("middle.rs", ""),
        ("beside/mod.rs", ""),
        ("high/mod.rs", ""),
    ]
    .into_iter()
    .filter(|(name, _)| files.iter().all(|(other, _)| name != other))
    .collect();
    all.extend(files);
    check(&read(&all), &Layers::parse(TABLE, "demo").unwrap())
}

fn read(files: &[(&str, &str)]) -> Crate {
    let find = |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path);
    Crate::read_with(&["lib.rs".into()], |path| find(path).map(|(_, text)| (*text).to_owned()))
}

#[test]
fn imports_of_lower_layers_and_one_way_in_a_layer_are_right() {
    let files = [
        ("low/mod.rs", "mod part;\npub use part::Part;"),
        ("low/part.rs", "pub struct Part;"),
        ("middle.rs", "use crate::low::Part; use crate::beside::Side;"),
        ("beside/mod.rs", "pub struct Side(super::low::Part); use std::fmt; use low_crate::high;"),
        ("high/mod.rs", "use crate::{low::Part, middle}; use super::beside as other;"),
    ];
    assert_eq!(broken(&files), [""; 0]);
}

#[test]
fn an_upward_import_is_found_in_every_form() {
    let forms = [
        "use crate::high::Top;",
        "use super::high::Top as Renamed;",
        "use crate::{low::Part, high::{self, Top}};",
        "pub use crate::high::Top;",
        "use crate::high::*;",
        "fn f() { crate::high::top() }",
        "fn f() { use super::high; high::top() }",
        "fn f() { println!(\"{}\", crate::high::top()) }",
        "struct S(crate::high::Top);",
        "#[arg(value_parser = crate::high::top)] struct S;",
        "mod block { use super::super::high::Top; }",
        "macro_rules! m { () => { $crate::high::top() }; }",
        "macro_rules! m { () => { use crate::{high::Top}; }; }",
        "macro_rules! m { () => { use crate::{low::{Part}, high::{Top as T}}; }; }",
        "macro_rules! m { ($n:ident in $m:ident) => { use crate::$m::$n; }; } list!(m);",
    ];
    for form in forms {
        let found = broken(&[
            (
                "low/mod.rs",
                "macro_rules! list { ($m:ident) => { $m! { Part in low, Top in high } }; }",
            ),
            ("middle.rs", &format!("\n{form}")),
            ("high/mod.rs", "pub struct Top; pub fn top() {}"),
        ]);
        assert!(!found.is_empty(), "{form}");
        assert!(found[0].starts_with("middle.rs:2: "), "{form}: {found:?}");
        let end = "`middle` of layer 2 imports `high` of the higher layer 3";
        assert!(found[0].ends_with(end), "{form}: {found:?}");
    }
}

#[test]
fn an_upward_import_is_found_behind_a_re_export_and_in_front_of_one() {
    // The name comes from below, but by way of a module above.
    let above = broken(&[
        ("low/mod.rs", "pub mod part; use crate::high::Part;"),
        ("low/part.rs", "pub struct Part;"),
        ("high/mod.rs", "pub use crate::low::part::Part;"),
    ]);
    assert_eq!(above.len(), 1, "{above:?}");
    assert!(above[0].starts_with("low/mod.rs:1: crate::high::Part: "), "{above:?}");
    // What a lower module re-exports is as high as where it is defined.
    let below = broken(&[
        ("low/mod.rs", "pub use crate::high::Top;"),
        ("middle.rs", "use crate::low::Top;"),
        ("high/mod.rs", "pub struct Top;"),
    ]);
    assert_eq!(below.len(), 2, "{below:?}");
}

#[test]
fn test_code_may_import_anything() {
    let files = [
        ("low/mod.rs", "#[cfg(test)] mod tests { use crate::high::Top; }\n#[cfg(test)] mod apart;"),
        ("middle.rs", "impl S { #[cfg(test)] fn f() { crate::high::top() } }"),
        ("beside/mod.rs", "#[cfg(all(test, unix))] use crate::high::Top;"),
        ("high/mod.rs", "pub struct Top;"),
    ];
    assert_eq!(broken(&files), [""; 0]);
    let not_only = [("middle.rs", "#[cfg(any(test, unix))] use crate::high::Top;")];
    assert_eq!(broken(&not_only).len(), 1);
}

#[test]
fn modules_of_one_layer_must_not_form_a_circle() {
    let files = [
        ("middle.rs", "pub struct M; use crate::beside::one::One;"),
        ("beside/mod.rs", "pub mod one; mod two;"),
        ("beside/one.rs", "pub struct One;"),
        ("beside/two.rs", "use crate::middle::M;"),
    ];
    let circle = "a circle of 2 modules of one layer\n    \
                  middle.rs:1: crate::beside::one::One\n    beside/two.rs:1: crate::middle::M";
    assert_eq!(broken(&files), [circle]);
}

#[test]
fn a_facade_is_not_part_of_a_circle_but_an_item_in_it_is() {
    let facade = [
        ("low/mod.rs", "mod one;\nmod two;\npub use one::One;\npub(crate) use self::two::Two;"),
        ("low/one.rs", "pub struct One(super::two::Two);"),
        ("low/two.rs", "pub struct Two; use std::fmt::Debug;"),
    ];
    assert_eq!(broken(&facade), [""; 0]);
    let through_it = [facade[0], facade[1], ("low/two.rs", "pub struct Two; use crate::low::One;")];
    let circle = "a circle of 2 files\n    \
                  low/one.rs:1: super::two::Two\n    low/two.rs:1: crate::low::One";
    assert_eq!(broken(&through_it), [circle]);
    for uses in ["use one::One;", "pub use one::One; fn f(_: One) {}", "fn f(_: one::One) {}"] {
        let item_in_it = [
            ("low/mod.rs", &*format!("mod one;\n{uses}\npub struct Shared;")),
            ("low/one.rs", "pub struct One(super::Shared);"),
        ];
        let found = broken(&item_in_it);
        assert_eq!(found.len(), 1, "{uses}: {found:?}");
        assert!(found[0].starts_with("a circle of 2 files"), "{found:?}");
    }
}

#[test]
fn circles_go_through_modules_globs_and_renamed_imports() {
    let by_module = [
        ("low/mod.rs", "pub mod one; pub mod two;"),
        ("low/one.rs", "use super::two as other; pub fn one() { other::two() }"),
        ("low/two.rs", "use crate::low; pub fn two() { low::one::one() }"),
    ];
    assert_eq!(broken(&by_module).len(), 1, "{:?}", broken(&by_module));
    let by_glob = [
        ("low/mod.rs", "mod one; mod two; pub use one::*; pub use two::*;"),
        ("low/one.rs", "use super::*; pub struct One(Two);"),
        ("low/two.rs", "use crate::low::One as Renamed; pub struct Two;"),
    ];
    assert_eq!(broken(&by_glob).len(), 1, "{:?}", broken(&by_glob));
}

#[test]
fn a_large_group_is_reported_once_by_its_shortest_circle() {
    let files = [
        ("low/mod.rs", "mod a; mod b; mod c;"),
        ("low/a.rs", "pub struct A; use super::b::B;"),
        ("low/b.rs", "pub struct B; use super::c::C;"),
        ("low/c.rs", "pub struct C; use super::a::A; use super::b::B;"),
    ];
    let found = broken(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("a circle of 2 files, the shortest among 3"), "{found:?}");
}

#[test]
fn table_and_modules_have_to_agree() {
    let more = [("lib.rs", "mod low; mod middle; mod beside; mod extra;"), ("extra.rs", "")];
    let expected = [
        "extra.rs: no row of the table names `extra`",
        "the table names `high`, which is not a module",
    ];
    assert_eq!(broken(&more), expected);
    assert_eq!(Layers::parse(TABLE, "nothing"), None);
}

#[test]
fn a_name_that_is_its_own_import_ends() {
    let files = [
        (
            "low/mod.rs",
            "use demo::demo; pub use self::again; use super::low::*; fn f() { demo::x() }",
        ),
        (
            "middle.rs",
            "mod part { pub fn part() {} } use part::part; fn f() { part(); part::part() }",
        ),
    ];
    assert_eq!(broken(&files), [""; 0]);
}

#[test]
fn lines_of_code_are_neither_empty_nor_comments_nor_tests() {
    let text = "\
//! About it.

/// Documented.
#[derive(Debug)]
pub struct S {
    /// A field.
    field: u8, // a remark
}

/* A block
   of remarks. */
table! {
    /// Documented in a macro.
    column: u8,
}

const TEXT: &str = \"one

// three\";

#[cfg(test)]
mod tests {
    // Nothing.
    #[test]
    fn it_works() {}
}
";
    let path = Path::new("made-up.rs");
    assert_eq!(count_lines(path, text, false), Lines { code: 9, tests: 5 });
    assert_eq!(count_lines(path, text, true), Lines { code: 0, tests: 14 });
}
