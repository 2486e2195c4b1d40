//! How many handles were open over time, by group.

use std::cmp::Reverse;

use handlescope_model::Untrusted;

use crate::paths::stem;
use crate::query::{FileAnswer, GroupKey, Groups, NodeIdx, TrimmedStacks, Window};

/// Characters of a name that are shown.
const NAME_LENGTH: usize = 60;

/// The open handles of a trace over time. Only what was opened in the trace counts.
pub(crate) struct Timeline {
    /// The name of the trace.
    pub(in crate::render) file: String,
    /// The time of the trace, nanoseconds since session start.
    pub(in crate::render) window: Window,
    /// The groups that had most open at once, then the sum of the others.
    pub(in crate::render) series: Vec<Series>,
}

/// The open handles of a group.
pub(in crate::render) struct Series {
    pub(in crate::render) name: String,
    /// The number at the end of each of equal parts of the time.
    pub(in crate::render) open: Vec<u32>,
}

impl Timeline {
    /// The outermost groups of a trace that was asked for groups with times, `most` of them by
    /// themselves, in so many parts of its time; `None` of a trace without a clock.
    pub(crate) fn of(file: &FileAnswer<'_>, buckets: usize, most: usize) -> Option<Self> {
        let groups = file.groups.as_ref()?;
        let open = |node: &NodeIdx| groups.outstanding(*node, buckets).unwrap_or_default();
        let mut nodes: Vec<(u32, NodeIdx)> = Vec::new();
        for node in groups.tree.children(None) {
            nodes.push((open(node).into_iter().max().unwrap_or_default(), *node));
        }
        nodes.retain(|(peak, _)| *peak > 0);
        nodes.sort_by_key(|(peak, _)| Reverse(*peak));
        let others = nodes.split_off(most.min(nodes.len()));
        let own = nodes
            .iter()
            .map(|(_, node)| Series { name: name(file, groups, *node), open: open(node) });
        let mut series: Vec<Series> = own.collect();
        if !others.is_empty() {
            let mut sums = vec![0_u32; buckets];
            for (_, node) in &others {
                for (sum, count) in sums.iter_mut().zip(open(node)) {
                    *sum = sum.saturating_add(count);
                }
            }
            series.push(Series { name: format!("{} others", others.len()), open: sums });
        }
        let file = Untrusted(&stem(file.path())).to_string();
        Some(Self { file, window: groups.window?, series })
    }

    /// Whether nothing was open at the end of any part.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// For each group the sums of what it and those before it had open, so that each lies on the others.
    pub(in crate::render) fn stacked(&self) -> Vec<Vec<u64>> {
        let mut sums: Vec<u64> = Vec::new();
        let add = |series: &Series| {
            sums.resize(series.open.len(), 0);
            sums.iter_mut().zip(&series.open).for_each(|(sum, open)| *sum += u64::from(*open));
            sums.clone()
        };
        self.series.iter().map(add).collect()
    }

    /// The end of each part, seconds since session start.
    pub(in crate::render) fn ends(&self, parts: usize) -> impl Iterator<Item = f64> {
        let Window { start_ns, end_ns } = self.window;
        let length = (end_ns as f64 - start_ns as f64) / 1e9;
        (1..=parts).map(move |part| start_ns as f64 / 1e9 + length * part as f64 / parts as f64)
    }
}

fn name(file: &FileAnswer<'_>, groups: &Groups, node: NodeIdx) -> String {
    let text = match groups.key(node) {
        GroupKey::Text(text) => text.to_owned(),
        GroupKey::Number(number) => number.to_string(),
        GroupKey::Stack(stack) => {
            let name = |stacks: &TrimmedStacks| stacks.function(&file.file, stack);
            groups.stacks.as_ref().map(name).unwrap_or_default()
        }
        GroupKey::None => "none".to_owned(),
    };
    let text = Untrusted(&text).to_string();
    match text.char_indices().nth(NAME_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
