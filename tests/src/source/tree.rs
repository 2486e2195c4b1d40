//! The modules of a crate, found from its roots by following `mod` declarations.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, Item, Lit, Meta};

use super::items::{attributes, is_test, leaves};
use super::references::{Reference, References};

/// The shipped modules of a crate.
#[derive(Debug, Default)]
pub struct Crate {
    /// The files, relative to the folder of the sources.
    pub(super) files: Vec<PathBuf>,
    pub(super) modules: Vec<Module>,
}

/// A module: a file, or a block in a file.
#[derive(Debug)]
pub(super) struct Module {
    /// Path from the root, which is empty for the root itself.
    pub(super) path: Vec<String>,
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    /// Meanings of names here; a module and a function may share one.
    pub(super) names: HashMap<String, Vec<Name>>,
    /// Paths of `use path::*`.
    pub(super) globs: Vec<Vec<String>>,
    pub(super) references: References,
}

/// The meaning of a name in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// Defined here.
    Item,
    /// A child module.
    Module(usize),
    /// Imported by this path.
    Import(Vec<String>),
}

impl Crate {
    /// Reads the crate whose sources lie in a folder: its library and its programs.
    ///
    /// # Panics
    /// When a file cannot be read or is not Rust.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let bin = fs::read_dir(folder.join("bin")).into_iter().flatten();
        let bin = bin.map(|entry| Path::new("bin").join(entry.expect("a folder").file_name()));
        let programs = bin.flat_map(|path| [path.join("main.rs"), path]);
        let roots = ["lib.rs", "main.rs"].map(PathBuf::from).into_iter().chain(programs);
        let roots: Vec<PathBuf> = roots.filter(|root| folder.join(root).is_file()).collect();
        Self::read_with(&roots, |file| fs::read_to_string(folder.join(file)).ok())
    }

    /// Reads a crate whose files are given by a function from path to content.
    pub(super) fn read_with(roots: &[PathBuf], read: impl Fn(&Path) -> Option<String>) -> Self {
        let mut loaded = Self::default();
        for root in roots {
            let text = read(root).unwrap_or_else(|| panic!("{} cannot be read", root.display()));
            loaded.add_file(&read, root, &text, Vec::new(), None);
        }
        loaded.add_listed();
        loaded
    }

    /// Adds what modules import by a macro that lists names of others.
    fn add_listed(&mut self) {
        let lists = self.modules.iter().flat_map(|module| &module.references.lists);
        let lists: HashMap<String, Vec<[String; 2]>> =
            lists.map(|(name, listed)| (name.clone(), listed.clone())).collect();
        for module in &mut self.modules {
            module.references.add_listed(&lists);
        }
    }

    /// The files of the crate, relative to the folder of its sources.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    fn add_file(
        &mut self,
        read: &impl Fn(&Path) -> Option<String>,
        file: &Path,
        text: &str,
        path: Vec<String>,
        parent: Option<usize>,
    ) -> usize {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| {
            panic!("{}:{}: {error}", file.display(), error.span().start().line)
        });
        self.files.push(file.to_owned());
        let module = self.add_module(path, self.files.len() - 1, parent);
        let folder = match parent {
            Some(_) if !file.ends_with("mod.rs") => file.with_extension(""),
            _ => file.with_file_name(""),
        };
        self.fill(module, read, &folder, &syntax.items);
        module
    }

    fn add_module(&mut self, path: Vec<String>, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            path,
            file,
            parent,
            names: HashMap::new(),
            globs: Vec::new(),
            references: References::default(),
        });
        self.modules.len() - 1
    }

    fn fill(
        &mut self,
        module: usize,
        read: &impl Fn(&Path) -> Option<String>,
        folder: &Path,
        items: &[Item],
    ) {
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            let Item::Mod(child) = item else {
                self.modules[module].define(item);
                continue;
            };
            let name = child.ident.to_string();
            let mut path = self.modules[module].path.clone();
            path.push(name.clone());
            let index = if let Some((_, items)) = &child.content {
                let block = self.add_module(path, self.modules[module].file, Some(module));
                self.fill(block, read, &folder.join(&name), items);
                block
            } else {
                let candidates = match path_attribute(&child.attrs) {
                    Some(given) => vec![folder.join(given)],
                    None => {
                        vec![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")]
                    }
                };
                let found = candidates.iter().find_map(|file| Some((file, read(file)?)));
                let (file, text) =
                    found.unwrap_or_else(|| panic!("no file for module {}", path.join("::")));
                self.add_file(read, file, &text, path, Some(module))
            };
            self.modules[module].names.entry(name).or_default().push(Name::Module(index));
        }
    }
}

impl Module {
    /// Notes what an item defines and what it refers to.
    fn define(&mut self, item: &Item) {
        self.references.add_item(item);
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.names.entry(name.to_string()).or_default().push(Name::Item);
        }
        if let Item::Use(item) = item {
            for leaf in leaves(item) {
                match leaf.binding {
                    Some(name) => {
                        self.names.entry(name).or_default().push(Name::Import(leaf.path));
                    }
                    None => self.globs.push(leaf.path),
                }
            }
        }
    }
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        match &pair.value {
            Expr::Lit(value) if pair.path.is_ident("path") => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

impl Crate {
    /// The references of all modules.
    pub(super) fn references(&self) -> impl Iterator<Item = (usize, &Reference)> {
        let modules = self.modules.iter().enumerate();
        modules.flat_map(|(index, module)| module.references.all.iter().map(move |r| (index, r)))
    }
}
