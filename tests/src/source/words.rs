//! Words of code that read like a translation.

use std::ops::AddAssign;
use std::path::Path;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Pat, PatIdent, Stmt};

use crate::folders::files;

/// First words that no doc comment has: rustdoc's own start with a noun phrase or a verb.
const OPENERS: [&str; 9] =
    ["What", "Those", "These", "So many", "So much", "The same", "Of", "As", "How"];

/// Binding that names no thing.
const OWN: &str = "own";

/// Counts of such words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Words {
    /// Lines of code and comments.
    pub lines: usize,
    pub doc_lines: usize,
    pub doc_comments: usize,
    /// Doc comments that start with one of the openers.
    pub openers: usize,
    /// Bindings named `own`.
    pub own: usize,
    /// Closures bound to a name that occurs once more.
    pub closures: usize,
    /// Lines that call handles lost, which only events are.
    pub lost_handles: usize,
}

impl AddAssign for Words {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.doc_lines += other.doc_lines;
        self.doc_comments += other.doc_comments;
        self.openers += other.openers;
        self.own += other.own;
        self.closures += other.closures;
        self.lost_handles += other.lost_handles;
    }
}

/// Counts the words of the Rust files in a folder.
///
/// # Panics
/// When a file cannot be read or is not Rust.
#[must_use]
pub fn count_words_in(folder: &Path) -> Words {
    let mut total = Words::default();
    for (path, text) in files(folder) {
        if path.extension().is_some_and(|extension| extension == "rs") {
            total += count_words(&path, &String::from_utf8_lossy(&text));
        }
    }
    total
}

/// Counts the words of a file.
///
/// # Panics
/// When it is not Rust.
#[must_use]
fn count_words(path: &Path, text: &str) -> Words {
    let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut bindings = Bindings { lines: &lines, own: 0, closures: 0 };
    bindings.visit_file(&syntax);
    let mut words = Words {
        lines: lines.len(),
        own: bindings.own,
        closures: bindings.closures,
        lost_handles: lines.iter().filter(|line| loses_handles(line)).count(),
        ..Words::default()
    };
    let mut is_inside = false;
    for line in lines {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        words.doc_lines += usize::from(doc.is_some());
        if let Some(doc) = doc.filter(|_| !is_inside) {
            words.doc_comments += 1;
            words.openers += usize::from(starts_with_opener(doc.trim()));
        }
        is_inside = doc.is_some();
    }
    words
}

fn starts_with_opener(doc: &str) -> bool {
    let rests = OPENERS.iter().filter_map(|opener| doc.strip_prefix(opener));
    rests.into_iter().any(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn loses_handles(line: &str) -> bool {
    ["lost handle", "lost_handle", "LostHandle", "handles lost"].iter().any(|it| line.contains(it))
}

/// Visitor that counts bindings.
struct Bindings<'a> {
    lines: &'a [&'a str],
    own: usize,
    closures: usize,
}

impl<'ast> Visit<'ast> for Bindings<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.own += usize::from(pattern.ident == OWN);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let span = block.span();
        let lines = &self.lines[span.start().line - 1..span.end().line];
        let names = block.stmts.iter().filter_map(closure);
        self.closures += names.filter(|name| uses(lines, name) == 2).count();
        visit::visit_block(self, block);
    }
}

/// Name of the closure that a statement binds.
fn closure(statement: &Stmt) -> Option<String> {
    let Stmt::Local(local) = statement else { return None };
    let (Pat::Ident(name), Expr::Closure(_)) = (&local.pat, &*local.init.as_ref()?.expr) else {
        return None;
    };
    Some(name.ident.to_string())
}

/// Number of times that a name occurs in code.
fn uses(lines: &[&str], name: &str) -> usize {
    let code = lines.iter().filter(|line| !line.starts_with("//"));
    let is_edge = |character: char| !character.is_alphanumeric() && character != '_';
    code.flat_map(|line| line.split(is_edge)).filter(|word| *word == name).count()
}
