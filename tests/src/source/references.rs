//! The paths that the code of a module mentions.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Macro, Meta, Path, TraitItem, VisRestricted};

use super::tree::{attributes, is_re_export, is_test, leaves};

/// What a module mentions.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) all: Vec<Reference>,
    /// Names that stand for themselves or begin a path, outside of `use`.
    pub(super) mentioned: HashSet<String>,
}

/// A path in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// How a path is mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the code.
    Inline,
    /// In a `use`, under this name, `None` for `*`.
    Import { binding: Option<String>, is_re_export: bool },
}

impl References {
    pub(super) fn add_item(&mut self, item: &Item) {
        self.visit_item(item);
    }

    fn add_inline(&mut self, path: Vec<String>, line: usize) {
        if let Some(first) = path.first() {
            self.mentioned.insert(first.clone());
        }
        if path.len() > 1 {
            self.all.push(Reference { path, line, kind: Kind::Inline });
        }
    }

    /// Paths in the tokens of a macro or an attribute, which have no syntax tree.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add_inline(std::mem::take(&mut path), line);
                    }
                    line = ident.span().start().line;
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.add_inline(std::mem::take(&mut path), line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add_inline(path, line);
    }
}

impl<'a> Visit<'a> for References {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => return,
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if !matches!(item, TraitItem::Fn(item) if is_test(&item.attrs)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let is_re_export = is_re_export(item);
        self.all.extend(leaves(item).into_iter().map(|leaf| Reference {
            path: leaf.path,
            line: leaf.line,
            kind: Kind::Import { binding: leaf.binding, is_re_export },
        }));
    }

    fn visit_path(&mut self, path: &'a Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.add_inline(names.collect(), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        visit::visit_macro(self, call);
        self.add_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.add_tokens(list.tokens.clone()),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
            Meta::Path(_) => {}
        }
    }

    /// `pub(in path)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &'a VisRestricted) {}
}
