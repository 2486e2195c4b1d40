//! Frames that cannot be compared: places without names in different builds.

use std::collections::HashMap;

use handlescope_model::StackIdx;
use handlescope_model::tables::TraceInfo;
use handlescope_symbols::ModuleIdentity;

use crate::acquired::AcquisitionGroups;
use crate::frame_names::NamedFrames;
use crate::frame_view::FrameView;
use crate::tables::ProcessInfo;

/// Modules with frames that cannot be compared, by name in lower case.
#[derive(Default)]
pub struct Builds(HashMap<String, CoarseModule>);

/// A module with frames that cannot be compared.
struct CoarseModule {
    name: String,
    /// Whether none can, because only one of the traces has function names. Otherwise builds differ, and functions can
    /// be compared.
    is_named_once: bool,
}

/// A stack in the form that is compared.
#[derive(Default)]
pub struct StackText {
    /// Functions and places, innermost first.
    pub names: String,
    /// Addresses of its unknown code, innermost first.
    pub addresses: Vec<u64>,
}

/// What the stacks of a trace show of a module.
#[derive(Default)]
struct InStacks<'f> {
    name: &'f str,
    builds: Vec<&'f ModuleIdentity>,
    has_names: bool,
    has_places: bool,
}

impl Builds {
    /// Compares the modules in the stacks of leaks in two traces. The names of their frames must have been looked up.
    pub fn new([before, after]: [&AcquisitionGroups<'_>; 2]) -> Self {
        let Some((old, new)) = before.frames.zip(after.frames) else { return Self::default() };
        let (old, new) = (old.named(), new.named());
        let (before, after) = (modules(&old, before), modules(&new, after));
        let coarse = before.into_iter().filter_map(|(module, before)| {
            let after = after.get(&module)?;
            let has_places = before.has_places || after.has_places;
            let is_named_once = before.has_names != after.has_names;
            let is_coarse = has_places && (is_named_once || before.differs_from(after));
            is_coarse
                .then(|| (module, CoarseModule { name: before.name.to_owned(), is_named_once }))
        });
        Self(coarse.collect())
    }

    /// Returns the names of the modules, in order.
    pub fn into_names(self) -> Vec<String> {
        let mut names: Vec<String> = self.0.into_values().map(|module| module.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the module to compare in place of a frame that cannot be compared.
    pub fn module<'f>(&self, frame: &FrameView<'f>) -> Option<&'f str> {
        if self.0.is_empty() || frame.method.is_some() {
            return None;
        }
        let module = frame.module?;
        let is_place = frame.name.is_none() && module.rva.is_some();
        let coarse = self.0.get(&module.name.to_lowercase())?;
        (coarse.is_named_once || is_place).then_some(module.name)
    }

    /// Returns the text of a stack for comparison. Adjacent frames of a module that is compared only by name become
    /// one, because builds inline functions differently.
    pub fn text(&self, named: &NamedFrames<'_>, stack: StackIdx) -> StackText {
        let mut text = StackText::default();
        let mut last = None;
        for frame in named.stack(stack) {
            let module = self.module(&frame);
            if module.is_some() && module == last {
                continue;
            }
            last = module;
            match module {
                Some(module) => text.names.push_str(module),
                None => text.names.push_str(&frame.to_string()),
            }
            text.names.push('\n');
            text.addresses.extend(frame.identity().address());
        }
        text
    }
}

impl InStacks<'_> {
    /// Whether one of the traces has a build that the other lacks.
    fn differs_from(&self, other: &Self) -> bool {
        let lacks = |module: &Self, other: &Self| {
            module.builds.iter().any(|build| other.builds.iter().all(|known| differ(build, known)))
        };
        lacks(self, other) || lacks(other, self)
    }
}

/// Whether two modules are known to be different builds: by PDB identity, or else by time stamp and size.
fn differ(module: &ModuleIdentity, other: &ModuleIdentity) -> bool {
    if let Some((module, other)) = module.pdb.as_ref().zip(other.pdb.as_ref()) {
        return (&module.guid, module.age) != (&other.guid, other.age);
    }
    // Rundowns of user-mode modules have time stamp 0.
    let stamp = |module: &ModuleIdentity| module.timestamp.filter(|stamp| *stamp != 0);
    match stamp(module).zip(stamp(other)) {
        Some((old, new)) => (old, module.size) != (new, other.size),
        None => module.size != 0 && other.size != 0 && module.size != other.size,
    }
}

