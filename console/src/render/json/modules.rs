//! `.dump Module -json`.

use std::io::{self, Write};

use handlescope_model::tables::{Module, ModuleLoad};
use serde::Serialize;

use super::{Array, Hex, NoMatchJson, first_no_match};
use crate::query::{LoadedModule, ModuleAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn modules(
    answers: &[ModuleAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = || {
        super::rows(answers, parts).filter_map(|(answer, row)| {
            let LoadedModule { module, loads } = answer.modules.get(row)?;
            let loads = Array(|| loads.iter().map(LoadJson::new));
            Some(ModuleJson { file: answer.index, module, loads })
        })
    };
    let no_match = answers.iter().map(|answer| (answer.index, answer.no_match.as_ref()));
    super::write(&Document { modules: Array(rows), no_match: first_no_match(no_match) }, mode, out)
}

#[derive(Serialize)]
struct Document<'a, T> {
    modules: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_match: Option<NoMatchJson<'a>>,
}

#[derive(Serialize)]
struct ModuleJson<'a, L> {
    file: usize,
    #[serde(flatten)]
    module: &'a Module,
    loads: L,
}

#[derive(Serialize)]
struct LoadJson {
    pid: u32,
    base: Option<Hex>,
    load_ns: Option<i64>,
    unload_ns: Option<i64>,
}

impl LoadJson {
    fn new(load: &ModuleLoad) -> Self {
        let ModuleLoad { pid, base, load_ns, unload_ns, .. } = *load;
        Self { pid, base: base.map(Hex), load_ns, unload_ns }
    }
}
