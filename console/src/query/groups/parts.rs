//! Handles of many objects, found side by side and handed out in the order of the objects.

use rayon::prelude::*;

use super::columns::KeyRows;
use super::counted::Counted;
use super::lives::{LifeTables, Lives};
use crate::cancel::{Cancel, Cancelled, Poll};
use crate::query::selection::{EventMask, Selected, Selection};

/// Objects that one thread takes at once.
const PART: usize = 1 << 14;
/// Objects whose handles are found while those of as many others are given.
const WAVE: usize = 1 << 18;

/// Where handles and what they are grouped by come from.
pub(super) struct Parts<'a> {
    pub(super) lives: LifeTables<'a>,
    pub(super) keys: KeyRows<'a>,
    pub(super) cancel: &'a Cancel,
}

/// The handles of some objects, and for each of them what it has in the columns.
#[derive(Default)]
struct Part {
    handles: Vec<Counted>,
    rows: Vec<u32>,
}

impl Parts<'_> {
    /// Gives what the objects of a selection have of handles and views to `each`, in their order, with what
    /// they have in the columns; `is_beside` where nothing counts but what only the ends of processes closed.
    pub(super) fn each(
        &self,
        selection: &Selection,
        is_beside: bool,
        mut each: impl FnMut(Counted, &[u32]) + Send,
    ) -> Result<(), Cancelled> {
        let part = |objects: &[Selected]| self.part(objects, &selection.events, is_beside);
        let find = |wave: &[Selected]| -> Result<Vec<Part>, Cancelled> {
            wave.par_chunks(PART).map(part).collect()
        };
        let mut give = |parts: Vec<Part>| {
            for part in parts {
                let rows = part.rows.chunks_exact(self.keys.width());
                part.handles.iter().zip(rows).for_each(|(handle, rows)| each(*handle, rows));
            }
        };
        let mut found = Vec::new();
        for wave in selection.objects().chunks(WAVE) {
            // The next ones are found while these are given.
            let (next, ()) = rayon::join(|| find(wave), || give(std::mem::take(&mut found)));
            found = next?;
        }
        give(found);
        Ok(())
    }

    fn part(
        &self,
        objects: &[Selected],
        left: &EventMask,
        is_beside: bool,
    ) -> Result<Part, Cancelled> {
        let mut poll = Poll::new(self.cancel);
        let mut lives = Lives::new(&self.lives);
        let mut part = Part::default();
        for selected in objects {
            poll.round()?;
            for life in lives.of_object(*selected, left) {
                if !is_beside || life.is_closed_at_exit {
                    part.handles.push(Counted::of(life, is_beside));
                    part.rows.extend(self.keys.of(life));
                }
            }
        }
        self.keys.unite(&mut part.rows);
        Ok(part)
    }
}
