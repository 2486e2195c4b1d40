//! Groups of two traces, by what they have in common.

use std::collections::HashSet;

use handlescope_model::{ProcessIdx, StackIdx};
use hashbrown::HashMap;

use super::builds::Builds;
use super::tally::Seen;
use super::{Group, groups, parts};
use crate::query::criteria::DiffCriteria;
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::groups::Groups;
use crate::query::growth::{Growth, ProcessLives, Verdict, Window};
use crate::query::object_ref::FileAnswer;

/// A group that loses handles in one of two traces, or in both.
pub(super) struct MatchedGroup {
    /// Name of the processes.
    pub(super) process: String,
    pub(super) type_name: String,
    /// The first frame outside of the system; of a module alone where its frames cannot be compared.
    pub(super) function: Option<String>,
    /// The trace before and the one after.
    pub(super) sides: [MatchedSide; 2],
}

/// What one of the traces has of a group.
#[derive(Default)]
pub(super) struct MatchedSide {
    pub(super) lost: u64,
    pub(super) create_stack: Option<StackIdx>,
    /// How the group grows; `None` where nothing is lost.
    pub(super) verdict: Option<Verdict>,
    pub(super) seen: Seen,
    /// From where on the trace has the lives of its processes.
    pub(super) start: Start,
}

/// From where on a trace has the life of a process, and so what it fills once: ordered by how much of it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    /// From later than the session's start, as in a ring.
    #[default]
    Later,
    /// From the start of the session.
    Session,
    /// From the start of the process.
    Process,
}

/// Name of the process in lower case, type.
type NameAndType = (String, String);

/// The groups of two traces.
pub(super) struct Matching<'f, 'a> {
    files: &'f [FileAnswer<'a>],
    criteria: &'f DiffCriteria,
    builds: Builds,
    groups: Vec<MatchedGroup>,
    /// With the text of the stack.
    by_key: HashMap<(NameAndType, String), usize>,
}

