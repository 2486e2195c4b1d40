//! The arguments of `.sql` and their options.

use std::io::{self, Read};
use std::path::PathBuf;

use handlescope_model::open_file;

use crate::shared::options::{format_options, row_options};
use crate::shared::{fields, groups};
use crate::{CommandError, SharedArgs};
use handlescope_session::grammar::value::SIZE;
use handlescope_session::grammar::{Opt, OptionGroup, to, without_comments};

/// Maximum size of a query file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Arguments of `.sql`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlArgs {
    pub query: QuerySource,
    /// Memory limit of the query in bytes.
    pub max_memory: Option<u64>,
    /// The files to query, and format and destination of the answer.
    pub shared: SharedArgs,
}

fields!(SqlArgs { shared: SharedArgs });

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub enum QuerySource {
    Text(String),
    /// A file that contains the query.
    File(PathBuf),
}

impl Default for QuerySource {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl QuerySource {
    /// Returns the query without the comments before it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn text(&self) -> Result<String, CommandError> {
        let mut text = String::new();
        let text = match self {
            Self::Text(text) => text,
            Self::File(path) => {
                let mut read = || {
                    open_file(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
                    if text.len() as u64 > MAX_FILE {
                        Err(io::Error::from(io::ErrorKind::FileTooLarge))
                    } else {
                        Ok(())
                    }
                };
                read().map_err(|source| CommandError::QueryFile { path: path.clone(), source })?;
                text.trim_start_matches('\u{feff}')
            }
        };
        Ok(without_comments(text).trim_end().to_owned())
    }
}

pub static OPTIONS: &[OptionGroup<SqlArgs>] = &[
    OptionGroup {
        title: groups::DISPLAY,
        options: &row_options("-SortBy pid SELECT name, pid FROM processes"),
    },
    OptionGroup { title: groups::SCRIPTS, options: &format_options() },
    OptionGroup {
        title: groups::LIMITS,
        options: &[Opt {
            names: &["-MaxMemory"],
            help: "memory limit of the query",
            details: "Half of the machine's memory by default. A query that needs more is \
                 stopped. Units: KB, KiB, MB, MiB, GB, GiB.",
            example: "-MaxMemory 4GB SELECT count(*) FROM events",
            take: to(&(SIZE, |args: &mut SqlArgs, bytes| args.max_memory = Some(bytes))),
        }],
    },
];
