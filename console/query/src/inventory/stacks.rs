//! Identities of stacks that are the same in traces of other machines and other builds.

use handlescope_model::stable_hash::identity_of;
use handlescope_model::{FrameIdx, ProcessIdx, StackIdx};
use handlescope_symbols::ModuleIdentity;
use hashbrown::HashMap;

use crate::frame_class::FrameClass;
use crate::frame_names::{Frames, NamedFrames};
use crate::frame_view::FrameView;

/// A stack as datasets identify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackIdentity {
    /// A hash of 128 bits, in hex, of the functions in the program's modules; a frame without a name contributes its
    /// place and the build of its module. A stack without such frames uses those of Windows' libraries, or else all
    /// frames. A stack with unknown code also includes its addresses and the process.
    pub id: String,
    /// The same kind of hash over all frames.
    pub frames_id: String,
    /// The most informative frame.
    pub function: String,
    pub frames: usize,
    /// Whether all frames that contribute to `id` have names.
    pub has_symbols: bool,
}

impl StackIdentity {
    /// Returns both identities.
    pub fn key(&self) -> (&str, &str) {
        (&self.id, &self.frames_id)
    }
}

/// A stack; with its process if it contains unknown code.
pub type StackOfProcess = (StackIdx, Option<ProcessIdx>);

/// Facts about a frame or a function inlined into it.
struct FunctionFacts {
    /// Text for comparison.
    text: String,
    class: FrameClass,
    has_name: bool,
    /// Whether it is unknown code, which is the same in one process only.
    is_of_one_process: bool,
}

/// Returns the identities of some stacks. The names of their frames must have been looked up; `process_id` identifies a
/// process across all traces.
pub fn identities(
    frames: &Frames<'_>,
    stacks: impl Iterator<Item = StackOfProcess>,
    trace_id: &str,
    process_id: impl Fn(ProcessIdx) -> String,
) -> Vec<(StackOfProcess, StackIdentity)> {
    let named = frames.named();
    // Stacks share most of their frames.
    let mut known: HashMap<FrameIdx, Vec<FunctionFacts>> = HashMap::new();
    stacks
        .map(|(stack, process_row)| {
            let rows = || frames.stacks.get(stack.row());
            for frame in rows() {
                known.entry(frame).or_insert_with(|| facts(&named, frame));
            }
            let facts: Vec<&FunctionFacts> =
                rows().filter_map(|frame| known.get(&frame)).flatten().collect();
            let function = named.representative(stack).map(|view| view.to_string());
            let process = process_row.map_or_else(|| trace_id.to_owned(), &process_id);
            ((stack, process_row), identity(&facts, &process, function.unwrap_or_default()))
        })
        .collect()
}

fn facts(named: &NamedFrames<'_>, frame: FrameIdx) -> Vec<FunctionFacts> {
    named
        .frames_at(frame)
        .map(|view| FunctionFacts {
            text: compared(named, &view),
            class: view.class(),
            has_name: view.function().is_some(),
            is_of_one_process: named.is_of_one_process(frame),
        })
        .collect()
}

fn identity(facts: &[&FunctionFacts], process: &str, function: String) -> StackIdentity {
    let best = facts.iter().map(|facts| facts.class).min();
    let chosen = best.filter(|best| *best <= FrameClass::Windows);
    let of_program = || {
        let is_chosen = |facts: &&&FunctionFacts| {
            facts.is_of_one_process || chosen.is_none_or(|class| facts.class == class)
        };
        facts.iter().filter(is_chosen)
    };
    // Without unknown code, a stack is the same in every process.
    let process = facts.iter().any(|facts| facts.is_of_one_process).then_some(process.as_bytes());
    StackIdentity {
        id: identity_of(of_program().map(|facts| facts.text.as_bytes()).chain(process)),
        frames_id: identity_of(facts.iter().map(|facts| facts.text.as_bytes()).chain(process)),
        function,
        frames: facts.len(),
        has_symbols: of_program().all(|facts| facts.has_name),
    }
}

