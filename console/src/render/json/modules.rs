//! `.dump Module -json`.

use std::io::{self, Write};

use handlescope_model::tables::ModuleLoad;
use serde::Serialize;

use super::{Array, Hex};
use crate::query::{LoadedModule, ModuleAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn modules(
    answers: &[ModuleAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<T> {
        modules: T,
    }
    let rows = || {
        super::rows(answers, parts).filter_map(|(answer, row)| {
            Some(ModuleJson::new(answer.index, answer.modules.get(row)?))
        })
    };
    super::write(&Document { modules: Array(rows) }, mode, out)
}

#[derive(Serialize)]
struct ModuleJson<'a> {
    file: usize,
    name: &'a str,
    path: &'a str,
    size: u64,
    timestamp: Option<u32>,
    checksum: u32,
    pdb_name: Option<&'a str>,
    pdb_guid: Option<&'a str>,
    pdb_age: Option<u32>,
    file_version: Option<&'a str>,
    original_name: Option<&'a str>,
    product_name: Option<&'a str>,
    description: Option<&'a str>,
    company: Option<&'a str>,
    loads: Vec<LoadJson>,
}

#[derive(Serialize)]
struct LoadJson {
    pid: u32,
    base: Option<Hex>,
    load_ns: Option<i64>,
    unload_ns: Option<i64>,
}

impl<'a> ModuleJson<'a> {
    fn new(file: usize, loaded: &'a LoadedModule) -> Self {
        let LoadedModule { module, loads } = loaded;
        let load = |load: &ModuleLoad| LoadJson {
            pid: load.pid,
            base: load.base.map(Hex),
            load_ns: load.load_ns,
            unload_ns: load.unload_ns,
        };
        Self {
            file,
            name: &module.name,
            path: &module.path,
            size: module.size,
            timestamp: module.timestamp,
            checksum: module.checksum,
            pdb_name: module.pdb_name.as_deref(),
            pdb_guid: module.pdb_guid.as_deref(),
            pdb_age: module.pdb_age,
            file_version: module.file_version.as_deref(),
            original_name: module.original_name.as_deref(),
            product_name: module.product_name.as_deref(),
            description: module.description.as_deref(),
            company: module.company.as_deref(),
            loads: loads.iter().map(load).collect(),
        }
    }
}
