//! Open handles or allocated bytes over time, by group.

use std::cmp::Reverse;
use std::path::Path;

use handlescope_model::{StackIdx, Untrusted};

use super::Measure;
use super::group::UNKNOWN;
use super::ticks::{RoundNumbers, Ticks};
use crate::text::trace_name;
use handlescope_fleet::{FleetGrowth, GrowthAxis, GrowthLine};
use handlescope_query::{
    FileAnswer, GroupColumn, GroupKey, Groups, NodeIdx, ResourceGroup, ResourceGroups,
    ResourcesAnswer, TimeWindow, TimedGroup, most_at_once,
};
use handlescope_session::terminal::clip::cut_in_the_middle;

/// Maximum number of columns of a displayed name.
const NAME_LENGTH: usize = 60;

/// Name of a group without a shared value.
const NONE: &str = "none";

/// The open handles or allocations of a trace over time. Counts only what was opened or allocated in the trace.
pub struct OpenTimeline {
    pub measure: Measure,
    /// The name of the trace.
    pub file: String,
    /// The time span of the trace, in nanoseconds since session start.
    pub window: TimeWindow,
    /// The groups with the highest peaks, then the sum of the others.
    pub series: Vec<Series>,
    pub axis: Axis,
}

/// What the time axis shows.
#[derive(Clone)]
pub enum Axis {
    /// Seconds since the session started.
    Seconds,
    /// Days; each takes a second of the window.
    Days(Vec<String>),
    /// Percent of each trace's duration; each takes a second of the window.
    Percent,
}

impl Axis {
    /// Returns the title of the axis.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Seconds => "seconds since the session started",
            Self::Days(_) => "day of the session start, UTC",
            Self::Percent => "percent of the time of each trace",
        }
    }

    /// Formats a time for people; it is given in seconds of the window.
    pub fn label(&self, seconds: f64, decimals: usize) -> String {
        match self {
            Self::Seconds => format!("{seconds:.decimals$} s"),
            Self::Percent => format!("{seconds:.0} %"),
            Self::Days(days) => {
                let day =
                    (seconds.ceil() as usize).saturating_sub(1).min(days.len().saturating_sub(1));
                days.get(day).cloned().unwrap_or_default()
            }
        }
    }
}

/// The open handles of a group over time.
pub struct Series {
    pub name: String,
    /// The highest number at any time.
    pub peak: u64,
    /// The number at the end of each time bucket.
    pub open: Vec<u64>,
}

impl OpenTimeline {
    /// Builds the timeline of an answer that has groups with times. The `top` outermost groups with the highest peaks
    /// get their own series, and time is divided into `buckets`. `None` for a trace without a clock.
    pub fn new(file: &FileAnswer<'_>, buckets: usize, top: usize) -> Option<Self> {
        let groups = file.groups.as_ref()?;
        let nodes = groups.tree.children(None).iter().map(|node| (*node, groups.members(*node)));
        let name = |node| name(file, groups, node);
        let of_trace = (file.about.path, groups.window?);
        Some(Self::from_groups(of_trace, Measure::Handles, nodes, name, buckets, top))
    }

    /// Like [`new`](Self::new), for allocations with groups that keep them.
    pub fn for_allocations(
        answer: &ResourcesAnswer<'_>,
        measure: Measure,
        buckets: usize,
        top: usize,
    ) -> Option<Self> {
        let groups = answer.groups.as_ref()?;
        let rows = groups.rows.iter().map(|group| (group, groups.members(group)));
        let name = |group: &ResourceGroup| allocated_name(answer, groups, group);
        let of_trace = (answer.about.path, answer.window?);
        Some(Self::from_groups(of_trace, measure, rows, name, buckets, top))
    }

