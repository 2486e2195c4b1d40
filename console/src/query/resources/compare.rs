//! What the second of two traces leaves allocated, against the first.

use handlescope_model::StackIdx;
use handlescope_model::rules::{has_bytes, has_lasting_names};
use handlescope_model::tables::ResourceKind;
use hashbrown::HashMap;

use super::between::Amount;
use super::{ResourceGroup, ResourcesAnswer, resources};
use crate::cancel::Cancel;
use crate::query::criteria::{ResourceColumn, ResourceCriteria};
use crate::query::error::QueryError;
use crate::query::frame_names::FrameNames;
use crate::query::source::Source;
use crate::query::{NoMatch, State};

/// Bytes that do not matter.
const FEW_BYTES: f64 = 65_536.0;

/// A number of what has no bytes that does not matter: as of handles.
const FEW: f64 = 4.0;

/// A factor that does not matter.
const FACTOR: f64 = 1.5;

const NS_PER_MINUTE: f64 = 60e9;

/// What two traces leave allocated.
pub struct AllocationsDiff<'a> {
    /// The trace before and the trace after.
    pub files: Vec<ResourcesAnswer<'a>>,
    /// Groups, those that got worse first, then those with the most bytes.
    pub groups: Vec<ComparedAllocations>,
    /// How much longer the trace after is; 1 where it is shorter, because what is filled once is not filled less then.
    pub longer: f64,
}

/// Allocations of one kind, allocator, program and stack, in both traces.
pub struct ComparedAllocations {
    /// The kind, as in `heap`.
    pub kind: &'static str,
    /// The allocator; `None` of a heap, which has another handle each time.
    pub allocator: Option<String>,
    /// The executable; `None` where it is not known.
    pub process: Option<String>,
    /// The function of the program that allocated.
    pub function: Option<String>,
    pub before: AllocatedSide,
    pub after: AllocatedSide,
    /// Bytes that the trace after would leave if nothing had changed.
    pub expected_bytes: f64,
    /// What became of the group.
    pub state: State,
    /// Whether more is left than before and more than chance leaves.
    pub got_worse: bool,
}

/// What a trace leaves allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatedSide {
    /// Allocations that nothing freed, or only the end of the process.
    pub count: u64,
    pub bytes: i64,
    /// The stack that allocated.
    pub stack: Option<StackIdx>,
}

impl AllocatedSide {
    /// The number, and the bytes.
    pub fn amount(self) -> Amount {
        Amount { count: self.count, bytes: self.bytes }
    }
}

/// What groups of two traces have in common.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Name {
    kind: &'static str,
    known_kind: Option<ResourceKind>,
    allocator: Option<String>,
    process: Option<String>,
    /// Its functions, whatever their addresses.
    stack: Option<String>,
}

/// Compares what nothing freed in two traces, the first before the second.
///
/// # Errors
/// As [`resources`].
pub fn compare_allocations<'a>(
    sources: &[Source<'a>],
    criteria: &ResourceCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<AllocationsDiff<'a>, QueryError> {
    let by = ResourceColumn::COMPARED.to_vec();
    let (leak, leak_at_exit) = (true, true);
    let asked = ResourceCriteria { by: Some(by), leak, leak_at_exit, ..criteria.clone() };
    let files = resources(sources, &asked, names, cancel)?;
    let mut sides: HashMap<Name, [AllocatedSide; 2]> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        for group in file.groups.iter().flat_map(|groups| &groups.rows) {
            let sides = sides.entry(name(file, group)).or_default();
            if let Some(side) = sides.get_mut(at) {
                side.count += group.figures.lost();
                side.bytes = side.bytes.saturating_add(group.figures.lost_bytes());
                side.stack = side.stack.or(group.create_stack());
            }
        }
    }
    let longer = longer(&files);
    let mut named: Vec<(Name, [AllocatedSide; 2])> = sides.into_iter().collect();
    named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let compared = named.into_iter().map(|(name, sides)| compared(&files, name, sides, longer));
    let mut groups: Vec<ComparedAllocations> = compared.collect();
    groups.sort_by_key(|group| {
        let grown = group.after.bytes.saturating_sub(group.before.bytes);
        (!group.got_worse, std::cmp::Reverse((grown, group.after.bytes)))
    });
    Ok(AllocationsDiff { files, groups, longer })
}

