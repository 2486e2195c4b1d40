//! Evidence about closes by threads of other processes: handles that the rundowns list, and gaps in the events.

use std::sync::OnceLock;

use hashbrown::HashSet;

use super::Lifetimes;
use super::objects::{CloseEvidence, HandleAt, slot};
use super::open_handles::OpenHandle;
use crate::raw::RowKind;

/// Handles in the rundowns. They are looked up only when a close matches no handle of its own process.
pub struct RundownEvidence<'a> {
    lifetimes: Lifetimes<'a>,
    at_start: OnceLock<HashSet<HandleAt>>,
    at_end: OnceLock<HashSet<HandleAt>>,
}

impl<'a> RundownEvidence<'a> {
    pub fn new(lifetimes: Lifetimes<'a>) -> Self {
        Self { lifetimes, at_start: OnceLock::new(), at_end: OnceLock::new() }
    }

    /// Returns the handles that were open when the trace began.
    fn at_start(&self) -> &HashSet<HandleAt> {
        let Lifetimes { collected, index, .. } = self.lifetimes;
        self.at_start.get_or_init(|| {
            collected
                .handles
                .start
                .iter()
                .filter_map(|it| Some((it.object, index.find(it.pid, it.time)?, slot(it.handle))))
                .collect()
        })
    }

    /// Returns the handles that were open when the trace ended.
    fn at_end(&self) -> &HashSet<HandleAt> {
        let Lifetimes { collected, owners, .. } = self.lifetimes;
        let (timeline, handles) = (&collected.shared.timeline, &collected.handles);
        self.at_end.get_or_init(|| {
            let kinds = timeline.kind.iter().enumerate();
            let rows = kinds.filter(|(_, kind)| **kind == RowKind::HandleAtEnd);
            rows.map(|(row, _)| {
                let at = timeline.row[row] as usize;
                (handles.object[at], owners.process[row], slot(handles.handle[at]))
            })
            .collect()
        })
    }
}

impl CloseEvidence for RundownEvidence<'_> {
    fn allows(&self, close: u32, closer: u32, of: OpenHandle, address: u64) -> bool {
        let Lifetimes { collected, index, .. } = self.lifetimes;
        let time = &collected.shared.timeline.time;
        let (opened, closed) = (time[of.row as usize], time[close as usize]);
        // A process has no handles before it starts, or once its pid was reused.
        let had_handles = collected.processes.rows.get(of.process as usize).is_some_and(|holder| {
            let reused = holder.end.and_then(|end| index.next_start(holder.process.pid, end));
            holder.start.is_none_or(|start| start <= closed)
                && reused.is_none_or(|start| closed < start)
        });
        // The closing process may have a handle of its own that was opened in a gap.
        let process = collected.processes.rows.get(closer as usize);
        let since = process.and_then(|process| process.start).unwrap_or(i64::MIN);
        had_handles
            && !self.lifetimes.missing.times.is_between(opened.min(since), closed)
            && !self.at_start().contains(&(address, closer, of.slot))
            && !self.at_end().contains(&(address, of.process, of.slot))
    }
}
