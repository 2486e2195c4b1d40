//! What the source contains, data that was lost or left out, and time ranges with missing events.

use super::declare::{codes, table};

table! {
    /// Columns of the event counts table, sorted by kind, then by name.
    EventCounts => EventCounts,
    /// Number of events of one kind in the source, kept or not.
    EventCount {
        /// hook:GGTT, classic:{guid}:{opcode} or manifest:{guid}:{id}; etwanalyzer:{kind} in an extract of ETWAnalyzer, htrace:{kind} in text of !htrace, minidump:{kind} in a dump.
        kind: String,
        /// Name of the provider: Windows Kernel, or as the trace calls it; null if nothing names it.
        provider: Option<String>,
        /// Name: task and opcode from the metadata of the trace, or a name built into this program; null if nothing names it.
        name: Option<String>,
        /// Number of events.
        count: u64,
        /// Time of the first event; null in extracts of text and of ETWAnalyzer.
        ["ns since session start"] first_ns: Option<i64>,
        /// Time of the last event.
        ["ns since session start"] last_ns: Option<i64>,
    }
}

table! {
    /// Columns of the warnings table.
    Warnings => Warnings,
    /// One kind of damage, loss or omission.
    Warning {
        /// Description of the kind of loss or damage.
        kind: String,
        /// Number of occurrences.
        count: u64,
        /// Location of the first occurrence.
        ["bytes from the start of the file"] first_offset: Option<u64>,
        /// Location of the first occurrence in a text, line from 1.
        first_line: Option<u64>,
    }
}

codes! {
    /// Evidence of missing events.
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
        /// The end of a session that was not stopped, or of a ring without its last buffer.
        Unwritten = "unwritten",
    }
}

table! {
    /// Columns of the losses table, by time; those that may be anywhere come first.
    Losses => Losses,
    /// A time range in which events may be missing; outside of all of them nothing is known to be missing.
    Loss {
        /// 0 missing_buffers, 1 damaged_buffer, 2 loss_flag, 3 loss_record, 4 events_lost, 5 buffers_lost, 6 overwritten, 7 unwritten.
        what: u32,
        /// Start of the loss; null if it may be anywhere in the trace.
        ["ns since session start"] from_ns: Option<i64>,
        /// End of the loss; null if it may be anywhere in the trace.
        ["ns since session start"] to_ns: Option<i64>,
        /// Number of buffers, of events for events_lost and loss_record; null if it is unknown or in another row.
        count: Option<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_describes_its_numbers() {
        let names: Vec<String> = LossKind::ALL
            .into_iter()
            .map(|kind| format!("{} {}", kind.code(), kind.name()))
            .collect();
        assert_eq!(Losses::what.spec().doc.trim(), format!("{}.", names.join(", ")));
    }
}
