//! `.dump Module`: the modules of a trace and where they were mapped.

use std::borrow::Cow;
use std::collections::BTreeSet;

use handlescope_model::tables::{Module, ModuleLoad, ModuleLoads, Modules};
use handlescope_model::{ProcessIdx, TableRows};

use super::context::Source;
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::list_answer::{FilteredList, ListAnswer, list_answers};
use super::no_match::ListSubject;
use super::tables::{ProcessInfo, ProcessList};
use super::volumes::Volumes;
use crate::criteria::ModuleCriteria;
use handlescope_session::cancel::{Cancel, Poll};
use handlescope_session::filter::Filter;

/// Name and pid of the process that counts as the loader of kernel modules. They belong to every process, but a filter
/// for one program is not meant to match them.
const KERNEL: (&str, u32) = ("System", 4);

/// What `.dump Module` and `.dump Version` say about one trace.
pub type ModuleAnswer<'a> = ListAnswer<'a, ModuleList>;

/// The modules of one trace.
pub struct ModuleList {
    /// Modules that passed, sorted by name (ignoring case) and then by path.
    pub modules: Vec<LoadedModule>,
    /// Total number of modules.
    pub total: usize,
    /// The processes of the trace.
    pub processes: ProcessList,
    /// Drive letters of the trace.
    pub volumes: Volumes,
}

/// A module and its mappings.
pub struct LoadedModule {
    pub module: Module,
    /// Loads of the module, in the order of the table.
    pub loads: Vec<ModuleLoad>,
}

/// A process that mapped a module, or the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loader {
    /// The kernel, for every process.
    Kernel,
    /// A process of the table.
    Process {
        /// Process id, by which loaders are sorted.
        pid: u32,
        row: ProcessIdx,
    },
    /// A process of which only the id is known.
    Unknown(u32),
}

impl LoadedModule {
    /// Returns the loaders of the module, each once: the kernel first, then processes by id.
    pub fn loaders(&self) -> Vec<Loader> {
        let loaders: BTreeSet<Loader> = self
            .loads
            .iter()
            .map(|load| match load.process {
                _ if load.pid == 0 => Loader::Kernel,
                Some(row) => Loader::Process { pid: load.pid, row },
                None => Loader::Unknown(load.pid),
            })
            .collect();
        loaders.into_iter().collect()
    }
}

/// Answers `.dump Module`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn modules<'a>(
    sources: &[Source<'a>],
    args: &ModuleCriteria,
    cancel: &Cancel,
) -> Result<Vec<ModuleAnswer<'a>>, QueryError> {
    list_answers(sources, args, |source, args| {
        cancel.check()?;
        let trace = source.trace;
        let mut modules: Vec<LoadedModule> = Modules::read(trace)?
            .rows()
            .map(|module| LoadedModule { module, loads: Vec::new() })
            .collect();
        let processes = ProcessList::load(trace)?;
        let volumes = Volumes::load(trace)?;
        let mut poll = Poll::new(cancel);
        for load in ModuleLoads::read(trace)?.rows() {
            poll.round()?;
            if let Some(module) = modules.get_mut(load.module.row()) {
                module.loads.push(load);
            }
        }
        let total = modules.len();
        let mut survivors = Survivors::new(total);
        for (criterion, part) in args.loaders.parts() {
            survivors.keep(criterion, &Some(part), &mut modules, |part, module| {
                module.loads.retain(|load| part.matches(&loader(load, &processes), false));
                !module.loads.is_empty()
            });
        }
        survivors.keep(Criterion::Dll, &args.name, &mut modules, |filter, loaded| {
            filter.matches(&loaded.module.name)
        });
        survivors.keep(Criterion::VersionFilter, &args.version, &mut modules, |filter, loaded| {
            is_version(filter, &loaded.module, &volumes)
        });
        modules.sort_by_cached_key(|LoadedModule { module, .. }| {
            (module.name.to_lowercase(), module.path.clone())
        });
        Ok((ModuleList { modules, total, processes, volumes }, survivors))
    })
}

impl FilteredList for ModuleList {
    const SUBJECT: ListSubject = ListSubject::Module;

    /// Returns the names of modules or of the processes that loaded them.
    fn names(&self, criterion: Criterion) -> BTreeSet<String> {
        let modules = self.modules.iter();
        match criterion {
            Criterion::Dll => modules.map(|loaded| loaded.module.name.clone()).collect(),
            Criterion::Process => modules
                .flat_map(|loaded| &loaded.loads)
                .map(|load| {
                    loader(load, &self.processes).known_name().unwrap_or_default().to_owned()
                })
                .collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// Returns the process that counts as the loader of a module.
fn loader<'p>(load: &ModuleLoad, processes: &'p ProcessList) -> Cow<'p, ProcessInfo> {
    match load.process {
        _ if load.pid == 0 => {
            let (name, pid) = (KERNEL.0.to_owned(), KERNEL.1);
            Cow::Owned(ProcessInfo { name, pid, ..ProcessInfo::default() })
        }
        Some(row) => Cow::Borrowed(processes.get(row)),
        None => Cow::Owned(ProcessInfo { pid: load.pid, ..ProcessInfo::default() }),
    }
}

/// Whether a filter matches a module's path or one of its version texts, each separately or all in one line.
fn is_version(filter: &Filter, module: &Module, volumes: &Volumes) -> bool {
    let Module { path, file_version, product_name, description, company, .. } = module;
    let shown_path = volumes.shown(path);
    let texts = [file_version, product_name, description, company];
    let texts = texts.into_iter().filter_map(|text| text.as_deref());
    let texts: Vec<&str> = [path, &*shown_path].into_iter().chain(texts).collect();
    let line = texts[1..].join(" ");
    filter.matches_lines(texts.into_iter().chain([line.as_str()]))
}
