//! The paths that the code of a module mentions.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, ImplItem, Item, ItemMacro, ItemUse, Macro, Meta, Path, TraitItem, VisRestricted,
};

use super::items::{attributes, is_re_export, is_test, leaves};

/// References from a module to others.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) all: Vec<Reference>,
    /// Names that stand for themselves or begin a path, outside of `use`.
    pub(super) mentioned: HashSet<String>,
    /// Macros that list items as `NAME in MODULE`: the name of the macro, and these items.
    pub(super) lists: Vec<(String, Vec<[String; 2]>)>,
    /// Macros that are called, with the line.
    calls: Vec<(String, usize)>,
    /// Whether a macro has a path `crate::$…`, so that only its caller knows the module.
    has_open_path: bool,
}

/// A path in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// Way in which a path is mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A path in the code.
    Inline,
    /// An import by `use` under this name, `None` for `*`.
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

    /// Adds what the called ones of these macros list, as `crate::MODULE::NAME`, where a macro of the module
    /// imports by such a path.
    pub(super) fn add_listed(&mut self, lists: &HashMap<String, Vec<[String; 2]>>) {
        if !self.has_open_path {
            return;
        }
        for (name, line) in std::mem::take(&mut self.calls) {
            for [item, module] in lists.get(&name).into_iter().flatten() {
                self.add_inline(vec!["crate".to_owned(), module.clone(), item.clone()], line);
            }
        }
    }

    /// Paths in the tokens of a macro or an attribute, which have no syntax tree; `before` is what stands in
    /// front of a group of them.
    fn add_tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let mut path = before.to_vec();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_path(&mut path, before.len(), line);
                    }
                    line = ident.span().start().line;
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    let is_tree = colons == 2 && group.delimiter() == Delimiter::Brace;
                    let around = if is_tree { path.as_slice() } else { &[] };
                    self.add_tokens(group.stream(), around);
                    if is_tree {
                        path.truncate(before.len());
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == '$' => {
                    self.has_open_path |= colons == 2 && path == ["crate"];
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            self.end_path(&mut path, before.len(), line);
            colons = 0;
        }
        self.end_path(&mut path, before.len(), line);
    }

    /// Adds a path that has names of its own behind the first `kept`, and goes back to those.
    fn end_path(&mut self, path: &mut Vec<String>, kept: usize, line: usize) {
        if path.len() > kept {
            self.add_inline(path.clone(), line);
            path.truncate(kept);
        }
    }
}

/// Pairs of names with `in` between them.
fn listed(tokens: TokenStream, found: &mut Vec<[String; 2]>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for three in tokens.windows(3) {
        if let [TokenTree::Ident(item), TokenTree::Ident(word), TokenTree::Ident(module)] = three
            && word == "in"
        {
            found.push([item.to_string(), module.to_string()]);
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            listed(group.stream(), found);
        }
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
        if let Some(name) = call.path.segments.last() {
            self.calls.push((name.ident.to_string(), name.ident.span().start().line));
        }
        self.add_tokens(call.tokens.clone(), &[]);
    }

    fn visit_item_macro(&mut self, item: &'a ItemMacro) {
        if let Some(name) = &item.ident {
            let mut found = Vec::new();
            listed(item.mac.tokens.clone(), &mut found);
            self.lists.push((name.to_string(), found));
        }
        visit::visit_item_macro(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.add_tokens(list.tokens.clone(), &[]),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
            Meta::Path(_) => {}
        }
    }

    /// `pub(in path)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &'a VisRestricted) {}
}
