//! The table of layers in the documentation.

use super::tree::Crate;

/// The layers of a crate, lowest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Layers {
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    layer: String,
    /// Paths of modules.
    modules: Vec<Vec<String>>,
}

/// Place of a module in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place<'a> {
    /// Number of layers below.
    pub(super) height: usize,
    /// The module that the table names: the one in question, or one around it.
    pub(super) module: &'a [String],
}

impl Layers {
    /// Reads the table below the heading `## Layers of NAME`; `None` when there is none.
    ///
    /// Rows are `| layer | modules | what it does |` with modules as `code`, lowest layer first.
    #[must_use]
    pub fn parse(document: &str, name: &str) -> Option<Self> {
        let heading = format!("## Layers of {name}");
        let mut lines = document.lines().skip_while(|line| line.trim_end() != heading).skip(1);
        let section = lines.by_ref().take_while(|line| !line.starts_with('#'));
        // The first two lines of a table are its titles and a rule.
        let rows: Vec<Row> =
            section.filter(|line| line.starts_with('|')).skip(2).map(Row::parse).collect();
        (!rows.is_empty()).then_some(Self { rows })
    }

    /// Name of the layer at a height.
    pub(super) fn name(&self, height: usize) -> &str {
        &self.rows[height].layer
    }

    /// The place of a module; `None` for the root, and for a module that no row names.
    pub(super) fn place(&self, module: &[String]) -> Option<Place<'_>> {
        let places = self.rows.iter().enumerate().flat_map(|(height, row)| {
            row.modules.iter().map(move |module| Place { height, module })
        });
        places
            .filter(|place| module.starts_with(place.module))
            .max_by_key(|place| place.module.len())
    }

    /// Modules that no row names, and names of no module.
    pub(super) fn mismatches(&self, loaded: &Crate) -> Vec<String> {
        let mut found = Vec::new();
        for module in &loaded.modules {
            if module.path.len() == 1 && self.place(&module.path).is_none() {
                let file = loaded.files[module.file].display();
                found.push(format!("{file}: no row of the table names `{}`", module.path[0]));
            }
        }
        let named = self.rows.iter().flat_map(|row| &row.modules);
        for (index, name) in named.clone().enumerate() {
            let shown = name.join("/");
            if !loaded.modules.iter().any(|module| module.path == *name) {
                found.push(format!("the table names `{shown}`, which is not a module"));
            }
            if named.clone().take(index).any(|other| other == name) {
                found.push(format!("the table names `{shown}` twice"));
            }
        }
        found
    }
}

impl Row {
    fn parse(line: &str) -> Self {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let layer = cells.next().unwrap_or_default().to_owned();
        // Code stands between backticks: every second part.
        let names = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
        let path = |name: &str| {
            let name = name.trim_end_matches('/');
            name.strip_suffix(".rs").unwrap_or(name).split('/').map(str::to_owned).collect()
        };
        Self { layer, modules: names.map(path).collect() }
    }
}