/// Collects the modules in the stacks of leaks, by name in lower case.
fn modules<'f>(
    named: &'f NamedFrames<'f>,
    trace: &AcquisitionGroups<'_>,
) -> HashMap<String, InStacks<'f>> {
    let leaks = trace.groups.iter().filter(|group| trace.leaks_in_time(group));
    let stacks = leaks.filter_map(|group| group.create_stack);
    let mut modules: HashMap<String, InStacks<'f>> = HashMap::new();
    for frame in stacks.flat_map(|stack| named.stack(stack)) {
        let Some(module) = frame.module.filter(|_| frame.method.is_none()) else { continue };
        let Some(identity) = named.frames().identity(module.row) else { continue };
        let occurrences = modules.entry(module.name.to_lowercase()).or_default();
        occurrences.name = module.name;
        if !occurrences.builds.iter().any(|known| std::ptr::eq(*known, identity)) {
            occurrences.builds.push(identity);
        }
        occurrences.has_names |= frame.name.is_some();
        occurrences.has_places |= frame.name.is_none() && module.rva.is_some();
    }
    modules
}

/// Returns the life of a process in one of two traces as text. It is equal in both traces only for a process that both
/// show.
pub fn life(
    [before, after]: [&TraceInfo; 2],
    side: usize,
    process: &ProcessInfo,
    knows_modules: bool,
) -> String {
    let name = process.name.to_lowercase();
    // In dumps and text, only the id tells which process it is.
    if !before.has_clock() && !after.has_clock() {
        return format!("{name} {}", process.pid);
    }
    let started = |info: &TraceInfo| info.session_start_filetime;
    if started(before) == started(after) {
        return format!("{name} {} {:?}", process.pid, process.start_ns);
    }
    let is_same_boot = before.boot_filetime.is_some()
        && before.boot_filetime == after.boot_filetime
        && before.computer == after.computer;
    let is_earlier = (started(before) < started(after)) == (side == 0);
    let lives_in_both =
        if is_earlier { process.end_ns.is_none() } else { process.start_ns.is_none() };
    // Without its modules, the code may be shared by all processes since boot.
    if !knows_modules {
        return if is_same_boot { String::new() } else { format!("trace {side}") };
    }
    if is_same_boot && lives_in_both {
        return format!("{name} {}", process.pid);
    }
    format!("{name} {} {:?} in trace {side}", process.pid, process.start_ns)
}

#[cfg(test)]
mod tests {
    use handlescope_symbols::PdbIdentity;

    use super::*;

    fn module(timestamp: Option<u32>, size: u64) -> ModuleIdentity {
        ModuleIdentity { name: "a.dll".to_owned(), path: String::new(), size, timestamp, pdb: None }
    }

    #[test]
    fn builds_differ_by_what_is_known_of_both() {
        assert!(differ(&module(Some(1), 10), &module(Some(2), 10)));
        assert!(!differ(&module(Some(1), 10), &module(Some(1), 10)));
        assert!(differ(&module(Some(0), 10), &module(Some(2), 11)), "by the size");
        assert!(!differ(&module(None, 10), &module(Some(2), 10)), "nothing is known");
        assert!(!differ(&module(None, 0), &module(None, 11)));
    }

    #[test]
    fn the_pdb_of_both_says_more_than_the_time_stamp() {
        let linked = |guid: u128, age, timestamp| {
            let guid = format!("{guid:032x}").parse().expect("a GUID");
            let pdb = PdbIdentity { name: "a.pdb".to_owned(), guid, age };
            ModuleIdentity { pdb: Some(pdb), ..module(Some(timestamp), 10) }
        };
        assert!(!differ(&linked(1, 1, 1), &linked(1, 1, 2)));
        assert!(differ(&linked(1, 1, 1), &linked(2, 1, 1)));
        assert!(differ(&linked(1, 1, 1), &linked(1, 2, 1)));
        assert!(!differ(&linked(1, 1, 1), &module(Some(1), 10)), "by the time stamp");
    }
}
