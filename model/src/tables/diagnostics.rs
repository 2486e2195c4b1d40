//! What the source held, and what of it was lost or left out.

use super::declare::table;

table! {
    /// Columns of the event counts table, sorted by kind, then by name.
    EventCounts => EventCounts,
    /// How often one kind of event occurs in the source, kept or not.
    EventCount {
        /// hook:GGTT, classic:{guid}:{opcode} or manifest:{guid}:{id}; etwanalyzer:{kind} in an extract of ETWAnalyzer, htrace:{kind} in text of !htrace.
        kind: String,
        /// Name of the provider: Windows Kernel, or as the trace calls it; null where nothing names it.
        provider: Option<String>,
        /// Name: task and opcode as the metadata of the trace has them, or a name built into this program; null where nothing names it.
        name: Option<String>,
        /// Number of events.
        count: u64,
        /// When the first happened; null in extracts of text and of ETWAnalyzer, and of older versions.
        ["ns since session start"] first_ns: Option<i64>,
        /// When the last happened.
        ["ns since session start"] last_ns: Option<i64>,
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
