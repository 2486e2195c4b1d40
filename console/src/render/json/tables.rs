//! `.dump Process -json` and `.dump Module -json`.

use std::io::{self, Write};

use handlescope_model::tables::{ModuleLoad, Process};
use serde::Serialize;

use super::{Array, Hex};
use crate::query::{LoadedModule, ModuleAnswer, ProcessAnswer, pretty_name};
use crate::values::JsonMode;

pub(in crate::render) fn processes(
    answers: &[ProcessAnswer<'_>],
    mode: JsonMode,
    out: &mut impl Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<T> {
        processes: T,
    }
    let rows = || {
        answers.iter().flat_map(|answer| {
            answer.processes.iter().map(move |process| ProcessJson::new(answer.index, process))
        })
    };
    super::write(&Document { processes: Array(rows) }, mode, out)
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    file: usize,
    pid: u32,
    parent_pid: u32,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pretty_name: Option<&'static str>,
    image_path: Option<&'a str>,
    command_line: &'a str,
    session_id: Option<u32>,
    sid: Option<&'a str>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    exit_code: Option<i32>,
    is_new: bool,
    has_ended: bool,
}

impl<'a> ProcessJson<'a> {
    fn new(file: usize, process: &'a Process) -> Self {
        Self {
            file,
            pid: process.pid,
            parent_pid: process.parent_pid,
            name: &process.name,
            pretty_name: pretty_name(&process.name, &process.command_line),
            image_path: process.image_path.as_deref(),
            command_line: &process.command_line,
            session_id: process.session_id,
            sid: process.sid.as_deref(),
            start_ns: process.start_ns,
            end_ns: process.end_ns,
            exit_code: process.exit_code,
            is_new: process.start_ns.is_some(),
            has_ended: process.end_ns.is_some(),
        }
    }
}

pub(in crate::render) fn modules(
    answers: &[ModuleAnswer<'_>],
    mode: JsonMode,
    out: &mut impl Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<T> {
        modules: T,
    }
    let rows = || {
        answers.iter().flat_map(|answer| {
            answer.modules.iter().map(move |module| ModuleJson::new(answer.index, module))
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
