//! Commands about files as entered.

/// What was typed behind `.load` or `.load+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// `.load+`: keep what is loaded.
    pub append: bool,
    /// `-r`: look into folders below folders.
    pub recursive: bool,
    /// `-all`: read all tables at once.
    pub all: bool,
}

/// What was typed behind `.dir`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirArgs {
    /// A folder or pattern; `None` for the current folder.
    pub query: Option<String>,
    /// `-r`: look into folders below.
    pub recursive: bool,
    /// `-od`: sort by time.
    pub by_time: bool,
}

impl LoadArgs {
    /// Files, folders and patterns in place of what is loaded.
    pub fn replacing(queries: Vec<String>) -> LoadArgs {
        LoadArgs { queries, ..LoadArgs::default() }
    }
}