    /// Like [`for_allocations`](Self::for_allocations), for one kind in an answer with groups by kind and process; the
    /// series are named by process.
    pub fn for_kind(
        answer: &ResourcesAnswer<'_>,
        kind: &str,
        measure: Measure,
        buckets: usize,
        top: usize,
    ) -> Option<Self> {
        let groups = answer.groups.as_ref()?;
        let rows = answer.groups_of(kind).map(|group| (group, groups.members(group)));
        let name =
            |group: &ResourceGroup| cut(marked_owner(answer, group).as_deref().unwrap_or(UNKNOWN));
        let of_trace = (answer.about.path, answer.window?);
        Some(Self::from_groups(of_trace, measure, rows, name, buckets, top))
    }

    /// Makes a series for each of the `top` groups with the highest peaks, and one for the rest.
    fn from_groups<'g, G: Copy>(
        (path, window): (&Path, TimeWindow),
        measure: Measure,
        groups: impl Iterator<Item = (G, Option<TimedGroup<'g>>)>,
        name: impl Fn(G) -> String,
        buckets: usize,
        top: usize,
    ) -> Self {
        let of_bytes = measure == Measure::Bytes;
        // Sums may be negative if the events say so.
        let open = |members: &TimedGroup<'_>| -> Vec<u64> {
            let open = members.outstanding(of_bytes, window, buckets).into_iter();
            open.map(|open| u64::try_from(open).unwrap_or_default()).collect()
        };
        let peaks = groups.filter_map(|(group, members)| {
            let members = members?;
            Some((most_at_once(members.changes(of_bytes)), group, members))
        });
        let mut peaks: Vec<(u64, G, TimedGroup<'g>)> = peaks.filter(|it| it.0 > 0).collect();
        peaks.sort_by_key(|(peak, ..)| Reverse(*peak));
        let rest = peaks.split_off(top.min(peaks.len()));
        let series =
            |(peak, group, members)| Series { name: name(group), peak, open: open(&members) };
        let mut series: Vec<Series> = peaks.into_iter().map(series).collect();
        if !rest.is_empty() {
            let mut sums = vec![0_u64; buckets];
            for (.., members) in &rest {
                for (sum, count) in sums.iter_mut().zip(open(members)) {
                    *sum = sum.saturating_add(count);
                }
            }
            let changes = rest.iter().flat_map(|(.., members)| members.changes(of_bytes));
            let (name, peak) = (format!("{} others", rest.len()), most_at_once(changes.collect()));
            series.push(Series { name, peak, open: sums });
        }
        let file = trace_name(path);
        Self { measure, file, window, series, axis: Axis::Seconds }
    }

    /// Builds the timeline of a dataset with this name; the first `top` lines get their own series, and the others are
    /// one.
    pub fn for_fleet(growth: FleetGrowth, dataset: &Path, top: usize) -> Self {
        let FleetGrowth { axis, labels, mut lines, has_bytes, .. } = growth;
        let rest = lines.split_off(lines.len().min(top));
        if !rest.is_empty() {
            let sums = (0..labels.len())
                .map(|place| rest.iter().filter_map(|line| line.open.get(place)).sum::<f64>());
            let name = format!("{} more", rest.len());
            lines.push(GrowthLine { name, open: sums.collect() });
        }
        let series = lines.into_iter().map(|line| {
            let open: Vec<u64> = line.open.iter().map(|open| open.round() as u64).collect();
            let peak = open.iter().copied().max().unwrap_or_default();
            Series { name: cut(&line.name), peak, open }
        });
        let series = series.filter(|series| series.peak > 0).collect();
        let (axis, seconds) = match axis {
            GrowthAxis::Days => (Axis::Days(labels.clone()), labels.len() as i64),
            GrowthAxis::Steps => (Axis::Percent, 100),
        };
        let window = TimeWindow { start_ns: 0, end_ns: seconds.saturating_mul(1_000_000_000) };
        let measure = if has_bytes { Measure::Bytes } else { Measure::Handles };
        let file = Untrusted(dataset).to_string();
        Self { measure, file, window, series, axis }
    }

    /// Replaces the name of the trace.
    #[must_use]
    pub fn named(self, name: &Path) -> Self {
        Self { file: Untrusted(name).to_string(), ..self }
    }

