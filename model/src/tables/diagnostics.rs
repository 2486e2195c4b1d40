//! What the source held, and what of it was lost or left out.

use super::declare::table;

table! {
    /// Columns of the event counts table, sorted by kind.
    EventCounts => EventCounts,
    /// How often one kind of event occurs in the source, kept or not.
    EventCount {
        /// hook:GGTT, classic:{guid}:{opcode} or manifest:{guid}:{id}; etwanalyzer:{kind} in an extract of ETWAnalyzer, htrace:{kind} in text of !htrace.
        kind: String,
        /// Name, for the kinds this program knows.
        name: Option<String>,
        /// Number of events.
        count: u64,
    }
}

table! {
    /// Columns of the warnings table.
    Warnings => Warnings,
    /// One kind of damage, loss or omission.
    Warning {
        /// What happened, in words.
        kind: String,
        /// How often.
        count: u64,
        /// Where it happened first.
        ["bytes from the start of the file"] first_offset: Option<u64>,
        /// The same in a text, line from 1.
        first_line: Option<u64>,
    }
}
