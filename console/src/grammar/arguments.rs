//! What follows the name of a command, for completion and highlighting.

/// Words, each with its meaning.
pub(crate) type Words = Vec<(&'static str, &'static str)>;

/// What may follow the name of a command.
#[derive(Debug, Clone, Copy)]
pub enum Arguments {
    None,
    /// The options of the command.
    Options,
    /// So many points in time at most, with options around them.
    Points(usize),
    /// Files on disk.
    Files,
    /// A folder on disk.
    Folder,
    /// One of these words, then anything.
    Word(fn() -> Words),
    /// Any number of these words.
    Words(fn() -> Words),
    /// A query, with options around it.
    Sql,
    LoadedFiles,
    SymbolPath,
    /// A kind of question, then its options.
    Kind,
    /// A command, or a kind of question.
    Topic,
    /// A setting, then its value.
    Setting,
    /// A name, then `=` and a command line.
    Alias,
}

/// A command line that is worth knowing.
pub struct Example {
    pub goal: &'static str,
    pub line: &'static str,
}
