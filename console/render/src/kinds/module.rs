//! `.dump Module`

use std::{collections::BTreeSet, io};

use handlescope_model::tables::{Module, ModuleLoad};

use super::index;
use crate::{
    json::Hex,
    no_match::{NoMatchRow, first_no_match, list_document},
    table::{AnswerTable, Columns, FileRows, Show},
};
use handlescope_query::{LoadedModule, ModuleAnswer};
use handlescope_session::values::CountedNoun;

// The meanings of what the rows of modules and of their versions share.
pub const NAME: &str = "last part of the path";
pub const PATH: &str = "path as in the trace, usually an NT path";
pub const VERSION: &str = "from the version resource; null if the trace does not have them";
pub const PIDS: &str = "ids of the processes that loaded it; 0: kernel";

/// A module of a trace.
pub struct LoadedModuleRow<'a> {
    answer: &'a ModuleAnswer<'a>,
    loaded: &'a LoadedModule,
}

/// Declares the columns of a module.
pub fn module_columns<'a>() -> Columns<'a, LoadedModuleRow<'a>> {
    let mut columns = Columns::<LoadedModuleRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.answer.index));
    columns.add("name", NAME, |row| row.module().name.as_str()).title("Name");
    let path = columns.add("path", PATH, |row| row.module().path.as_str());
    path.title("Path").texts(|row| path_shown(row.answer, row.loaded)).show(Show::Clipped).rank(1);
    columns.add("size", "mapped bytes", |row| row.module().size).title("Size").show(Show::Grouped);
    columns.add("timestamp", "from the PE header", |row| row.module().timestamp);
    columns.add("checksum", "from the PE header", |row| row.module().checksum);
    const PDB: &str = "identity of the PDB; the GUID in lower case with dashes";
    columns.add("pdb_name", PDB, |row| row.module().pdb_name.as_deref());
    columns.add("pdb_guid", PDB, |row| row.module().pdb_guid.as_deref());
    columns.add("pdb_age", PDB, |row| row.module().pdb_age);
    columns
        .add("file_version", VERSION, |row| row.module().file_version.as_deref())
        .title("Version");
    columns.add("original_name", VERSION, |row| row.module().original_name.as_deref());
    columns.add("product_name", VERSION, |row| row.module().product_name.as_deref());
    columns.add("description", VERSION, |row| row.module().description.as_deref());
    columns.add("company", VERSION, |row| row.module().company.as_deref());
    const TIMES: &str = "times; null outside of the trace";
    let mut loads = Columns::<&'a ModuleLoad>::default();
    loads.member("pid", "process id; 0: kernel, in every process", |load| load.pid);
    loads.member("base", "first address; null if unknown", |load| load.base.map(Hex));
    loads.member("load_ns", TIMES, |load| load.load_ns);
    loads.member("unload_ns", TIMES, |load| load.unload_ns);
    columns.parts("loads", "where and when it was mapped", loads, |row| {
        row.loaded.loads.iter().collect()
    });
    columns.add("pids", PIDS, |row| pids(row.loaded)).rows_only();
    columns
        .add("base", "first address, if it is the same in every process", |row| {
            only_base(row.loaded).map(Hex)
        })
        .rows_only();
    columns
        .add("loaded_by", "the kernel, a process, or the number of processes", |row| {
            loaders(row.loaded)
        })
        .title("Loaded by")
        .text_only();
    columns
        .add("bases", "first address, or the number of different ones", |row| bases(row.loaded))
        .title("Base")
        .text_only();
    columns
        .add("pdb", "name, GUID and age of its PDB", |row| pdb(row.module()))
        .title("Pdb")
        .text_only();
    columns
}

/// Returns a row for each module; JSON also has its loads.
///
/// # Errors
/// None that a caller could do anything about.
pub fn modules<'a>(answers: &'a [ModuleAnswer<'a>]) -> io::Result<AnswerTable<'a>> {
    let rows = answers.iter().flat_map(|answer| {
        answer.list.modules.iter().map(move |loaded| LoadedModuleRow { answer, loaded })
    });
    let file_rows = answers.iter().map(|answer| {
        let count = answer.list.modules.len();
        let without =
            answer.list.modules.iter().filter(|loaded| loaded.module.pdb_guid.is_none()).count();
        let modules = CountedNoun(count as u64, "module");
        let line = format!("{modules}, {without} without a PDB identity");
        FileRows::new(answer.path, count).below(line)
    });
    let table = AnswerTable::new(module_columns(), rows.collect(), file_rows)?;
    let table = table.within(module_document(), first_no_match(answers));
    Ok(table.with_spare(["Pdb", "Size", "Base", "Loaded by"]))
}

impl<'a> LoadedModuleRow<'a> {
    fn module(&self) -> &'a Module {
        &self.loaded.module
    }
}

/// Returns the path with a drive letter.
pub fn path_shown(answer: &ModuleAnswer<'_>, loaded: &LoadedModule) -> String {
    answer.list.volumes.shown(&loaded.module.path).into_owned()
}

/// Returns the ids of the processes that loaded a module; 0 is the kernel.
pub fn pids(loaded: &LoadedModule) -> Vec<u32> {
    let pids: BTreeSet<u32> = loaded.loads.iter().map(|load| load.pid).collect();
    pids.into_iter().collect()
}

/// Describes who loaded a module: the kernel, one process, or a number of them.
fn loaders(loaded: &LoadedModule) -> Option<String> {
    match pids(loaded)[..] {
        [] => None,
        [0] => Some("kernel".to_owned()),
        [pid] => Some(format!("pid {pid}")),
        ref pids => Some(format!("{} processes", pids.len())),
    }
}

fn distinct_bases(loaded: &LoadedModule) -> BTreeSet<u64> {
    loaded.loads.iter().filter_map(|load| load.base).collect()
}

/// Returns the address of a module, if it is the same in every process.
fn only_base(loaded: &LoadedModule) -> Option<u64> {
    let bases = distinct_bases(loaded);
    bases.first().copied().filter(|_| bases.len() == 1)
}

fn bases(loaded: &LoadedModule) -> Option<String> {
    match (only_base(loaded), distinct_bases(loaded).len()) {
        (Some(base), _) => Some(format!("0x{base:X}")),
        (None, 0) => None,
        (None, count) => Some(format!("{count} addresses")),
    }
}

fn pdb(module: &Module) -> Option<String> {
    let (name, guid) = (module.pdb_name.as_ref()?, module.pdb_guid.as_ref()?);
    Some(format!("{name} {guid} {}", module.pdb_age.unwrap_or_default()))
}

/// Declares the document of `.dump Module` and `.dump Version`.
pub fn module_document<'a>() -> Columns<'a, Option<NoMatchRow<'a>>> {
    list_document(
        "modules",
        "the modules, by file, then name (ignoring case), then path",
        "only if nothing matches: the filter that removed everything, as in `.dump ObjectRef`; \
         `before` counts modules",
    )
}
