//! When events may be missing.

use handlescope_model::tables::{Loss, LossKind, Losses};

use crate::collect::Collector;
use crate::etl::{Clock, EventLoss};
use crate::recording::Recording;

/// All that is missing: of the file, and what records say.
pub(super) fn losses(recording: &Recording, collected: &Collector) -> Vec<EventLoss> {
    let records = &collected.losses;
    let recorded = records.last.map(|last| {
        let span = Some((i64::MIN, last));
        EventLoss::new(LossKind::LossRecord, span, Some(records.count), None)
    });
    recording.losses.iter().copied().chain(recorded).collect()
}

/// The rows of the table; the trace ends at `end_ns`.
pub(super) fn table(losses: &[EventLoss], clock: &Clock, end_ns: i64) -> Losses {
    let ns = |raw: i64| match raw {
        i64::MIN => 0,
        i64::MAX => end_ns,
        raw => clock.ns(raw),
    };
    let row = |loss: &EventLoss| Loss {
        what: loss.kind.code(),
        from_ns: loss.span.map(|(from, _)| ns(from)),
        to_ns: loss.span.map(|(_, to)| ns(to)),
        count: loss.count,
    };
    let mut rows: Vec<Loss> = losses.iter().map(row).collect();
    rows.sort_by_key(|loss| (loss.from_ns, loss.to_ns, loss.what));
    rows.into_iter().collect()
}
