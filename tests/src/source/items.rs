//! Attributes of items, and imports of `use` declarations.

use syn::{Attribute, Item, ItemUse, Meta, UseTree, Visibility};

/// One import of a `use` declaration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    /// The name it gets, `None` for `*`.
    pub(super) binding: Option<String>,
    pub(super) line: usize,
}

/// The imports of a `use` declaration, without those of a path that starts with `::`.
pub(super) fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        add_leaves(&item.tree, &[], &mut found);
    }
    found
}

fn add_leaves(tree: &UseTree, before: &[String], found: &mut Vec<Leaf>) {
    let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
    match tree {
        UseTree::Path(path) => add_leaves(&path.tree, &with(&path.ident), found),
        UseTree::Group(group) => {
            for tree in &group.items {
                add_leaves(tree, before, found);
            }
        }
        UseTree::Glob(glob) => {
            let line = glob.star_token.span.start().line;
            found.push(Leaf { path: before.to_vec(), binding: None, line });
        }
        UseTree::Name(name) if name.ident == "self" => {
            let line = name.ident.span().start().line;
            found.push(Leaf { path: before.to_vec(), binding: before.last().cloned(), line });
        }
        UseTree::Name(name) => {
            let line = name.ident.span().start().line;
            let binding = Some(name.ident.to_string());
            found.push(Leaf { path: with(&name.ident), binding, line });
        }
        UseTree::Rename(rename) => {
            let line = rename.ident.span().start().line;
            let path = if rename.ident == "self" { before.to_vec() } else { with(&rename.ident) };
            found.push(Leaf { path, binding: Some(rename.rename.to_string()), line });
        }
    }
}

/// True for `use` declarations that other modules can import from.
pub(super) fn is_re_export(item: &ItemUse) -> bool {
    !matches!(item.vis, Visibility::Inherited)
}

/// True for what is only compiled for tests.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args().is_ok_and(|condition: Meta| needs_test(&condition))
    })
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let parser = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parser) else { return false };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
