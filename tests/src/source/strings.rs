//! The strings in code that ships.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::Lit;
use syn::visit::Visit as _;

use super::lines::{TestItems, is_comment};

/// The strings of a file, also those in macros and attributes, each with its line; comments are none, and
/// what only tests compile is left out.
///
/// # Panics
/// When it is not Rust.
#[must_use]
pub fn strings(path: &Path, text: &str) -> Vec<(usize, String)> {
    let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut tests = TestItems::default();
    tests.visit_file(&syntax);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    add(lines.join("\n").parse().expect("what parses as a file has tokens"), &lines, &mut found);
    found.retain(|(line, _)| !tests.ranges.iter().any(|range| range.contains(line)));
    found
}

fn add(tokens: TokenStream, lines: &[&str], found: &mut Vec<(usize, String)>) {
    for token in tokens.into_iter().filter(|token| !is_comment(token.span(), lines)) {
        match token {
            TokenTree::Group(group) => add(group.stream(), lines, found),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let Lit::Str(text) = Lit::new(literal) {
                    found.push((line, text.value()));
                }
            }
            _ => {}
        }
    }
}
