//! What is missing of the events of a trace, and when.

use super::codes::codes;
use super::declare::table;

codes! {
    /// What shows that events are missing.
    LossKind {
        /// Numbers of buffers that are not in the file.
        MissingBuffers = "missing_buffers",
        /// A buffer of which not all events could be read.
        DamagedBuffer = "damaged_buffer",
        /// A buffer that the session marked: it lost events or a buffer before.
        LossFlag = "loss_flag",
        /// Records of lost events, of a session in real time.
        LossRecord = "loss_record",
        /// The number of lost events in the header.
        EventsLost = "events_lost",
        /// The number of lost buffers in the header.
        BuffersLost = "buffers_lost",
        /// A ring overwrote its older events: nothing of the time that it recorded is missing by that.
        Overwritten = "overwritten",
    }
}

table! {
    /// Columns of the losses table, by time; those that may be anywhere come first.
    Losses => Losses,
    /// A time in which events may be missing; nothing is known to be missing outside of all of them.
    Loss {
        /// 0 missing_buffers, 1 damaged_buffer, 2 loss_flag, 3 loss_record, 4 events_lost, 5 buffers_lost, 6 overwritten.
        what: u32,
        /// Events before it are there; null where it may be anywhere in the trace.
        ["ns since session start"] from_ns: Option<i64>,
        /// Events after it are there; null where it may be anywhere in the trace.
        ["ns since session start"] to_ns: Option<i64>,
        /// Number of buffers, of events for events_lost and loss_record; null where it is not known or in another row.
        count: Option<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_says_what_its_numbers_mean() {
        let named = |kind: LossKind| format!("{} {}", kind.code(), kind.name());
        let all: Vec<String> = LossKind::ALL.into_iter().map(named).collect();
        assert_eq!(Losses::what.spec().doc.trim(), format!("{}.", all.join(", ")));
    }
}