impl AllocationsDiff<'_> {
    /// How many groups got worse.
    pub fn worse(&self) -> usize {
        self.groups.iter().filter(|group| group.got_worse).count()
    }

    /// Why nothing of either trace passes, unless it is only that kinds that exist were not recorded.
    pub fn no_match(&self) -> Option<&NoMatch> {
        let no_match = self.files.iter().find_map(|file| file.no_match.as_ref());
        no_match.filter(|no_match| !no_match.names_kinds())
    }

    /// What the trace after would have if nothing had changed, bytes or a number: between what there is before and that
    /// in the longer time, the nearest to what there is.
    pub(crate) fn unchanged(&self, before: u64, after: u64) -> u64 {
        let most = (before as f64 * self.longer).round() as u64;
        after.clamp(before, most.max(before))
    }

    /// The trace that has the stack of a group, and the stack.
    pub(crate) fn stack(
        &self,
        group: &ComparedAllocations,
    ) -> Option<(&ResourcesAnswer<'_>, StackIdx)> {
        let [before, after] = self.files.as_slice() else { return None };
        let of = |file, side: &AllocatedSide| Some((file, side.stack?));
        of(after, &group.after).or_else(|| of(before, &group.before))
    }
}

fn name(file: &ResourcesAnswer<'_>, group: &ResourceGroup) -> Name {
    let kind = file.kind(group).unwrap_or_default();
    let known_kind = file.known_kind(group);
    let is_compared = known_kind.is_none_or(has_lasting_names);
    let lines = |stack: StackIdx| {
        let named = file.frames.named();
        named.stack(stack).map(|frame| frame.to_string()).collect::<Vec<_>>().join("\n")
    };
    Name {
        kind,
        known_kind,
        allocator: file.allocator(group).filter(|_| is_compared).map(str::to_owned),
        process: file.process(group).map(|process| process.name),
        stack: group.create_stack().map(lines),
    }
}

/// How much longer the trace after is; 1 where it is shorter, because what is filled once is not filled less then.
fn longer(files: &[ResourcesAnswer<'_>]) -> f64 {
    let minutes = |file: &ResourcesAnswer<'_>| {
        file.window.map(|window| window.length_ns() as f64 / NS_PER_MINUTE)
    };
    let lengths: Vec<f64> = files.iter().filter_map(minutes).collect();
    match lengths.as_slice() {
        [before, after] if *before > 0.0 => (after / before).max(1.0),
        _ => 1.0,
    }
}

fn compared(
    files: &[ResourcesAnswer<'_>],
    name: Name,
    [before, after]: [AllocatedSide; 2],
    longer: f64,
) -> ComparedAllocations {
    let (old, new, few) = match name.known_kind.is_some_and(has_bytes) {
        true => (before.bytes as f64, after.bytes as f64, FEW_BYTES),
        false => (before.count as f64, after.count as f64, FEW),
    };
    let expected = old * longer;
    let is_more = |one: f64, other: f64| one > other * FACTOR && one - other > few;
    let state = match (before.count, after.count) {
        (0, _) => State::New,
        (_, 0) => State::Gone,
        _ if is_more(new, expected) => State::Worse,
        _ if is_more(old, new) => State::Better,
        _ => State::Same,
    };
    let function = || {
        let sides = files.iter().zip([before.stack, after.stack]);
        let (file, stack) = sides.rev().find_map(|(file, stack)| Some((file, stack?)))?;
        file.function(stack)
    };
    ComparedAllocations {
        function: function(),
        kind: name.kind,
        allocator: name.allocator,
        process: name.process,
        before,
        after,
        expected_bytes: before.bytes as f64 * longer,
        state,
        got_worse: state == State::Worse || (state == State::New && new > few),
    }
}
