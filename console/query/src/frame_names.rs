//! Names of the frames of a trace: resolved late and in batches, and cached.

use std::collections::{BTreeMap, HashSet};
use std::ops::AddAssign;
use std::sync::{Arc, OnceLock};

use handlescope_model::tables::{
    Frames as FramesTable, Module, ModuleLoads, Modules, Stacks, TraceInfos,
};
use handlescope_model::{
    ArchiveError, FrameIdx, Lists, MethodIdx, ModuleIdx, Numbers, ProcessIdx, StackIdx, Table,
    TableRows, Trace,
};
use handlescope_symbols::{CodeAddress, FrameChain, ModuleIdentity, ModuleReport, PdbIdentity};

use rayon::prelude::*;

use super::frame_class::FrameClass;
use super::frame_view::ManagedMethod;
use super::frame_view::{FrameView, InModule};
use super::program_frames::representative;
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::filter::SystemModules;
use handlescope_session::trace::{CachedFrameNames, FrameNameCache, StoredNames};

/// Number of stacks with frames that one thread marks at a time.
const STACKS_AT_ONCE: usize = 1 << 16;

/// Source of function names, and how the search for them went.
pub trait FrameNames: Sync {
    /// Returns the functions at relative addresses of modules, in the order of the requests. Addresses must ascend.
    /// Requests that are cancelled get no names.
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<CodeAddress>)]) -> Vec<Vec<FrameChain>>;

    /// Returns reports on every module requested in this session.
    fn reports(&self) -> Vec<ModuleReport> {
        Vec::new()
    }
}

/// The frames of a trace.
pub struct Frames<'a> {
    pub stacks: Lists<FrameIdx>,
    module: Numbers<ModuleIdx>,
    rva: Numbers<u64>,
    address: Numbers<u64>,
    method: Numbers<MethodIdx>,
    /// Whether calls return to the frame, by row. Such a frame is further out in at least one stack, whereas an
    /// innermost frame may be an instruction pointer.
    is_return: OnceLock<Vec<bool>>,
    modules: Vec<ModuleIdentity>,
    /// Classes of frames by module row.
    classes: Vec<FrameClass>,
    methods: Vec<ManagedMethod>,
    names: &'a dyn FrameNames,
    pub name_cache: &'a FrameNameCache,
    stored: &'a StoredNames,
    /// Pointer size of the recording system in bytes.
    pointer_size: u32,
    /// Whether the trace has the modules of a process, by process row.
    knows_modules: Vec<bool>,
    cancel: &'a Cancel,
}

impl<'a> Frames<'a> {
    pub fn load(
        trace: &Trace,
        names: &'a dyn FrameNames,
        name_cache: &'a FrameNameCache,
        system: &SystemModules,
        cancel: &'a Cancel,
    ) -> Result<Self, ArchiveError> {
        let modules = module_identities(trace)?;
        Ok(Self {
            stacks: trace.values(Stacks::frames)?,
            module: trace.values(FramesTable::module)?,
            rva: trace.values(FramesTable::rva)?,
            address: trace.values(FramesTable::address)?,
            method: trace.values(FramesTable::method)?,
            classes: modules.iter().map(|it| FrameClass::from_module(it, system)).collect(),
            modules,
            methods: ManagedMethod::load_all(trace)?,
            pointer_size: trace.values(TraceInfos::pointer_size)?.get(0).unwrap_or_default(),
            knows_modules: processes_with_module(trace, |_| true)?,
            ..Self::none(trace, names, name_cache, cancel)?
        })
    }