/// Groups that lose handles in either of the traces, and the modules whose frames cannot be compared.
pub(super) fn matched(
    files: &[FileAnswer<'_>],
    criteria: &DiffCriteria,
) -> Result<(Vec<MatchedGroup>, Vec<String>), QueryError> {
    let builds = builds(files, criteria);
    let mut matching =
        Matching { files, criteria, builds, groups: Vec::new(), by_key: HashMap::new() };
    for at in 0..files.len() {
        matching.add(at, true)?;
    }
    // What loses nothing in one of the traces is what the other one is compared with.
    for at in 0..files.len() {
        matching.add(at, false)?;
    }
    Ok((matching.groups, matching.builds.into_names()))
}

/// Compares the modules in the stacks that lose handles.
fn builds(files: &[FileAnswer<'_>], criteria: &DiffCriteria) -> Builds {
    let stacks = |file: &FileAnswer<'_>| -> Vec<StackIdx> {
        let Some((all, timed)) = parts(file) else { return Vec::new() };
        let groups = groups(file, (all, timed), criteria);
        let losing = groups.filter(|group| all.tree.figures(group.node).lost() > 0);
        losing.filter_map(|group| group.create_stack).collect()
    };
    let [before, after] = files else { return Builds::default() };
    match (&before.file.frames, &after.file.frames) {
        (Some(old), Some(new)) => Builds::compare([(old, &stacks(before)), (new, &stacks(after))]),
        _ => Builds::default(),
    }
}

impl Matching<'_, '_> {
    /// Adds the groups of a trace that lose handles, or the others, if they match some of those.
    fn add(&mut self, at: usize, is_losing: bool) -> Result<(), QueryError> {
        let files = self.files;
        let file = &files[at];
        let Some((all, timed)) = parts(file) else { return Ok(()) };
        let programs = Programs::of(file, all);
        let known: HashSet<NameAndType> =
            self.by_key.keys().map(|(name_and_type, _)| name_and_type.clone()).collect();
        let mut places: HashMap<usize, Lives> = HashMap::new();
        for group in groups(file, (all, timed), self.criteria) {
            file.file.cancel.check()?;
            let lost = all.lost_in_time(group.node);
            if (lost > 0) != is_losing {
                continue;
            }
            let name = group.process.known_name().unwrap_or_default().to_lowercase();
            let name_and_type = (name, group.type_name.to_owned());
            if !is_losing && !known.contains(&name_and_type) {
                continue;
            }
            let Some(place) = self.place(file, &group, &name_and_type, is_losing) else { continue };
            let lives = places
                .entry(place)
                .or_insert_with(|| Lives { program: name_and_type.0, by_process: HashMap::new() });
            let handles = timed.handles(&all.tree, group.node);
            let window = all.window_of(group.process).unwrap_or(all.extent);
            let of_process = lives.by_process.entry(timed.owner(&handles));
            let of_process =
                of_process.or_insert_with(|| ProcessLives { lives: Vec::new(), window });
            of_process.lives.extend(timed.program_times(&handles));
            let side = &mut self.groups[place].sides[at];
            side.lost += lost;
            side.create_stack = side.create_stack.or(group.create_stack.filter(|_| is_losing));
        }
        for (place, lives) in places {
            file.file.cancel.check()?;
            let side = &mut self.groups[place].sides[at];
            let (windows, start) = programs.of_name(&lives.program);
            let processes: Vec<ProcessLives> = lives.by_process.into_values().collect();
            if is_losing {
                side.verdict = Some(Growth::of_processes(&processes, all.extent).verdict);
            }
            let seen = processes.into_iter().map(|process| (process.window, process.lives));
            side.seen.lives.extend(seen);
            side.seen.windows = windows;
            side.start = start;
        }
        // The program ran in the trace, even where the group has no handles there.
        for group in self.groups.iter_mut().filter(|group| group.sides[at].seen.windows.is_empty())
        {
            let (windows, start) = programs.of_name(&group.process.to_lowercase());
            group.sides[at].seen.windows = windows;
            group.sides[at].start = start;
        }
        Ok(())
    }

    /// The place of a group among those that match; `None` where there is none and none `is_new`.
    fn place(
        &mut self,
        file: &FileAnswer<'_>,
        group: &Group<'_>,
        name_and_type: &NameAndType,
        is_new: bool,
    ) -> Option<usize> {
        let frames = file.file.frames.as_ref().map(Frames::named);
        let stack = frames.as_ref().zip(group.create_stack);
        let text = stack.map(|(named, stack)| self.builds.text(named, stack)).unwrap_or_default();
        let key = (name_and_type.clone(), text);
        if let Some(place) = self.by_key.get(&key) {
            return Some(*place);
        }
        if !is_new {
            return None;
        }
        let place = self.groups.len();
        self.by_key.insert(key, place);
        let module = stack.and_then(|(named, stack)| {
            Some(self.builds.module(&named.representative(stack)?)?.to_owned())
        });
        self.groups.push(MatchedGroup {
            process: group.process.shown_name(self.criteria.with_identities).to_owned(),
            type_name: group.type_name.to_owned(),
            function: module.or_else(|| super::function(file, group.create_stack)),
            sides: Default::default(),
        });
        Some(place)
    }
}

/// The handles of a group in one trace, which may be of several processes.
struct Lives {
    /// The name of these in lower case.
    program: String,
    by_process: HashMap<Option<ProcessIdx>, ProcessLives>,
}

/// When the processes of each name ran in a trace.
struct Programs {
    extent: Window,
    start: Start,
    by_name: HashMap<String, (Vec<Window>, Start)>,
}

impl Programs {
    fn of(file: &FileAnswer<'_>, all: &Groups) -> Self {
        let extent = all.extent;
        let start = if extent.start_ns > 0 { Start::Later } else { Start::Session };
        let mut by_name: HashMap<String, (Vec<Window>, Start)> = HashMap::new();
        for process in file.file.processes.rows() {
            let Some(window) = all.window_of(process) else { continue };
            if window.end_ns < window.start_ns {
                continue;
            }
            let name = process.known_name().unwrap_or_default().to_lowercase();
            let (windows, seen) = by_name.entry(name).or_insert((Vec::new(), start));
            windows.push(window);
            if process.start_ns.is_some_and(|started| started >= extent.start_ns) {
                *seen = Start::Process;
            }
        }
        Self { extent, start, by_name }
    }

    /// Those of one name; where it did not run, it could have all the time.
    fn of_name(&self, name: &str) -> (Vec<Window>, Start) {
        let known = self
            .by_name
            .get(name)
            .filter(|(windows, _)| windows.iter().any(|window| window.length_ns() > 0));
        known.cloned().unwrap_or_else(|| (vec![self.extent], self.start))
    }
}
