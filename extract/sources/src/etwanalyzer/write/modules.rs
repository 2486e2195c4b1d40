use std::collections::{BTreeMap, BTreeSet, HashMap};

use handlescope_extract::intern::{ByteInterner, Interner};
use handlescope_model::tables::{Frames, Module, ModuleLoads, Modules, Symbols};
use handlescope_model::{FrameIdx, TableRows};

use super::super::record::{Rows, Unread};
use super::super::records::{
    HandlescopeModules, ModuleRecord, ModulesPart, NO_VERSION, PdbRecord, Strings,
};

/// Number for an unknown text.
const NO_TEXT: i64 = -2;

/// Name, age and GUID of a PDB; they are sorted in this order.
type PdbSortKey<'a> = (&'a str, u32, &'a str);

/// Texts without duplicates.
#[derive(Default)]
struct TextSet(ByteInterner);

impl TextSet {
    fn number(&mut self, text: Option<&str>) -> i64 {
        text.map_or(NO_TEXT, |text| self.0.intern(text.as_bytes()).into())
    }
}

impl ModulesPart {
    /// Creates the part. `system` is the process under which kernel modules are listed.
    pub fn new(
        modules: &Modules,
        loads: &ModuleLoads,
        frames: &Frames,
        symbols: &Symbols,
        system: usize,
    ) -> Self {
        let processes = processes_by_module(modules.len(), loads, system);
        let unresolved = unresolved(modules, frames, symbols);
        let pdbs: BTreeSet<PdbSortKey<'_>> =
            unresolved.iter().filter_map(|row| pdb(modules, *row)).collect();
        let number_of_pdb: HashMap<PdbSortKey<'_>, usize> =
            pdbs.iter().enumerate().map(|(number, pdb)| (*pdb, number)).collect();
        let mut strings = TextSet::default();
        let mut records: Vec<(Option<usize>, BTreeSet<usize>)> = Vec::new();
        let mut texts = Interner::default();
        for (row, (module, processes)) in modules.rows().zip(processes).enumerate() {
            // Only a stack names it, so no process is known to have it.
            if processes.is_empty() && module.path == module.name {
                continue;
            }
            let numbers = module_texts(&module, &mut strings);
            let record = texts.intern(&numbers) as usize;
            if record == records.len() {
                records.push((None, BTreeSet::new()));
            }
            let number = pdb(modules, row).and_then(|pdb| number_of_pdb.get(&pdb).copied());
            if let Some((known, in_processes)) = records.get_mut(record) {
                *known = known.or(number.filter(|_| unresolved.contains(&row)));
                in_processes.extend(processes);
            }
        }
        let record = |(numbers, (pdb, processes)): (&[i64], (Option<usize>, BTreeSet<usize>))| {
            let numbers = numbers.iter().map(i64::to_string);
            let words: Vec<String> =
                numbers.chain(processes.iter().map(|process| format!("#{process}"))).collect();
            ModuleRecord { module_and_pid: Some(words.join(" ")), pdb }
        };
        let all: BTreeSet<PdbSortKey<'_>> =
            (0..modules.len()).filter_map(|row| pdb(modules, row)).collect();
        Self {
            modules: texts.iter().zip(records).map(record).collect(),
            pdbs: pdbs
                .iter()
                .map(|(name, age, guid)| PdbRecord { pdb: Some(format!("{guid} {age} {name}")) })
                .collect(),
            pdb_count: Unread(all.len()),
            strings: Strings {
                texts: (0..strings.0.count()).map(|id| strings.0.text(id)).collect(),
            },
            handlescope: Some(HandlescopeModules {
                modules: Rows(modules.rows().collect()),
                loads: Rows(loads.rows().collect()),
            }),
        }
    }
}

fn pdb(modules: &Modules, row: usize) -> Option<PdbSortKey<'_>> {
    let name = modules.pdb_name.get(row)?.as_deref()?;
    let guid = modules.pdb_guid.get(row)?.as_deref()?;
    Some((name, modules.pdb_age.get(row).copied().flatten()?, guid))
}

/// Returns the processes that have each module.
fn processes_by_module(count: usize, loads: &ModuleLoads, system: usize) -> Vec<BTreeSet<usize>> {
    let mut processes = vec![BTreeSet::new(); count];
    for load in loads.rows() {
        // Pid 0 is the kernel.
        let process = if load.pid == 0 { Some(system) } else { load.process.map(|row| row.row()) };
        if let (Some(process), Some(of_module)) = (process, processes.get_mut(load.module.row())) {
            of_module.insert(process);
        }
    }
    processes
}

/// Returns the modules with a PDB that was not found. If a module has frames, its PDB was found if any of them has a
/// name. A module without frames is assumed to have its PDB if any other module does.
fn unresolved(modules: &Modules, frames: &Frames, symbols: &Symbols) -> BTreeSet<usize> {
    let mut is_named: BTreeMap<usize, bool> = BTreeMap::new();
    let named: BTreeSet<FrameIdx> = symbols.frame.iter().copied().collect();
    for (row, frame) in (0..).map(FrameIdx).zip(frames.rows()) {
        // Managed methods get their names from the runtime.
        if let (Some(module), Some(_), None) = (frame.module, frame.rva, frame.method) {
            *is_named.entry(module.row()).or_default() |= named.contains(&row);
        }
    }
    let has_symbols = is_named.values().any(|named| *named);
    let with_pdb = (0..modules.len()).filter(|row| pdb(modules, *row).is_some());
    with_pdb.filter(|row| !is_named.get(row).copied().unwrap_or(has_symbols)).collect()
}

