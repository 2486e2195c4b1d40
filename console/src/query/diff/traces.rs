//! Two traces: what the second one loses more or less of than the first.

use handlescope_model::StackIdx;
use hashbrown::HashMap;

use super::rule::{self, Lost};
use super::{Group, function, grouped, groups, minutes, parts, per_minute};
use crate::cancel::Cancel;
use crate::query::criteria::DiffCriteria;
use crate::query::error::QueryError;
use crate::query::frame_names::FrameNames;
use crate::query::groups::NodeIdx;
use crate::query::growth::{Growth, Verdict, Window};
use crate::query::object_ref::FileAnswer;
use crate::query::source::Source;

/// What two traces lose, compared.
pub struct TracesDiff<'a> {
    /// The trace before and the one after.
    pub files: Vec<FileAnswer<'a>>,
    /// Their lengths in minutes, as far as they are known.
    pub minutes: Vec<Option<f64>>,
    /// Groups that lose handles in either trace: first those that got worse, then new ones.
    pub groups: Vec<ComparedGroup>,
}

/// Handles and views of processes of one name, of one type and one create stack by its functions.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedGroup {
    /// Name of the processes.
    pub process: String,
    /// Type of the objects.
    pub type_name: String,
    /// The first frame outside of the system of the stack that opened them.
    pub function: Option<String>,
    /// The trace before.
    pub before: Side,
    /// The trace after.
    pub after: Side,
    /// What became of it.
    pub state: State,
    /// Whether the trace after loses more than chance and a factor of 1.5 explain.
    pub got_worse: bool,
    /// The probability that chance makes the trace after lose so many, if nothing changed.
    pub p_value: f64,
    /// What the trace after is expected to lose if nothing changed. Of what is not lost at a rate that is a
    /// range, and this the number in it that is nearest to what the trace loses.
    pub expected: f64,
}

/// What one of the traces loses of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Side {
    /// Handles and views that nothing but the end of a process closed.
    pub lost: u64,
    /// The same by the minutes of the trace; `None` where these are unknown.
    pub per_minute: Option<f64>,
    /// The stack that opened them: one of those that are equal; `None` where nothing is lost.
    pub create_stack: Option<StackIdx>,
    /// How the group grows; `None` where nothing is lost.
    pub verdict: Option<Verdict>,
}

impl Side {
    /// What is open for a short time only is open at the end by chance, and not lost at a rate.
    fn is_by_chance(&self) -> bool {
        self.verdict == Some(Verdict::Balanced)
    }
}

/// What became of a group, in the order that groups are listed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It loses more than chance explains.
    Worse,
    /// It loses nothing in the trace before.
    New,
    /// It loses nothing in the trace after.
    Gone,
    /// It loses less than chance explains.
    Better,
    /// Chance explains the difference.
    Same,
}

impl State {
    /// The word it goes by, which stays the same.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Better => "better",
            Self::Same => "same",
        }
    }
}

impl TracesDiff<'_> {
    /// How many groups got worse.
    pub fn worse(&self) -> usize {
        self.groups.iter().filter(|group| group.got_worse).count()
    }

    /// Whether what is lost is compared by the lengths of the traces, and not by numbers alone.
    pub fn has_lengths(&self) -> bool {
        self.minutes.iter().all(Option::is_some)
    }

    /// How many groups are in a state.
    pub fn count(&self, state: State) -> usize {
        self.groups.iter().filter(|group| group.state == state).count()
    }
}

/// Compares what the first two sources lose.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn compare_traces<'a>(
    sources: &'a [Source<'a>],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<TracesDiff<'a>, QueryError> {
    let mut files = grouped(sources, criteria, names, cancel)?;
    files.truncate(2);
    let length = |file| parts(file).and_then(|(groups, _)| minutes(file, groups.extent));
    let minutes: Vec<Option<f64>> = files.iter().map(length).collect();
    let mut matched = Matched::default();
    for (at, file) in files.iter().enumerate() {
        matched.add(at, file, criteria)?;
    }
    let groups = with_states(matched.groups, &minutes);
    for (at, file) in files.iter_mut().enumerate() {
        let stacks = groups.iter().filter_map(|group| group.sides()[at.min(1)].create_stack);
        file.show_stacks(stacks.collect())?;
    }
    Ok(TracesDiff { files, minutes, groups })
}

impl ComparedGroup {
    fn sides(&self) -> [&Side; 2] {
        [&self.before, &self.after]
    }

    /// What the trace after, or before, loses against the other.
    fn lost(&self, minutes: &[Option<f64>], is_after: bool) -> Lost {
        let [before, after] = [0, 1].map(|at| minutes.get(at).copied().flatten());
        let (more, less, own, other) = match is_after {
            true => (&self.after, &self.before, after, before),
            false => (&self.before, &self.after, before, after),
        };
        let is_rate = more.verdict == Some(Verdict::Steady);
        let share = rule::share(own, other, is_rate);
        // A healthy program loses nothing at a rate, however long it is recorded.
        let share = if is_rate && less.lost == 0 { share.min(0.5) } else { share };
        Lost { more: more.lost, less: less.lost, share }
    }

