//! Meanings of the members of documents, which stand beside the code that writes them.

/// Meanings of members by their names: `a` or, of several with one meaning, `a, b`. `a.b` is a member of `a`.
pub type Meanings = &'static [(&'static str, &'static str)];
