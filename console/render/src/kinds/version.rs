//! `.dump Version`: versions of modules, and the processes that run them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    rc::Rc,
};

use super::{
    index,
    module::{NAME, PATH, PIDS, VERSION, modules, path_shown, pids},
};
use crate::{
    table::{AnswerTable, Columns, FileRows},
    text::ProcessStyle,
};
use handlescope_model::tables::Module;
use handlescope_query::{LoadedModule, Loader, ModuleAnswer};
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

pub struct VersionRow<'a> {
    answer: &'a ModuleAnswer<'a>,
    loaded: &'a LoadedModule,
    /// Number of the group; its rows have the same processes.
    group: u32,
    loaded_by: Rc<str>,
}

impl<'a> VersionRow<'a> {
    fn module(&self) -> &'a Module {
        &self.loaded.module
    }
}

/// Declares the columns of a module's version.
pub fn version_columns<'a>() -> Columns<'a, VersionRow<'a>> {
    let mut columns = Columns::<VersionRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.answer.index));
    columns.add("name", NAME, |row| row.module().name.as_str()).title("Name");
    columns
        .add("file_version", VERSION, |row| row.module().file_version.as_deref())
        .title("Version");
    columns
        .add("product_name", VERSION, |row| row.module().product_name.as_deref())
        .title("Product");
    columns
        .add("description", VERSION, |row| row.module().description.as_deref())
        .title("Description");
    let path = columns.add("path", PATH, |row| row.module().path.as_str());
    path.title("Path").texts(|row| path_shown(row.answer, row.loaded));
    columns.add("pids", PIDS, |row| pids(row.loaded));
    columns
        .add("loaded_by", "names of the processes that loaded it", |row| row.loaded_by.to_string())
        .title("Loaded by")
        .text_only();
    columns
}

/// Returns a row for each module. Modules loaded by the same processes are listed together, below the names of these
/// processes. JSON has everything known about these modules.
///
/// # Errors
/// None that a caller could do anything about.
pub fn versions<'a>(
    answers: &'a [ModuleAnswer<'a>],
    format: Format,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let rows: Vec<VersionRow<'_>> =
        answers.iter().flat_map(|answer| rows(answer, display)).collect();
    let file_rows = answers.iter().map(|answer| {
        let (count, total) = (answer.list.modules.len(), answer.list.total);
        FileRows::new(answer.path, count)
            .below(format!("Selected {count}/{total} of all loaded modules"))
    });
    let groups = rows.iter().map(|row| row.group).collect();
    let table = AnswerTable::new(version_columns(), rows, file_rows)?.grouped(groups);
    match format {
        Format::Json(_) => Ok(table.with_document_of(modules(answers)?)),
        _ => Ok(table),
    }
}

/// Returns the modules of a file, each with its group.
fn rows<'a>(
    answer: &'a ModuleAnswer<'a>,
    display: &Display,
) -> impl Iterator<Item = VersionRow<'a>> {
    let loaders: BTreeSet<Vec<Loader>> =
        answer.list.modules.iter().map(LoadedModule::loaders).collect();
    let groups = loaders.into_iter().enumerate().map(|(group, loaders)| {
        let names = Rc::from(names(answer, &loaders, display));
        (loaders, (index(group), names))
    });
    let groups: BTreeMap<_, _> = groups.collect();
    answer.list.modules.iter().map(move |loaded| {
        let (group, loaded_by) = groups.get(&loaded.loaders()).cloned().unwrap_or_default();
        VersionRow { answer, loaded, group, loaded_by }
    })
}

fn names(answer: &ModuleAnswer<'_>, loaders: &[Loader], display: &Display) -> String {
    if loaders.is_empty() {
        return "not mapped".to_owned();
    }
    let style = ProcessStyle::new(&answer.info, display);
    loaders
        .iter()
        .map(|loader| match *loader {
            Loader::Kernel => "kernel".to_owned(),
            Loader::Process { row, .. } => style.marked(answer.list.processes.get(row)),
            Loader::Unknown(pid) => format!("pid {pid}"),
        })
        .collect::<Vec<_>>()
        .join(", ")
}
