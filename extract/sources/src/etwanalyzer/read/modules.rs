//! Reads the modules part, and adds modules known only from stacks.

use std::collections::HashMap;

use handlescope_model::tables::{Module, ModuleLoad, ModuleLoads, Modules};
use handlescope_model::{ModuleIdx, ProcessIdx};

use super::super::records::{
    HandlescopeModules, ModuleRecord, ModulesPart, NO_VERSION, PdbRecord, SYSTEM,
};

/// The modules tables, which stacks may add to.
#[derive(Debug, Default)]
pub struct ImportedModules {
    modules: Modules,
    loads: ModuleLoads,
    /// Row by name in lower case; `None` if several modules have the name.
    by_name: HashMap<String, Option<u32>>,
    /// Rows of modules known only by name.
    only_named: HashMap<String, u32>,
    is_by_handlescope: bool,
}

/// Records the row of a module by name, unless another module has the same name.
fn note_name(by_name: &mut HashMap<String, Option<u32>>, name: &str, row: u32) {
    by_name.entry(name.to_lowercase()).and_modify(|known| *known = None).or_insert(Some(row));
}

impl ImportedModules {
    /// Creates the tables. `processes` has pid and name of each process. With `is_by_handlescope`, our own tables are
    /// used.
    pub fn new(part: &mut ModulesPart, processes: &[(u32, &str)], is_by_handlescope: bool) -> Self {
        if let Some(tables) = part.handlescope.take().filter(|_| is_by_handlescope) {
            return Self::from_tables(tables);
        }
        let mut tables = Self::default();
        for record in &part.modules {
            tables.add(part, record, processes);
        }
        tables
    }

    fn from_tables(HandlescopeModules { modules, loads }: HandlescopeModules) -> Self {
        let mut by_name = HashMap::new();
        for (row, module) in (0..).zip(&modules.0) {
            note_name(&mut by_name, &module.name, row);
        }
        let (modules, loads) = (modules.0.into_iter().collect(), loads.0.into_iter().collect());
        Self { modules, loads, by_name, is_by_handlescope: true, ..Self::default() }
    }

    /// Whether the rows come from an extract of this program, so that its frames refer to them.
    pub fn is_by_handlescope(&self) -> bool {
        self.is_by_handlescope
    }

    /// Adds a module; a record that cannot be read is skipped.
    fn add(&mut self, part: &ModulesPart, record: &ModuleRecord, processes: &[(u32, &str)]) {
        let mut words = record.module_and_pid.as_deref().unwrap_or_default().split(' ');
        let mut text = || {
            let index: usize = words.next()?.parse().ok()?;
            part.strings.texts.get(index).cloned()
        };
        let (folder, name, version_text) = (text(), text(), text());
        let (_product_version, product, version, description) = (text(), text(), text(), text());
        let Some(name) = name else { return };
        let path = match folder {
            Some(folder) if !folder.is_empty() => format!("{folder}\\{name}"),
            _ => name.clone(),
        };
        let pdb = record.pdb.and_then(|row| part.pdbs.get(row)).and_then(PdbReference::parse);
        let file_version = version_text.or(version).filter(|version| version != NO_VERSION);
        let row = self.modules.len() as u32;
        note_name(&mut self.by_name, &name, row);
        self.modules.push(Module {
            name,
            path,
            pdb_name: pdb.map(|pdb| pdb.name.to_owned()),
            pdb_guid: pdb.map(|pdb| pdb.guid.to_ascii_lowercase()),
            pdb_age: pdb.map(|pdb| pdb.age),
            file_version,
            product_name: product,
            description,
            ..Module::default()
        });
        for word in words {
            let process: Option<usize> = word.strip_prefix('#').and_then(|row| row.parse().ok());
            let Some((process, (pid, name))) =
                process.and_then(|row| Some((row, processes.get(row)?)))
            else {
                continue;
            };
            // Pid 0 is the kernel. Every process sees its modules.
            let is_kernel = *name == SYSTEM;
            self.loads.push(ModuleLoad {
                module: ModuleIdx(row),
                pid: if is_kernel { 0 } else { *pid },
                process: (!is_kernel).then_some(ProcessIdx(process as u32)),
                ..ModuleLoad::default()
            });
        }
    }

