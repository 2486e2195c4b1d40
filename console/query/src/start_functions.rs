//! The functions that threads were started with.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use handlescope_model::tables::{ModuleLoad, ModuleLoads};
use handlescope_model::{ArchiveError, ModuleIdx, TableRows, Trace};
use handlescope_symbols::{CodeAddress, ModuleIdentity};

use super::frame_class::FrameClass;
use super::frame_names::{FrameNames, module_identities};
use super::frame_view::{FrameView, InModule};

/// Loads below an address that are looked at: modules lie there at different times.
const LOADS: usize = 64;

/// A place in the code of a process at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadStart {
    /// Row of the process.
    pub process: usize,
    /// Nanoseconds since session start.
    pub time_ns: i64,
    pub address: u64,
}

/// Names the functions that threads were started with, as stack filters match them: `app.exe!Worker::run`, or
/// `app.exe+0x21F0` without symbols. `None` outside of all modules.
pub fn start_functions(
    trace: &Trace,
    names: &dyn FrameNames,
    starts: &[ThreadStart],
) -> Result<Vec<Option<String>>, ArchiveError> {
    if starts.is_empty() {
        return Ok(Vec::new());
    }
    let modules = module_identities(trace)?;
    let places = places(trace, &modules, starts)?;
    let mut wanted: BTreeMap<ModuleIdx, BTreeSet<u64>> = BTreeMap::new();
    for (module, rva) in places.iter().flatten() {
        wanted.entry(*module).or_default().insert(*rva);
    }
    let requests: Vec<(ModuleIdentity, Vec<CodeAddress>)> = wanted
        .iter()
        .filter_map(|(module, rvas)| {
            let identity = modules.get(module.row())?.clone();
            Some((identity, rvas.iter().copied().map(CodeAddress::from).collect()))
        })
        .collect();
    let chains = names.resolve(&requests);
    let chains: HashMap<(ModuleIdx, u64), _> = wanted
        .iter()
        .flat_map(|(module, rvas)| rvas.iter().map(|rva| (*module, *rva)))
        .zip(chains.into_iter().flatten())
        .collect();
    let shown = |place: Option<(ModuleIdx, u64)>| {
        let (row, rva) = place?;
        let chain = chains.get(&(row, rva));
        let module = InModule {
            row,
            name: &modules.get(row.row())?.name,
            rva: Some(rva),
            class: FrameClass::Program,
        };
        // What is inlined there stands before the function.
        let name = chain.and_then(|chain| chain.last());
        Some(FrameView { module: Some(module), name, method: None, address: None }.to_string())
    };
    Ok(places.into_iter().map(shown).collect())
}

/// The modules in which threads started, and the places in these.
fn places(
    trace: &Trace,
    modules: &[ModuleIdentity],
    starts: &[ThreadStart],
) -> Result<Vec<Option<(ModuleIdx, u64)>>, ArchiveError> {
    let mut of_process: HashMap<usize, Vec<ModuleLoad>> =
        starts.iter().map(|start| (start.process, Vec::new())).collect();
    for load in ModuleLoads::read(trace)?.rows() {
        let process = load.process.map(|process| process.row());
        if let Some(loads) = process.and_then(|process| of_process.get_mut(&process)) {
            loads.push(load);
        }
    }
    of_process.values_mut().for_each(|loads| loads.sort_by_key(|load| load.base));
    let place = |start: &ThreadStart| {
        let loads = of_process.get(&start.process)?;
        let below = loads.partition_point(|load| load.base <= Some(start.address));
        loads[..below].iter().rev().take(LOADS).find_map(|load| {
            let rva = start.address.checked_sub(load.base?)?;
            let is_there = load.load_ns.is_none_or(|load| load <= start.time_ns)
                && load.unload_ns.is_none_or(|unload| unload >= start.time_ns);
            let is_within = rva < modules.get(load.module.row())?.size;
            (is_there && is_within).then_some((load.module, rva))
        })
    };
    Ok(starts.iter().map(place).collect())
}