/// Returns the text of a frame for comparison. Modules are in lower case, because Windows ignores case in their names;
/// a frame without a name includes the build of its module.
fn compared(named: &NamedFrames<'_>, view: &FrameView<'_>) -> String {
    let module = view.module_name().unwrap_or_default().to_lowercase();
    if let Some(function) = view.function() {
        return format!("{module}!{function}");
    }
    if let Some(address) = view.identity().address() {
        return format!("0x{address:X}");
    }
    let Some(place) = view.module else { return view.to_string() };
    let build = named.frames().identity(place.row).and_then(build_id).unwrap_or_default();
    format!("{module}+0x{:X} {build}", place.rva.unwrap_or_default())
}

/// Returns the identity of a module's build: that of its PDB, or else its time stamp and size. Both are written as in
/// the paths of a symbol server (Microsoft, "SymStore", and `SymSrvGetFileIndexes`).
pub fn build_id(module: &ModuleIdentity) -> Option<String> {
    if let Some(pdb) = &module.pdb {
        return Some(format!("{:X}{:x}", pdb.guid.simple(), pdb.age));
    }
    // Rundowns of user-mode modules have time stamp 0.
    let timestamp = module.timestamp.filter(|timestamp| *timestamp != 0)?;
    Some(format!("{timestamp:08X}{:x}", module.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{APP, Fixture, With, create};
    use crate::inventory::Inventory;
    use handlescope_session::cancel::Cancel;

    /// Returns the identity of a stack in a trace in which `before` comes first, so that its functions have other
    /// addresses.
    fn identity_of_stack(before: &[&str], stack: &[&str], pdb_age: u32) -> StackIdentity {
        let mut fixture = Fixture::new();
        fixture.stack(before);
        let stack = fixture.stack(stack);
        for module in 0..fixture.modules.len() {
            fixture.modules.pdb_name[module] = Some("app.pdb".to_owned());
            fixture.modules.pdb_guid[module] =
                Some("11223344-5566-7788-99aa-bbccddeeff00".to_owned());
            fixture.modules.pdb_age[module] = Some(pdb_age);
        }
        fixture.event_object(vec![create(APP, 1, 4).leaked().on(stack)]);
        let saved = fixture.save();
        let (source, cancel) = (saved.source(), Cancel::default());
        let inventory = Inventory::new(&source, &saved, &cancel).unwrap();
        let stacks = inventory.stacks();
        let (_, identity) = stacks.into_iter().next().unwrap();
        identity
    }

    #[test]
    fn functions_of_the_program_are_the_identity_wherever_they_lie_and_whatever_windows_calls() {
        let stack = ["ntoskrnl.exe!ObOpen", "ntdll.dll!NtOpen", "App.exe!Open", "App.exe!main"];
        let known = identity_of_stack(&[], &stack, 1);
        assert!(known.has_symbols);
        assert_eq!((known.function.as_str(), known.frames), ("App.exe!Open", 4));
        let elsewhere = identity_of_stack(&["app.exe!new", "app.exe!newer"], &stack, 2);
        assert_eq!(elsewhere, known);
        let other_windows = ["ntdll.dll!ZwOpen", "App.exe!Open", "App.exe!main"];
        let other_windows = identity_of_stack(&[], &other_windows, 1);
        assert_eq!(other_windows.id, known.id);
        assert_ne!(other_windows.frames_id, known.frames_id);
        let other = identity_of_stack(&[], &["ntdll.dll!NtOpen", "App.exe!Open"], 1);
        assert_ne!(other.id, known.id);
    }

    #[test]
    fn a_place_without_a_name_is_that_of_one_build() {
        let stack = ["ntdll.dll!NtOpen", "app.exe+0x10", "app.exe!main"];
        let place = identity_of_stack(&[], &stack, 1);
        assert!(!place.has_symbols);
        assert_eq!(identity_of_stack(&["app.exe!new"], &stack, 1).id, place.id);
        assert_ne!(identity_of_stack(&[], &stack, 2).id, place.id, "another build");
    }

    #[test]
    fn a_stack_of_the_system_alone_has_an_identity_too() {
        let first = identity_of_stack(&[], &["ntoskrnl.exe!ObOpen", "ntdll.dll!NtOpen"], 1);
        let second = identity_of_stack(&[], &["ntoskrnl.exe!ObOpen", "ntdll.dll!NtClose"], 1);
        assert_ne!(first.id, second.id);
    }
}
