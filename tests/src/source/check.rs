//! The rules: no import of a higher layer, no circle.

use std::collections::BTreeMap;

use super::circles::{Circle, Graph, circles};
use super::layers::{Layers, Place};
use super::names::{Meaning, Target};
use super::references::{Kind, Reference};
use super::tree::Crate;

/// Everything that breaks a rule, as messages that name file, line and import.
#[must_use]
pub fn check(loaded: &Crate, layers: &Layers) -> Vec<String> {
    let imports = Import::all(loaded);
    let mut found = layers.mismatches(loaded);
    found.extend(imports.iter().filter_map(|import| import.upward(loaded, layers)));
    found.extend(circles_of_modules(loaded, layers, &imports));
    found.extend(circles_of_files(loaded, &imports));
    found
}

/// A reference of a module to something in the same crate.
#[derive(Debug)]
struct Import<'a> {
    from: usize,
    reference: &'a Reference,
    target: Target,
    /// False for a re-export that the module itself does not use.
    is_own_use: bool,
}

impl<'a> Import<'a> {
    fn all(loaded: &'a Crate) -> Vec<Self> {
        loaded
            .references()
            .flat_map(|(from, reference)| Self::of(loaded, from, reference))
            .collect()
    }

    fn of(loaded: &'a Crate, from: usize, reference: &'a Reference) -> Vec<Self> {
        let import = |target, is_own_use| Self { from, reference, target, is_own_use };
        let mentioned = &loaded.modules[from].references.mentioned;
        let mut found = Vec::new();
        if let Meaning::Ours(target) = loaded.meaning(from, &reference.path) {
            let is_own_use = match &reference.kind {
                Kind::Import { is_re_export: true, binding: Some(name) } => {
                    mentioned.contains(name)
                }
                _ => true,
            };
            found.push(import(target, is_own_use));
        }
        if matches!(reference.kind, Kind::Import { binding: None, .. }) {
            let targets = mentioned
                .iter()
                .filter_map(|name| loaded.meaning_by_glob(from, &reference.path, name));
            found.extend(targets.map(|target| import(target, true)));
        }
        found
    }

    /// Position of the import, and the imported path.
    fn describe(&self, loaded: &Crate) -> String {
        let file = loaded.files[loaded.modules[self.from].file].display();
        let star = match self.reference.kind {
            Kind::Import { binding: None, .. } => "::*",
            _ => "",
        };
        format!("{file}:{}: {}{star}", self.reference.line, self.reference.path.join("::"))
    }

    /// The places of the modules that the import goes through.
    fn places<'l>(&self, loaded: &Crate, layers: &'l Layers) -> Vec<Place<'l>> {
        let modules = self.target.modules.iter().chain(&self.target.definer);
        let mut places: Vec<_> =
            modules.filter_map(|module| layers.place(&loaded.modules[*module].path)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The message when it imports from a higher layer.
    fn upward(&self, loaded: &Crate, layers: &Layers) -> Option<String> {
        let importer = layers.place(&loaded.modules[self.from].path)?;
        let highest = self.places(loaded, layers).pop()?;
        (highest.height > importer.height).then(|| {
            format!(
                "{}: `{}` of layer {} imports `{}` of the higher layer {}",
                self.describe(loaded),
                importer.module.join("/"),
                layers.name(importer.height),
                highest.module.join("/"),
                layers.name(highest.height)
            )
        })
    }
}

/// Circles of modules that the table puts in one layer.
fn circles_of_modules(loaded: &Crate, layers: &Layers, imports: &[Import<'_>]) -> Vec<String> {
    let mut numbers = BTreeMap::new();
    let mut edges = Edges::default();
    for import in imports {
        let Some(importer) = layers.place(&loaded.modules[import.from].path) else { continue };
        for place in import.places(loaded, layers) {
            if place.height == importer.height && place.module != importer.module {
                let next = numbers.len();
                let from = *numbers.entry(importer.module).or_insert(next);
                let next = numbers.len();
                let to = *numbers.entry(place.module).or_insert(next);
                edges.add(from, to, import);
            }
        }
    }
    edges.circles(loaded, "modules of one layer", |node| {
        let name = numbers.iter().find(|(_, number)| **number == node);
        name.map(|(module, _)| module.join("/")).unwrap_or_default()
    })
}

/// Circles of files, whatever their layers.
fn circles_of_files(loaded: &Crate, imports: &[Import<'_>]) -> Vec<String> {
    let mut edges = Edges::default();
    for import in imports.iter().filter(|import| import.is_own_use) {
        let Some(definer) = import.target.definer else { continue };
        let (from, to) = (loaded.modules[import.from].file, loaded.modules[definer].file);
        if from != to {
            edges.add(from, to, import);
        }
    }
    edges.circles(loaded, "files", |file| loaded.files[file].display().to_string())
}

/// A graph with an import for each of its edges.
#[derive(Default)]
struct Edges<'a> {
    graph: Graph,
    imports: BTreeMap<(usize, usize), &'a Import<'a>>,
}

impl<'a> Edges<'a> {
    fn add(&mut self, from: usize, to: usize, import: &'a Import<'a>) {
        self.graph.entry(from).or_default().insert(to);
        self.imports.entry((from, to)).or_insert(import);
    }

    /// A message for each circle; nodes are called `what` and have a name each.
    fn circles(&self, loaded: &Crate, what: &str, name: impl Fn(usize) -> String) -> Vec<String> {
        let message = |Circle { nodes, group }| {
            let mut message = format!("a circle of {} {what}", nodes.len());
            if group.len() > nodes.len() {
                let group: Vec<String> = group.iter().map(|node| name(*node)).collect();
                message += &format!(
                    ", the shortest among {} that import each other ({})",
                    group.len(),
                    group.join(", ")
                );
            }
            for (index, from) in nodes.iter().enumerate() {
                let to = nodes[(index + 1) % nodes.len()];
                message += "\n    ";
                message += &self.imports[&(*from, to)].describe(loaded);
            }
            message
        };
        circles(&self.graph).into_iter().map(message).collect()
    }
}