/// Folder, file, text of the file version, product version, product, file version, description.
fn module_texts(module: &Module, strings: &mut TextSet) -> [i64; 7] {
    let (folder, file) = match module.path.rfind(['\\', '/']) {
        Some(at) => (module.path.get(..at), module.path.get(at + 1..)),
        None => (Some(""), Some(module.path.as_str())),
    };
    let version = module.file_version.as_deref();
    [
        strings.number(folder),
        strings.number(file.filter(|file| !file.is_empty()).or(Some(&module.name))),
        strings.number(version.or(Some(NO_VERSION))),
        NO_TEXT,
        strings.number(module.product_name.as_deref()),
        strings.number(version.and_then(numeric_version).as_deref()),
        strings.number(module.description.as_deref()),
    ]
}

/// Returns the numbers a version starts with, if they make a valid .NET `Version`.
fn numeric_version(text: &str) -> Option<String> {
    let numbers = text.split_whitespace().next()?;
    let parts: Vec<u32> = numbers.split('.').map_while(|part| part.parse().ok()).collect();
    let is_whole = parts.len() == numbers.split('.').count();
    let fits = parts.iter().all(|part| i32::try_from(*part).is_ok());
    (is_whole && fits && (2..=4).contains(&parts.len()))
        .then(|| parts.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use handlescope_model::tables::{Frame, ModuleLoad, Symbol};
    use handlescope_model::{FrameIdx, ModuleIdx, ProcessIdx};
    use serde_json::{Value, json};

    use super::*;

    fn module(path: &str, version: Option<&str>, pdb: Option<&str>) -> Module {
        Module {
            name: path.rsplit('\\').next().unwrap_or_default().to_owned(),
            path: path.to_owned(),
            file_version: version.map(str::to_owned),
            pdb_name: pdb.map(str::to_owned),
            pdb_guid: pdb.map(|_| "0f8fad5b-d9cb-469f-a165-70867728950e".to_owned()),
            pdb_age: pdb.map(|_| 1),
            ..Module::default()
        }
    }

    fn part(modules: Vec<Module>, loads: &[(u32, u32, Option<u32>)], symbols: &[u32]) -> Value {
        let (mut table, mut load_table) = (Modules::default(), ModuleLoads::default());
        let (mut frames, mut names) = (Frames::default(), Symbols::default());
        for (row, module) in (0..).zip(modules) {
            table.push(module);
            frames.push(Frame { module: Some(ModuleIdx(row)), rva: Some(1), ..Frame::default() });
        }
        for (module, pid, process) in loads {
            load_table.push(ModuleLoad {
                module: ModuleIdx(*module),
                pid: *pid,
                process: process.map(ProcessIdx),
                ..ModuleLoad::default()
            });
        }
        for frame in symbols {
            names.push(Symbol { frame: FrameIdx(*frame), ..Symbol::default() });
        }
        let part = ModulesPart::new(&table, &load_table, &frames, &names, 0);
        serde_json::to_value(part).unwrap()
    }

    #[test]
    fn equal_modules_share_a_record_with_all_processes() {
        let version = Some("10.0.22621.1 (WinBuild.160101.0800)");
        let ntdll = || module(r"C:\Windows\System32\ntdll.dll", version, None);
        let part = part(
            vec![ntdll(), module("bare.exe", None, None), ntdll()],
            &[(0, 8, Some(2)), (0, 4, Some(1)), (2, 9, Some(3)), (1, 0, None), (0, 8, Some(2))],
            &[],
        );
        assert_eq!(
            part["Modules"],
            json!([{"ModuleAndPid": "0 1 2 -2 -2 3 -2 #1 #2 #3"}, {"ModuleAndPid": "4 5 6 -2 -2 -2 -2 #0"}])
        );
        assert_eq!(
            part["SharedStrings"]["Strings"],
            json!([
                r"C:\Windows\System32",
                "ntdll.dll",
                version,
                "10.0.22621.1",
                "",
                "bare.exe",
                "<NoVersion>"
            ])
        );
    }

    #[test]
    fn pdbs_of_modules_without_names_are_unresolved_and_sorted() {
        let modules = ["z.pdb", "my a.pdb", "named.pdb"].iter().enumerate();
        let modules = modules.map(|(row, pdb)| module(&format!(r"C:\{row}.dll"), None, Some(pdb)));
        let part = part(modules.collect(), &[(0, 1, Some(1)), (1, 1, Some(1))], &[2]);
        let pdb =
            |name: &str| json!({"Pdb": format!("0f8fad5b-d9cb-469f-a165-70867728950e 1 {name}")});
        assert_eq!(part["UnresolvedPdbs"], json!([pdb("my a.pdb"), pdb("z.pdb")]));
        let of = |row: usize| part["Modules"][row]["PdbIdx"].clone();
        assert_eq!((of(0), of(1), of(2)), (json!(1), json!(0), Value::Null));
        assert_eq!(part["TotalPdbCount"], 3);
    }

    #[test]
    fn a_numeric_version_is_a_version_that_dotnet_reads() {
        assert_eq!(numeric_version("10.0.22621.1 (WinBuild)").as_deref(), Some("10.0.22621.1"));
        assert_eq!(numeric_version("01.2").as_deref(), Some("1.2"));
        for text in ["", "1", "1.x", "1.2.3.4.5", "1, 0, 0, 1", "1.2.3.99999999999"] {
            assert_eq!(numeric_version(text), None, "{text}");
        }
    }
}
