//! Lines of code.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ImplItem, Item};

use super::items::{attributes, is_test};

/// Lines of a file that hold code; neither empty lines nor comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    /// Lines that ship.
    pub code: usize,
    /// Lines that only tests compile.
    pub tests: usize,
}

impl std::ops::AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.tests += other.tests;
    }
}

/// Counts the lines of a file; `is_test_file` when only tests compile it.
///
/// # Panics
/// When it is not Rust.
#[must_use]
pub fn count_lines(path: &Path, text: &str, is_test_file: bool) -> Lines {
    let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text: Vec<&str> = text.lines().collect();
    let mut lines = BTreeSet::new();
    let tokens = text.join("\n").parse().expect("what parses as a file has tokens");
    add_lines(tokens, &text, &mut lines);
    let mut tests = TestItems::default();
    tests.visit_file(&syntax);
    let is_of_test = |line: &&usize| tests.ranges.iter().any(|range| range.contains(line));
    let of_tests = if is_test_file { lines.len() } else { lines.iter().filter(is_of_test).count() };
    Lines { code: lines.len() - of_tests, tests: of_tests }
}

/// Adds the lines of all tokens but comments, which are tokens when they document something.
fn add_lines(tokens: TokenStream, text: &[&str], lines: &mut BTreeSet<usize>) {
    for token in tokens {
        let span = token.span();
        if is_comment(span, text) {
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                for delimiter in [group.span_open(), group.span_close()] {
                    lines.insert(delimiter.start().line);
                }
                add_lines(group.stream(), text, lines);
            }
            _ => lines.extend(
                (span.start().line..=span.end().line)
                    .filter(|line| !text[line - 1].trim().is_empty()),
            ),
        }
    }
}

pub(super) fn is_comment(span: Span, text: &[&str]) -> bool {
    let start = span.start();
    let mut rest = text[start.line - 1].chars().skip(start.column);
    rest.next() == Some('/') && matches!(rest.next(), Some('/' | '*'))
}

/// Lines of items that only tests compile.
#[derive(Default)]
pub(super) struct TestItems {
    pub(super) ranges: Vec<RangeInclusive<usize>>,
}

impl TestItems {
    fn add(&mut self, span: Span) {
        self.ranges.push(span.start().line..=span.end().line);
    }
}

impl<'a> Visit<'a> for TestItems {
    fn visit_item(&mut self, item: &'a Item) {
        if is_test(attributes(item)) {
            self.add(item.span());
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(item) if is_test(&item.attrs) => self.add(item.span()),
            _ => visit::visit_impl_item(self, item),
        }
    }
}
