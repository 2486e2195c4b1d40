//! Texts, modules, functions and places of a profile, each once.

use std::hash::Hash;

use handlescope_model::{StackIdx, Untrusted};

use super::super::folded::{NO_STACK, PictureFrame, UniqueValues};
use super::format::{Function, Line, Location, Mapping, Profile};
use handlescope_query::{FrameView, NamedFrames, TraceAnswer, TrimmedStacks, build_id};

/// Addresses that are kept for a module: the largest image that the 32 bits of its header allow.
const MODULE_BYTES: u64 = 1 << 32;

/// Texts, modules, functions and places, in the order of their ids.
#[derive(Default)]
pub struct Places {
    texts: UniqueValues<String>,
    mappings: UniqueValues<ModuleKey>,
    functions: UniqueValues<Function>,
    locations: UniqueValues<Location>,
}

/// What tells one module from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ModuleKey {
    path: i64,
    build_id: i64,
    bytes: u64,
}

/// Returns the id of a value, from 1.
fn id<T: Clone + Eq + Hash>(values: &mut UniqueValues<T>, value: &T) -> u64 {
    values.number(value) as u64 + 1
}

impl Places {
    /// Returns the index of a text, escaped as [`Untrusted`].
    pub fn text(&mut self, text: &str) -> i64 {
        // The first text of a profile is empty.
        if text.is_empty() { 0 } else { id(&mut self.texts, &Untrusted(text).to_string()) as i64 }
    }

    /// Returns the ids of the places of a stack, innermost first, as far as they are not trimmed.
    pub fn stack<'a>(
        &mut self,
        answer: &impl TraceAnswer<'a>,
        stack: Option<StackIdx>,
    ) -> Vec<u64> {
        let Some((stack, frames)) = stack.zip(answer.frames()) else {
            let line = self.line(&PictureFrame::named(NO_STACK), None);
            return vec![id(
                &mut self.locations,
                &Location { line: vec![line], ..Location::default() },
            )];
        };
        let named = frames.named();
        let (mut ids, mut lines) = (Vec::new(), Vec::new());
        let mut views = TrimmedStacks::views(answer.trims(), &named, stack).peekable();
        while let Some(view) = views.next() {
            lines.push(self.line(&PictureFrame::from_view(&view), view.function()));
            if !view.is_inlined() || views.peek().is_none() {
                ids.push(self.location(&named, &view, std::mem::take(&mut lines)));
            }
        }
        ids
    }

    /// Returns the id of a place with these functions.
    fn location(&mut self, named: &NamedFrames<'_>, view: &FrameView<'_>, line: Vec<Line>) -> u64 {
        let place = view.module.and_then(|module| {
            let rva = module.rva.filter(|rva| *rva < MODULE_BYTES)?;
            let identity = named.frames().identity(module.row)?;
            let path = if identity.path.is_empty() { &identity.name } else { &identity.path };
            let build_id = build_id(identity).unwrap_or_default();
            let (path, build_id) = (self.text(path), self.text(&build_id));
            let id = id(&mut self.mappings, &ModuleKey { path, build_id, bytes: identity.size });
            Some((id, start(id) + rva))
        });
        let (mapping_id, address) = place.unwrap_or((0, view.address.unwrap_or_default()));
        id(&mut self.locations, &Location { id: 0, mapping_id, address, line })
    }

    /// Returns the line of a function; `bare` is its name without the module. Code without a name has the text of its
    /// frame as name, and no system name.
    fn line(&mut self, frame: &PictureFrame, bare: Option<&str>) -> Line {
        let (file, line) = match &frame.source {
            Some((file, line)) => (file.as_str(), *line),
            None => ("", None),
        };
        let function = Function {
            id: 0,
            name: self.text(&frame.name),
            system_name: self.text(bare.unwrap_or_default()),
            filename: self.text(file),
        };
        Line { function_id: id(&mut self.functions, &function), line: line.map_or(0, i64::from) }
    }

    /// Returns a profile with nothing but these.
    pub fn into_profile(self) -> Profile {
        let Self { texts, mappings, functions, locations } = self;
        let mut mapping: Vec<Mapping> = (1..)
            .zip(mappings.values)
            .map(|(id, module)| Mapping {
                id,
                memory_start: start(id),
                memory_limit: start(id).saturating_add(module.bytes.min(MODULE_BYTES)),
                filename: module.path,
                build_id: module.build_id,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            })
            .collect();
        let function: Vec<Function> =
            (1..).zip(functions.values).map(|(id, it)| Function { id, ..it }).collect();
        let location: Vec<Location> =
            (1..).zip(locations.values).map(|(id, it)| Location { id, ..it }).collect();
        for Location { mapping_id, address, line, .. } in &location {
            let at = (*mapping_id as usize).checked_sub(1);
            let Some(module) = at.and_then(|at| mapping.get_mut(at)) else { continue };
            // The trace may not know the size, or not the right one.
            module.memory_limit = module.memory_limit.max(*address + 1);
            for line in line {
                let at = (line.function_id as usize).checked_sub(1);
                let Some(function) = at.and_then(|at| function.get(at)) else { continue };
                module.has_functions &= function.system_name != 0;
                module.has_filenames &= function.filename != 0;
                module.has_line_numbers &= line.line != 0;
            }
            module.has_inline_frames = module.has_functions;
        }
        let string_table = std::iter::once(String::new()).chain(texts.values).collect();
        Profile { mapping, function, location, string_table, ..Profile::default() }
    }
}

/// Start of the addresses of a module. They say nothing of where processes had it, which differs from one to the next:
/// the upper half of an address is the module, the lower half the offset in it.
fn start(mapping_id: u64) -> u64 {
    mapping_id.saturating_mul(MODULE_BYTES)
}