    /// Makes empty frames for queries without stacks: frames may be most of an archive.
    pub fn none(
        trace: &Trace,
        names: &'a dyn FrameNames,
        name_cache: &'a FrameNameCache,
        cancel: &'a Cancel,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            stacks: Lists::default(),
            module: Numbers::default(),
            rva: Numbers::default(),
            address: Numbers::default(),
            method: Numbers::default(),
            is_return: OnceLock::new(),
            modules: Vec::new(),
            classes: Vec::new(),
            methods: Vec::new(),
            names,
            name_cache,
            stored: name_cache.load(trace)?,
            pointer_size: 0,
            knows_modules: Vec::new(),
            cancel,
        })
    }

    /// Finds all unknown names of the frames of some stacks. All modules are requested at once, so that symbols can be
    /// fetched in parallel. Addresses ascend, so that each symbol file is read in one direction.
    ///
    /// If it is cancelled, the names found so far are kept, and the rest can be requested again.
    pub fn resolve(&self, stacks: impl Iterator<Item = StackIdx>) -> Result<(), Cancelled> {
        self.resolve_marked(&self.marked(&stacks.collect::<Vec<_>>(), 0))
    }

    /// Like [`resolve`](Self::resolve), for [marked](Self::marked) frames.
    pub fn resolve_marked(&self, is_needed: &[bool]) -> Result<(), Cancelled> {
        let needed = is_needed.iter().enumerate().filter(|(_, is_needed)| **is_needed);
        self.resolve_frames(needed.map(|(row, _)| FrameIdx::from_row(row)))
    }

    /// Returns by row whether any of the stacks has a frame, ignoring the `without` innermost frames of each.
    pub fn marked(&self, stacks: &[StackIdx], without: usize) -> Vec<bool> {
        let parts = stacks.par_chunks(STACKS_AT_ONCE).map(|stacks| {
            let mut marks = vec![false; self.height()];
            for frame in stacks.iter().flat_map(|it| self.stacks.get(it.row()).skip(without)) {
                if let Some(mark) = marks.get_mut(frame.row()) {
                    *mark = true;
                }
            }
            marks
        });
        let united = |mut marks: Vec<bool>, others: Vec<bool>| {
            marks.iter_mut().zip(others).for_each(|(mark, other)| *mark |= other);
            marks
        };
        parts.reduce_with(united).unwrap_or_else(|| vec![false; self.height()])
    }

    /// Finds the name of the representative frame of each stack, otherwise like [`Self::resolve`].
    ///
    /// Some functions in a module of the program are not the program's. If the first one turns out to be one of these,
    /// the next is looked up.
    pub fn resolve_representative(
        &self,
        stacks: impl Iterator<Item = StackIdx>,
    ) -> Result<(), Cancelled> {
        let mut rest: Vec<StackIdx> = stacks.collect();
        while !rest.is_empty() {
            let mut unnamed = Vec::new();
            let named = self.named();
            rest.retain(|stack| {
                let before = unnamed.len();
                unnamed.extend(named.unnamed_candidates(*stack));
                unnamed.len() > before
            });
            drop(named);
            self.resolve_frames(unnamed.into_iter())?;
        }
        Ok(())
    }

    /// Returns the identity of a module's file.
    pub fn identity(&self, module: ModuleIdx) -> Option<&ModuleIdentity> {
        self.modules.get(module.row())
    }

    /// Returns whether calls return to each frame, by row.
    fn is_return(&self) -> &[bool] {
        self.is_return.get_or_init(|| {
            let stacks: Vec<StackIdx> = (0..self.stacks.len()).map(StackIdx::from_row).collect();
            self.marked(&stacks, 1)
        })
    }

    /// Returns the number of rows of the frames table.
    pub fn height(&self) -> usize {
        self.module.len()
    }

    /// Whether an address belongs to the kernel and so is the same in every process: the top bit of the pointer is set.
    fn is_of_kernel(&self, address: u64) -> bool {
        let bits = if self.pointer_size == 4 { u32::BITS } else { u64::BITS };
        address >> (bits - 1) & 1 == 1
    }

    /// Returns a process if code outside its modules is its own, because the trace has its modules: such code was made
    /// at run time. Otherwise it may be in a module that processes share.
    pub fn owner_of_code(&self, process: Option<ProcessIdx>) -> Option<ProcessIdx> {
        process.filter(|process| self.knows_modules.get(process.row()) == Some(&true))
    }

    /// Returns the class of frames in a module.
    fn class(&self, module: ModuleIdx) -> FrameClass {
        self.classes.get(module.row()).copied().unwrap_or(FrameClass::Program)
    }

    /// Finds the names of all frames in matching modules, whatever stacks they are in. Returns the numbers of frames
    /// and of those with a name, by module.
    pub fn resolve_modules(
        &self,
        passes: impl Fn(&ModuleIdentity) -> bool,
    ) -> Result<BTreeMap<ModuleIdx, (usize, usize)>, Cancelled> {
        let passes: Vec<bool> = self.modules.iter().map(passes).collect();
        let requested: Vec<(ModuleIdx, FrameIdx)> = (0..self.module.len())
            .map(FrameIdx::from_row)
            .filter_map(|frame| {
                let (module, _) = self.location(frame)?;
                passes.get(module.row()).copied().unwrap_or_default().then_some((module, frame))
            })
            .collect();
        self.resolve_frames(requested.iter().map(|&(_, frame)| frame))?;
        let memory = self.name_cache.known();
        let mut counts: BTreeMap<ModuleIdx, (usize, usize)> = BTreeMap::new();
        for (module, frame) in requested {
            let (frames, named) = counts.entry(module).or_default();
            *frames += 1;
            *named += usize::from(memory.get(frame).is_some_and(|chain| !chain.is_empty()));
        }
        Ok(counts)
    }

    /// Returns module and relative address of a frame, if its name must come from symbols. `None` also for a module
    /// that is missing, as in a damaged archive.
    pub fn location(&self, frame: FrameIdx) -> Option<(ModuleIdx, u64)> {
        let row = frame.row();
        self.module
            .get(row)
            .zip(self.rva.get(row))
            .filter(|(module, _)| self.identity(*module).is_some())
            .filter(|_| self.method.get(row).is_none())
    }

    /// Returns the distinct frames of some stacks, in the order of their first stacks; stacks share most frames.
    pub fn distinct(&self, stacks: impl Iterator<Item = StackIdx>) -> Vec<FrameIdx> {
        let mut is_new = vec![true; self.height()];
        stacks
            .flat_map(|stack| self.stacks.get(stack.row()))
            .filter(|frame| {
                is_new.get_mut(frame.row()).is_some_and(|is_new| std::mem::replace(is_new, false))
            })
            .collect()
    }

    /// Finds the names of some frames, like [`Self::resolve`].
    pub fn resolve_frames(&self, frames: impl Iterator<Item = FrameIdx>) -> Result<(), Cancelled> {
        let memory = self.name_cache.known();
        let mut requested: BTreeMap<ModuleIdx, Vec<(u64, FrameIdx)>> = BTreeMap::new();
        for frame in frames {
            if let Some((module, rva)) = self.location(frame)
                && memory.get(frame).is_none()
            {
                requested.entry(module).or_default().push((rva, frame));
            }
        }
        if requested.is_empty() {
            return Ok(());
        }
        self.cancel.check()?;
        let is_return = self.is_return();
        let requests: Vec<(ModuleIdentity, Vec<CodeAddress>)> = requested
            .iter_mut()
            .filter_map(|(module, frames)| {
                frames.sort_unstable();
                frames.dedup();
                let addresses = frames.iter().map(|&(rva, frame)| CodeAddress {
                    rva,
                    is_return: is_return.get(frame.row()).copied().unwrap_or_default(),
                });
                Some((self.identity(*module)?.clone(), addresses.collect()))
            })
            .collect();
        // Without this reference, names are added without a copy.
        drop(memory);
        let names = self.names.resolve(&requests);
        let mut chains = Vec::new();
        let cancelled = self.cancel.check();
        for (((module, _), frames), names) in requests.iter().zip(requested.values()).zip(names) {
            for (&(_, frame), mut chain) in frames.iter().zip(names) {
                // A frame without a name may not have been reached before the cancellation.
                if chain.is_empty() && cancelled.is_err() {
                    continue;
                }
                let stored = self.stored.get(&frame);
                if let Some(stored) = stored.filter(|stored| is_better(stored, &chain)) {
                    chain = stored.clone();
                    self.name_cache.note_served(module);
                }
                chains.push((frame, chain));
            }
        }
        self.name_cache.add(chains);
        cancelled
    }

    /// Returns the stats of the frames of stacks, each with how often it counts.
    pub fn stats(&self, stacks: impl Iterator<Item = (StackIdx, u64)>) -> FrameStats {
        let mut stats = FrameStats::default();
        for (stack, count) in stacks {
            for row in self.stacks.get(stack.row()).map(FrameIdx::row) {
                stats.frames_total += count;
                if self.module.get(row).is_some() {
                    stats.frames_in_modules += count;
                } else if self.method.get(row).is_some() {
                    stats.frames_managed += count;
                } else {
                    stats.frames_unknown += count;
                }
            }
        }
        stats
    }

    /// Returns the managed method of a frame; needs no symbols.
    fn method(&self, row: usize) -> Option<&ManagedMethod> {
        self.methods.get(self.method.get(row)?.row())
    }

    /// Returns a view with the names found so far.
    pub fn named(&self) -> NamedFrames<'_> {
        NamedFrames { frames: self, memory: self.name_cache.known() }
    }

    /// Returns a view with only the names that came with the trace, as if there were no symbols.
    pub fn unnamed(&self) -> NamedFrames<'_> {
        NamedFrames { frames: self, memory: Arc::default() }
    }
}

