//! `.dump Module`

use std::{collections::BTreeSet, io};

use handlescope_model::tables::Module;

use super::index;
use crate::{
    query::{LoadedModule, ModuleAnswer},
    render::{
        json,
        table::{Columns, Part, Show, Table},
    },
    values::Counted,
};

/// A row for each module; JSON has its loads, too.
///
/// # Errors
/// None that a caller could do anything about.
pub fn modules<'a>(answers: &'a [ModuleAnswer<'_>]) -> io::Result<Table<'a>> {
    let of_file = |answer: &'a ModuleAnswer<'_>| {
        answer.modules.iter().map(|module| (index(answer.index), module))
    };
    let rows: Vec<(u32, &LoadedModule)> = answers.iter().flat_map(of_file).collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |(file, _)| *file);
    columns.add("name", |(_, loaded)| loaded.module.name.as_str()).title("Name");
    let path = columns.add("path", |(_, loaded)| loaded.module.path.as_str());
    path.title("Path").texts(paths(answers)).place(1);
    columns.add("size", |(_, loaded)| loaded.module.size).title("Size").show(Show::Grouped);
    columns.add("timestamp", |(_, loaded)| loaded.module.timestamp);
    columns.add("checksum", |(_, loaded)| loaded.module.checksum);
    columns.add("pdb_name", |(_, loaded)| loaded.module.pdb_name.as_deref());
    columns.add("pdb_guid", |(_, loaded)| loaded.module.pdb_guid.as_deref());
    columns.add("pdb_age", |(_, loaded)| loaded.module.pdb_age);
    let version = columns.add("file_version", |(_, loaded)| loaded.module.file_version.as_deref());
    version.title("Version");
    columns.add("original_name", |(_, loaded)| loaded.module.original_name.as_deref());
    columns.add("product_name", |(_, loaded)| loaded.module.product_name.as_deref());
    columns.add("description", |(_, loaded)| loaded.module.description.as_deref());
    columns.add("company", |(_, loaded)| loaded.module.company.as_deref());
    columns.add_list("pids", |(_, loaded)| pids(loaded));
    columns.add("base", |(_, loaded)| only_base(loaded)).show(Show::Hex);
    columns.add("loaded_by", |(_, loaded)| loaders(loaded)).title("Loaded by").text_only();
    columns.add("bases", |(_, loaded)| bases(loaded)).title("Base").text_only();
    columns.add("pdb", |(_, loaded)| pdb(&loaded.module)).title("Pdb").text_only();
    let parts = answers.iter().map(|answer| {
        let count = answer.modules.len();
        let without = answer.modules.iter().filter(|m| m.module.pdb_guid.is_none()).count();
        let modules = Counted(count as u64, "module");
        let line = format!("{modules}, {without} without a PDB identity");
        Part::of(answer.path, count).below(line)
    });
    let table = Table::new("modules", columns, parts)?;
    Ok(table.with_document(|parts, mode, out| json::modules(answers, parts, mode, out)))
}

/// The paths with drive letters.
pub(super) fn paths(answers: &[ModuleAnswer<'_>]) -> Vec<String> {
    let of_file = |answer: &ModuleAnswer<'_>| {
        let path = |loaded: &LoadedModule| answer.volumes.shown(&loaded.module.path).into_owned();
        answer.modules.iter().map(path).collect::<Vec<_>>()
    };
    answers.iter().flat_map(of_file).collect()
}

/// The processes that loaded a module; 0 is the kernel.
pub(super) fn pids(loaded: &LoadedModule) -> Vec<u32> {
    let pids: BTreeSet<u32> = loaded.loads.iter().map(|load| load.pid).collect();
    pids.into_iter().collect()
}

/// Who loaded a module: the kernel, one process, or a number of them.
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

/// Where a module lies, if that is the same everywhere.
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
