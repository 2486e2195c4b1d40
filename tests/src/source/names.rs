//! Meaning of a path: the module that defines the item at its end.

use std::collections::HashSet;

use super::tree::{Crate, Name};

/// The meaning of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Something of this crate.
    Ours(Target),
    /// Something of another crate.
    Foreign,
    /// Nothing here has that name.
    Unknown,
}

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Target {
    /// Modules that the path, and the re-exports on its way, go through.
    pub(super) modules: Vec<usize>,
    /// The module that defines the item; `None` when the path names a module.
    pub(super) definer: Option<usize>,
}

/// Modules and names that are being resolved, so that circular re-exports end.
type Visited = HashSet<(usize, String)>;

impl Crate {
    /// The meaning of a path that is written in a module.
    pub(super) fn meaning(&self, module: usize, path: &[String]) -> Meaning {
        self.resolve(module, path, &mut Visited::new())
    }

    fn resolve(&self, module: usize, path: &[String], visited: &mut Visited) -> Meaning {
        let Some((first, mut rest)) = path.split_first() else { return Meaning::Unknown };
        let mut start = match first.as_str() {
            "crate" => self.root(module),
            "self" => module,
            "super" => self.parent(module),
            _ => {
                // The name of a crate, or of something built in, when the module does not have it.
                return match self.descend(module, path, visited) {
                    Meaning::Unknown => Meaning::Foreign,
                    meaning => meaning,
                };
            }
        };
        while let Some(("super", after)) = rest.split_first().map(|(s, r)| (s.as_str(), r)) {
            (start, rest) = (self.parent(start), after);
        }
        self.descend_known(start, rest, visited)
    }

    /// Like [`Crate::descend`], for a path of which at least the module is ours: what no item declares
    /// is made by a macro there.
    fn descend_known(&self, module: usize, path: &[String], visited: &mut Visited) -> Meaning {
        match self.descend(module, path, visited) {
            Meaning::Unknown => {
                Meaning::Ours(Target { modules: vec![module], definer: Some(module) })
            }
            meaning => meaning,
        }
    }

    fn descend(&self, module: usize, path: &[String], visited: &mut Visited) -> Meaning {
        let Some((name, rest)) = path.split_first() else {
            return Meaning::Ours(Target { modules: vec![module], definer: None });
        };
        match self.named(module, name, rest, visited) {
            Meaning::Ours(mut target) => {
                target.modules.push(module);
                Meaning::Ours(target)
            }
            meaning => meaning,
        }
    }

    /// The meaning of a name in a module and of what follows it.
    fn named(&self, module: usize, name: &str, rest: &[String], visited: &mut Visited) -> Meaning {
        let (mut child, mut import, mut is_item) = (None, None, false);
        for name in self.modules[module].names.get(name).into_iter().flatten() {
            match name {
                Name::Item => is_item = true,
                Name::Module(index) => child = Some(*index),
                Name::Import(path) => import = Some(path),
            }
        }
        // Where the path ends, an item of the same name is meant rather than the module.
        let is_last = rest.is_empty();
        if let Some(child) = child.filter(|_| !is_last) {
            return self.descend_known(child, rest, visited);
        }
        if is_item {
            return Meaning::Ours(Target { modules: Vec::new(), definer: Some(module) });
        }
        if let Some(import) = import {
            if !visited.insert((module, name.to_owned())) {
                return Meaning::Foreign;
            }
            let meaning = self.resolve(module, &[import, rest].concat(), visited);
            visited.remove(&(module, name.to_owned()));
            return meaning;
        }
        match child {
            Some(child) => self.descend_known(child, rest, visited),
            None => self.by_glob(module, &[&[name.to_owned()], rest].concat(), visited),
        }
    }

    /// The meaning of a path whose first name a module can only have from a `use …::*`.
    fn by_glob(&self, module: usize, path: &[String], visited: &mut Visited) -> Meaning {
        let key = (module, "*".to_owned());
        if !visited.insert(key.clone()) {
            return Meaning::Unknown;
        }
        let found = self.modules[module].globs.iter().find_map(|glob| {
            let source = self.globbed(module, glob, visited)?;
            let meaning = self.descend(source, path, visited);
            (meaning != Meaning::Unknown).then_some(meaning)
        });
        visited.remove(&key);
        found.unwrap_or(Meaning::Unknown)
    }

    /// The module of this crate that `use path::*` imports from.
    fn globbed(&self, module: usize, path: &[String], visited: &mut Visited) -> Option<usize> {
        match self.resolve(module, path, visited) {
            Meaning::Ours(Target { definer: None, modules }) => modules.first().copied(),
            _ => None,
        }
    }

    /// The meaning of a name that `use path::*` brings into a module, `None` when it does not.
    pub(super) fn meaning_by_glob(
        &self,
        module: usize,
        path: &[String],
        name: &str,
    ) -> Option<Target> {
        let mut visited = Visited::new();
        let source = self.globbed(module, path, &mut visited)?;
        match self.descend(source, &[name.to_owned()], &mut visited) {
            Meaning::Ours(target) => Some(target),
            _ => None,
        }
    }

    fn root(&self, module: usize) -> usize {
        self.modules[module].parent.map_or(module, |parent| self.root(parent))
    }

    fn parent(&self, module: usize) -> usize {
        self.modules[module].parent.unwrap_or(module)
    }
}