    /// Whether nothing was open at any time.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Returns for each group the running sums of its open counts and those of the groups before it, so that the areas
    /// stack.
    pub fn stacked(&self) -> Vec<Vec<u64>> {
        let mut sums: Vec<u64> = Vec::new();
        let sums_below = self.series.iter().map(|series| {
            sums.resize(series.open.len(), 0);
            sums.iter_mut()
                .zip(&series.open)
                .for_each(|(sum, open)| *sum = sum.saturating_add(*open));
            sums.clone()
        });
        sums_below.collect()
    }

    /// Returns the most that is open at the end of a bucket, of all groups together.
    pub fn highest(&self) -> u64 {
        let sums = self.stacked().pop().unwrap_or_default();
        sums.into_iter().max().unwrap_or_default()
    }

    /// Returns round amounts from 0 to the highest, each with its text.
    pub fn amount_ticks(&self) -> Vec<(u64, String)> {
        let round =
            if self.measure == Measure::Bytes { RoundNumbers::Binary } else { RoundNumbers::Whole };
        Ticks::new(0.0, self.highest() as f64, round)
            .values
            .into_iter()
            .map(|amount| (amount as u64, self.measure.shown(amount as u64)))
            .collect()
    }

    /// Returns round times of the window in seconds, each with its text.
    pub fn time_ticks(&self) -> Vec<(f64, String)> {
        let TimeWindow { start_ns, end_ns } = self.window;
        let round = if matches!(self.axis, Axis::Seconds) {
            RoundNumbers::Decimal
        } else {
            RoundNumbers::Whole
        };
        let Ticks { values, decimals } =
            Ticks::new(start_ns as f64 / 1e9, end_ns as f64 / 1e9, round);
        values.into_iter().map(|time| (time, self.axis.label(time, decimals))).collect()
    }

    /// Returns the end of each bucket in seconds since session start.
    pub fn ends(&self, buckets: usize) -> impl Iterator<Item = f64> {
        let TimeWindow { start_ns, end_ns } = self.window;
        let length = (end_ns as f64 - start_ns as f64) / 1e9;
        let count = buckets as f64;
        (1..=buckets).map(move |bucket| start_ns as f64 / 1e9 + length * bucket as f64 / count)
    }
}

/// Returns the owner of allocations with marks for its start and end, because an id may be reused.
fn marked_owner(answer: &ResourcesAnswer<'_>, group: &ResourceGroup) -> Option<String> {
    let process = answer.process(group)?;
    Some(format!("{}{}", process.shown_label(false), process.marks()))
}

/// Returns the shared value of allocations: process, kind with allocator, or the first function of a program.
fn allocated_name(
    answer: &ResourcesAnswer<'_>,
    groups: &ResourceGroups,
    group: &ResourceGroup,
) -> String {
    let text = |column: &GroupColumn| match column {
        GroupColumn::Process => marked_owner(answer, group),
        _ => text(answer.key(group, *column), |stack| answer.function(stack)),
    };
    let texts: Vec<String> = groups.by.iter().filter_map(text).collect();
    let text = if texts.is_empty() { NONE.to_owned() } else { texts.join(" ") };
    cut(&text)
}

fn name(file: &FileAnswer<'_>, groups: &Groups, node: NodeIdx) -> String {
    let function = |stack| Some(groups.function(&file.file, Some(stack)).unwrap_or_default());
    cut(text(groups.key(node), function).as_deref().unwrap_or(NONE))
}

/// Returns the shared value of handles or allocations in a column; a stack is represented by a function.
fn text(
    key: GroupKey<impl ToString>,
    function: impl Fn(StackIdx) -> Option<String>,
) -> Option<String> {
    match key {
        GroupKey::Text(text) => Some(text.to_string()),
        GroupKey::Number(number) => Some(number.to_string()),
        GroupKey::Stack(stack) => function(stack),
        GroupKey::None => None,
    }
}

/// Shortens a name for display.
fn cut(text: &str) -> String {
    cut_in_the_middle(&Untrusted(text).to_string(), NAME_LENGTH).into_owned()
}