    /// Returns the row of a module named in a stack. If several modules have the name, the text does not tell which one
    /// it is, so the row has only a name.
    pub fn row(&mut self, name: &str) -> u32 {
        let key = name.to_lowercase();
        if let Some(Some(row)) = self.by_name.get(&key) {
            return *row;
        }
        let Self { modules, only_named, .. } = self;
        *only_named.entry(key).or_insert_with(|| {
            let row = modules.len() as u32;
            modules.push(Module {
                name: name.to_owned(),
                path: name.to_owned(),
                ..Module::default()
            });
            row
        })
    }

    /// Whether a module of this name is known.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(&name.to_lowercase())
    }

    pub fn into_tables(self) -> (Modules, ModuleLoads) {
        (self.modules, self.loads)
    }
}

/// `{guid} {age} {name}`; the name may contain spaces.
#[derive(Clone, Copy)]
struct PdbReference<'a> {
    guid: &'a str,
    age: u32,
    name: &'a str,
}

impl<'a> PdbReference<'a> {
    fn parse(record: &'a PdbRecord) -> Option<Self> {
        let (guid, rest) = record.pdb.as_deref()?.split_once(' ')?;
        let (age, name) = rest.split_once(' ')?;
        Some(Self { guid, age: age.parse().ok()?, name })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::Fill;
    use super::*;
    use serde::de::DeserializeSeed;

    const PART: &str = r#"{
        "Modules": [
            { "ModuleAndPid": "0 1 2 3 4 5 6 #0 #1" },
            { "ModuleAndPid": "7 8 9 -2 -2 -2 -2 #1 #9", "PdbIdx": 0 },
            { "ModuleAndPid": "0 8 9 -2 -2 -2 -2" },
            { "ModuleAndPid": "nonsense" }, { "ModuleAndPid": null }, {}
        ],
        "UnresolvedPdbs": [ { "Pdb": "0F8FAD5B-D9CB-469F-A165-70867728950E 1 my leaky.pdb" } ],
        "TotalPdbCount": 2,
        "SharedStrings": { "Strings": [ "C:\\Windows", "ntdll.dll", "10.0 (x)", "10.0", "Windows",
            "10.0.1", "NT Layer", "C:\\Demo", "leaky.exe", "<NoVersion>" ] } }"#;

    fn tables() -> ImportedModules {
        let mut part = ModulesPart::default();
        Fill(&mut part)
            .deserialize(&mut serde_json::Deserializer::from_reader(PART.as_bytes()))
            .unwrap();
        ImportedModules::new(&mut part, &[(4, "System"), (700, "leaky.exe")], false)
    }

    #[test]
    fn modules_have_their_texts_pdbs_and_processes() {
        let (modules, loads) = tables().into_tables();
        assert_eq!(
            modules.path,
            ["C:\\Windows\\ntdll.dll", "C:\\Demo\\leaky.exe", "C:\\Windows\\leaky.exe"]
        );
        assert_eq!(modules.file_version[0].as_deref(), Some("10.0 (x)"));
        assert_eq!(modules.file_version[1], None);
        assert_eq!(modules.description[0].as_deref(), Some("NT Layer"));
        assert_eq!(modules.pdb_name[1].as_deref(), Some("my leaky.pdb"));
        assert_eq!(modules.pdb_guid[1].as_deref(), Some("0f8fad5b-d9cb-469f-a165-70867728950e"));
        assert_eq!(loads.pid, [0, 700, 700]);
        assert_eq!(loads.base, [None, None, None]);
    }

    #[test]
    fn a_name_that_two_modules_have_is_that_of_a_third() {
        let mut tables = tables();
        assert_eq!(tables.row("NTDLL.DLL"), 0);
        assert_eq!((tables.row("leaky.exe"), tables.row("Leaky.exe")), (3, 3));
        assert_eq!(tables.row("new.dll"), 4);
        assert!(tables.has("leaky.exe") && !tables.has("new.dll"));
    }
}