    /// What the test takes for unchanged in the trace after: no more than makes it worse, no fewer than
    /// makes it better.
    fn expected(&self, minutes: &[Option<f64>]) -> f64 {
        let before = self.before.lost as f64;
        let (more, less) = (self.lost(minutes, true).share, self.lost(minutes, false).share);
        let (most, least) = (before * more / (1.0 - more), before * (1.0 - less) / less);
        let most = if self.after.is_by_chance() { f64::INFINITY } else { most };
        let least = if self.before.is_by_chance() { 0.0 } else { least };
        (self.after.lost as f64).max(least).min(most)
    }
}

/// Says of each group what became of it, and puts them into their order.
fn with_states(mut groups: Vec<ComparedGroup>, minutes: &[Option<f64>]) -> Vec<ComparedGroup> {
    let level = |is_after| rule::level(groups.iter().map(|group| group.lost(minutes, is_after)));
    let (worse, better) = (level(true), level(false));
    for group in &mut groups {
        for (side, minutes) in [&mut group.before, &mut group.after].into_iter().zip(minutes) {
            side.per_minute = per_minute(side.lost, *minutes);
        }
        let is_more = |side: &Side, level, is_after| {
            side.verdict.is_some()
                && !side.is_by_chance()
                && group.lost(minutes, is_after).is_significant(level)
        };
        let got_worse = is_more(&group.after, worse, true);
        let got_better = is_more(&group.before, better, false);
        group.p_value = group.lost(minutes, true).p_value();
        group.expected = group.expected(minutes);
        group.got_worse = got_worse;
        group.state = match (group.before.lost, group.after.lost) {
            (0, _) => State::New,
            (_, 0) => State::Gone,
            _ if got_worse => State::Worse,
            _ if got_better => State::Better,
            _ => State::Same,
        };
    }
    groups.sort_by_key(|group| {
        let more = i128::from(group.after.lost) - i128::from(group.before.lost);
        (!group.got_worse, group.state, -more)
    });
    groups
}

/// Groups of both traces, by what they have in common.
#[derive(Default)]
struct Matched {
    groups: Vec<ComparedGroup>,
    /// Name of the process in lower case, type, text of the stack.
    by_key: HashMap<(String, String, String), usize>,
}

/// The handles of a group in one trace, which may be of several processes.
struct Nodes {
    nodes: Vec<NodeIdx>,
    /// From the start of the first to the end of the last of the processes.
    window: Window,
}

impl Matched {
    /// Adds the groups of a trace that lose handles.
    fn add(
        &mut self,
        at: usize,
        file: &FileAnswer<'_>,
        criteria: &DiffCriteria,
    ) -> Result<(), QueryError> {
        let Some((all, timed)) = parts(file) else { return Ok(()) };
        let mut found: HashMap<usize, Nodes> = HashMap::new();
        for group in groups(file, (all, timed), criteria) {
            file.file.cancel.check()?;
            let lost = all.lost_in_time(group.node);
            if lost == 0 {
                continue;
            }
            let place = self.place(file, &group, criteria.with_identities);
            let window = all.window_of(group.process).unwrap_or(all.extent);
            let nodes = || Nodes { nodes: Vec::new(), window };
            let nodes = found.entry(place).or_insert_with(nodes);
            nodes.nodes.push(group.node);
            nodes.window.start_ns = nodes.window.start_ns.min(window.start_ns);
            nodes.window.end_ns = nodes.window.end_ns.max(window.end_ns);
            if let Some(side) = self.side(at, place) {
                side.lost += lost;
                side.create_stack = side.create_stack.or(group.create_stack);
            }
        }
        for (group, Nodes { nodes, window }) in found {
            file.file.cancel.check()?;
            let lives: Vec<_> = nodes
                .iter()
                .flat_map(|node| timed.program_times(&timed.handles(&all.tree, *node)))
                .collect();
            if let Some(side) = self.side(at, group) {
                side.verdict = Some(Growth::of(&lives, window).verdict);
            }
        }
        Ok(())
    }

    fn side(&mut self, at: usize, place: usize) -> Option<&mut Side> {
        let group = self.groups.get_mut(place)?;
        Some(if at == 0 { &mut group.before } else { &mut group.after })
    }

    /// The place of a group among those that match.
    fn place(&mut self, file: &FileAnswer<'_>, group: &Group<'_>, is_plain: bool) -> usize {
        let frames = file.file.frames.as_ref().map(|frames| frames.named());
        let stack = frames.as_ref().zip(group.create_stack);
        let lines = stack.map(|(frames, stack)| {
            frames.stack(stack).map(|frame| format!("{frame}\n")).collect::<String>()
        });
        let name = group.process.known_name().unwrap_or_default().to_lowercase();
        let key = (name, group.type_name.to_owned(), lines.unwrap_or_default());
        let next = self.groups.len();
        let place = *self.by_key.entry(key).or_insert(next);
        if place == next {
            self.groups.push(ComparedGroup {
                process: group.process.shown_name(is_plain).to_owned(),
                type_name: group.type_name.to_owned(),
                function: function(file, group.create_stack),
                before: Side::default(),
                after: Side::default(),
                state: State::Same,
                got_worse: false,
                p_value: 1.0,
                expected: 0.0,
            });
        }
        place
    }
}