/// Number of frames of each kind, counted as often as their stacks were recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameStats {
    pub frames_total: u64,
    /// Frames in an image.
    pub frames_in_modules: u64,
    /// Frames in a managed method but in no image.
    pub frames_managed: u64,
    /// The others.
    pub frames_unknown: u64,
}

impl AddAssign for FrameStats {
    fn add_assign(&mut self, other: Self) {
        self.frames_total += other.frames_total;
        self.frames_in_modules += other.frames_in_modules;
        self.frames_managed += other.frames_managed;
        self.frames_unknown += other.frames_unknown;
    }
}

/// Whether the names of an extract say more than those of a symbol file.
fn is_better(stored: &FrameChain, resolved: &FrameChain) -> bool {
    let has_lines = |chain: &FrameChain| chain.iter().any(|named| named.line.is_some());
    resolved.is_empty() || (has_lines(stored) && !has_lines(resolved))
}

pub struct NamedFrames<'a> {
    frames: &'a Frames<'a>,
    memory: Arc<CachedFrameNames>,
}

impl NamedFrames<'_> {
    /// Returns the frames of a stack, innermost first.
    pub fn stack(&self, stack: StackIdx) -> impl Iterator<Item = FrameView<'_>> {
        let frames = self.frames.stacks.get(stack.row());
        frames.flat_map(|frame| self.frames_at(frame))
    }

    /// Whether a frame is unknown code of a program: its address means this code in one process only.
    pub fn is_of_one_process(&self, frame: FrameIdx) -> bool {
        self.frames_at(frame)
            .filter_map(|view| view.identity().address())
            .any(|address| !self.frames.is_of_kernel(address))
    }

    /// Whether a stack contains such code.
    pub fn is_stack_of_one_process(&self, stack: StackIdx) -> bool {
        self.frames.stacks.get(stack.row()).any(|frame| self.is_of_one_process(frame))
    }

    /// Returns the frames without their names.
    pub fn frames(&self) -> &Frames<'_> {
        self.frames
    }

    /// Returns the most informative frame of a stack: the innermost one of the program, if there is any.
    pub fn representative(&self, stack: StackIdx) -> Option<FrameView<'_>> {
        representative(self.stack(stack))
    }

    /// Returns the frames without a name yet that decide which frame is representative: the innermost one that may be
    /// the program's, or all if there is none.
    fn unnamed_candidates(&self, stack: StackIdx) -> impl Iterator<Item = FrameIdx> {
        let is_of_program = |frame: &FrameIdx| {
            self.frames_at(*frame).any(|view| view.class() == FrameClass::Program)
        };
        let frames = || self.frames.stacks.get(stack.row());
        let first = frames().find(is_of_program);
        let others = first.is_none().then(frames).into_iter().flatten();
        let is_unnamed = |frame: &FrameIdx| {
            self.frames.location(*frame).is_some() && self.memory.get(*frame).is_none()
        };
        first.into_iter().chain(others).filter(is_unnamed)
    }

    /// Returns the modules in which none of these frames has a name, in the order of the frames.
    pub fn without_names(&self, frames: &[FrameIdx]) -> Vec<String> {
        let module = |frame: &FrameIdx| self.frames.location(*frame).map(|(module, _)| module);
        let is_named = |frame: &&FrameIdx| {
            self.memory.get(**frame).is_some_and(|chain| !chain.is_empty())
                || self.frames.stored.get(*frame).is_some()
        };
        let mut known: HashSet<ModuleIdx> =
            frames.iter().filter(is_named).filter_map(module).collect();
        let unnamed = frames.iter().filter_map(module).filter(|module| known.insert(*module));
        unnamed
            .filter_map(|module| self.frames.identity(module))
            .map(|module| module.name.clone())
            .collect()
    }

    /// Returns all frames with names: those from symbols, or else those from the extract.
    pub fn all(&self) -> BTreeMap<FrameIdx, &FrameChain> {
        let stored = self.frames.stored.iter().map(|(&frame, chain)| (frame, chain));
        stored.chain(self.memory.iter().filter(|(_, chain)| !chain.is_empty())).collect()
    }

    /// Returns the frames that a row of the frames table stands for: the functions inlined there, then the frame
    /// itself.
    pub fn frames_at(&self, frame: FrameIdx) -> impl Iterator<Item = FrameView<'_>> {
        let row = frame.row();
        let module = self.frames.module.get(row).and_then(|module| {
            let identity = self.frames.modules.get(module.row())?;
            Some(InModule {
                row: module,
                name: &identity.name,
                rva: self.frames.rva.get(row),
                class: self.frames.class(module),
            })
        });
        let plain = FrameView {
            name: None,
            method: self.frames.method(row),
            address: self.frames.address.get(row),
            module,
        };
        let chain = self.memory.get(frame).filter(|chain| module.is_some() && !chain.is_empty());
        // A frame without offset has only the name in the extract.
        let chain = chain.or_else(|| self.frames.stored.get(&frame));
        let chain = chain.map_or(&[][..], |chain| chain);
        let named = chain.iter().map(move |name| FrameView { name: Some(name), ..plain });
        named.chain(chain.is_empty().then_some(plain))
    }
}

/// Returns whether each process loaded a module that passes, by row.
pub fn processes_with_module(
    trace: &Trace,
    passes: impl Fn(ModuleIdx) -> bool,
) -> Result<Vec<bool>, ArchiveError> {
    let module = trace.values(ModuleLoads::module)?;
    let process = trace.values(ModuleLoads::process)?;
    let mut has_module = vec![false; trace.height(Table::Processes)?];
    for load in 0..process.len() {
        let loader = process.get(load).filter(|_| module.get(load).is_some_and(&passes));
        if let Some(has_module) = loader.and_then(|row| has_module.get_mut(row.row())) {
            *has_module = true;
        }
    }
    Ok(has_module)
}

/// Returns the identities of the modules, by row.
pub fn module_identities(trace: &Trace) -> Result<Vec<ModuleIdentity>, ArchiveError> {
    let pdb = |module: &Module| {
        Some(PdbIdentity {
            name: module.pdb_name.clone()?,
            guid: module.pdb_guid.as_ref()?.parse().ok()?,
            age: module.pdb_age?,
        })
    };
    let identity = |module: Module| ModuleIdentity {
        pdb: pdb(&module),
        name: module.name,
        path: module.path,
        size: module.size,
        timestamp: module.timestamp,
    };
    Ok(Modules::read(trace)?.rows().map(identity).collect())
}
