//! Kinds of option values: how each is shown, read and completed.

use std::borrow::Cow;
use std::path::PathBuf;

use handlescope_symbols::{ServerChoice, SymbolSourcesError};

use crate::filter::{Days, Filter, ProcessFilter};
use crate::paths::with_home;
use crate::values::{
    ColumnChoice, CountRange, CountUnit, FailOn, NamesFile, ProcessFormat, SuspectId, TimeDigits,
    TimeFormat, TimeRange, TopN, ValueError, address, bytes, length, no_choice, number,
    process_format, process_words, time_format, time_words,
};

/// Words, each with its meaning.
pub type WordMeanings = Vec<(&'static str, &'static str)>;

/// A kind of value that is read as a `T`. Help, completion and highlighting use `ValueKind<()>`.
pub struct ValueKind<T: 'static> {
    /// Placeholder for the value in the help, unless `words` are shown; empty if there is no value.
    pub placeholder: &'static str,
    /// Minimum and maximum number of words. An optional word takes the next token unless that looks like an option.
    pub arity: (usize, usize),
    /// Whether an optional word must be a number, so that `-TopN 1 trace.etl` leaves the file alone.
    pub ends_with_number: bool,
    /// Whether the option may be given several times: all values count, or the last one. With two filters, it would not
    /// be clear which.
    pub is_repeatable: bool,
    /// Whether the option does anything, rather than just being accepted.
    pub has_effect: bool,
    /// The words the value may be, or be made of, if there are only a few.
    pub words: fn() -> WordMeanings,
    pub offers: Offers,
    /// Reads the words after the option's name.
    pub read: fn(&ValueKind<T>, &[&str]) -> Result<T, ValueError>,
}

/// What completion offers for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    Nothing,
    /// One of the words.
    Words,
    /// Several of the words, separated by commas.
    List,
    /// Texts that a filter is matched against.
    Texts(FilterTextKind),
    Processes,
    Suspects,
    /// Files to write.
    Files,
    Folders,
    /// Files to read.
    Traces,
    Servers,
    /// Names of points in time.
    Points,
    /// A column of the answer's table.
    Column,
    /// Several of its columns, separated by commas, or all.
    Columns,
}

/// Kind of text that a filter is matched against, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterTextKind {
    ObjectNames,
    ObjectTypes,
    /// Frames: `module!function`.
    Frames,
    AllocationKinds,
    /// Names of allocators.
    Allocators,
    /// Paths of loaded files.
    LoadedFiles,
    /// Values without completion: addresses, handle values, command lines.
    Other,
}

impl<T> ValueKind<T> {
    /// A value of one word.
    const fn new(
        placeholder: &'static str,
        read: fn(&ValueKind<T>, &[&str]) -> Result<T, ValueError>,
    ) -> ValueKind<T> {
        let (is_repeatable, has_effect, offers) = (true, true, Offers::Nothing);
        let (arity, words, ends_with_number) = ((1, 1), Vec::new, false);
        ValueKind {
            placeholder,
            arity,
            ends_with_number,
            is_repeatable,
            has_effect,
            words,
            offers,
            read,
        }
    }

    /// Returns the same value without the type it is read as.
    pub fn any(&self) -> ValueKind<()> {
        let ValueKind { placeholder, arity, ends_with_number, is_repeatable, .. } = *self;
        let ValueKind { has_effect, words, offers, .. } = *self;
        let read: fn(&ValueKind<()>, &[&str]) -> Result<(), ValueError> = |_, _| Ok(());
        ValueKind {
            placeholder,
            arity,
            ends_with_number,
            is_repeatable,
            has_effect,
            words,
            offers,
            read,
        }
    }

    /// Whether a word can be the value at this index, counted from 0.
    pub fn takes(&self, index: usize, word: &str) -> bool {
        let may_be_missing = index >= self.arity.0;
        let is_like_number =
            word.starts_with(|first: char| "+-.".contains(first) || first.is_ascii_digit());
        !(self.ends_with_number && may_be_missing) || is_like_number
    }

    /// Returns the placeholder in the help: all words, or only the first if the line would be long.
    pub fn placeholder(&self) -> Cow<'static, str> {
        const SHORT: usize = 20;
        if self.offers != Offers::Words {
            return self.placeholder.into();
        }
        let words: Vec<&str> = (self.words)().into_iter().map(|(word, _)| word).collect();
        let joined = match words.join("|") {
            long if long.len() > SHORT => {
                format!("{}|…", words.first().copied().unwrap_or_default())
            }
            joined => joined,
        };
        if self.arity.0 == 0 { format!("[{joined}]").into() } else { joined.into() }
    }

    /// Whether the value is a filter.
    pub fn is_filter(&self) -> bool {
        matches!(self.offers, Offers::Texts(_) | Offers::Processes)
    }

    /// Returns the index of a word.
    fn position(&self, word: &str) -> Result<usize, ValueError> {
        let known = (self.words)();
        let position = known.iter().position(|(known, _)| known.eq_ignore_ascii_case(word));
        position.ok_or_else(|| no_choice(word, || known.iter().map(|(known, _)| *known)))
    }
}

fn first<'a>(words: &[&'a str]) -> &'a str {
    words.first().copied().unwrap_or_default()
}

fn text(words: &[&str]) -> Result<String, ValueError> {
    Ok(first(words).to_owned())
}

fn path(words: &[&str]) -> Result<PathBuf, ValueError> {
    Ok(with_home(first(words)))
}

/// Turns a filter's error into a reason to refuse the value.
#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn refused(error: impl ToString) -> ValueError {
    ValueError::Filter { reason: error.to_string() }
}

/// Rejects a part that excludes the empty text, for texts that are never empty.
fn check_exclusions(filter: &str) -> Result<(), ValueError> {
    match filter.split(';').any(|part| part == "!") {
        true => Err(ValueError::NothingExcluded { filter: filter.to_owned() }),
        false => Ok(()),
    }
}

/// No value.
pub const SWITCH: ValueKind<()> = ValueKind { arity: (0, 0), ..ValueKind::new("", |_, _| Ok(())) };

/// A filter on texts that may be empty: objects without a name, events without a stack. A lone `!` excludes these.
const fn filter(texts: FilterTextKind) -> ValueKind<Filter> {
    let filter = ValueKind::new("FILTER", |_, words| Filter::new(first(words)).map_err(refused));
    ValueKind { is_repeatable: false, offers: Offers::Texts(texts), ..filter }
}

/// A filter on texts that are never empty.
const fn filter_of_some(texts: FilterTextKind) -> ValueKind<Filter> {
    let read: fn(&ValueKind<Filter>, &[&str]) -> _ = |_, words| {
        check_exclusions(first(words))?;
        Filter::new(first(words)).map_err(refused)
    };
    ValueKind { read, ..filter(texts) }
}

pub const OBJECT_NAMES: ValueKind<Filter> = filter(FilterTextKind::ObjectNames);
pub const OBJECT_TYPES: ValueKind<Filter> = filter_of_some(FilterTextKind::ObjectTypes);
pub const FRAMES: ValueKind<Filter> = filter(FilterTextKind::Frames);
pub const ALLOCATION_KINDS: ValueKind<Filter> = filter_of_some(FilterTextKind::AllocationKinds);
pub const ALLOCATORS: ValueKind<Filter> = filter(FilterTextKind::Allocators);
pub const TEXTS: ValueKind<Filter> = filter(FilterTextKind::Other);
/// Loaded files, optionally by several filters.
pub const LOADED_FILES: ValueKind<Filter> = ValueKind {
    placeholder: "FILES",
    is_repeatable: true,
    ..filter_of_some(FilterTextKind::LoadedFiles)
};
pub const PROCESSES: ValueKind<ProcessFilter> = ValueKind {
    is_repeatable: false,
    offers: Offers::Processes,
    ..ValueKind::new("PROCESSES", |_, words| {
        check_exclusions(first(words))?;
        ProcessFilter::new(first(words)).map_err(refused)
    })
};
/// Days: `FROM..TO` or a filter.
pub const DAYS: ValueKind<Days> = ValueKind {
    is_repeatable: false,
    ..ValueKind::new("DAYS", |_, words| Days::parse(first(words)).map_err(refused))
};
/// The id of a suspect, or its beginning.
pub const SUSPECT: ValueKind<SuspectId> = ValueKind {
    offers: Offers::Suspects,
    ..ValueKind::new("ID", |_, words| SuspectId::new(first(words)))
};

/// A suspect by rank or id, or processes by name.
pub const WHICH: ValueKind<Which> = ValueKind {
    offers: Offers::Suspects,
    ..ValueKind::new("RANK|ID|PROCESSES", |_, words| Which::new(first(words)))
};

/// A suspect of `.why`, or the processes to list suspects of.
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    Rank(usize),
    Id(SuspectId),
    Processes(ProcessFilter),
}

impl Which {
    /// A number with at most this many digits is a rank.
    const MAX_RANK_DIGITS: usize = 5;

    /// A number is a rank. Hexadecimal digits are an id if at least one is decimal; so are decimal ones after a 0.
    /// Anything else names processes.
    fn new(word: &str) -> Result<Self, ValueError> {
        let id = SuspectId::new(word);
        if word.len() <= Self::MAX_RANK_DIGITS
            && !(word.starts_with('0') && id.is_ok())
            && let Ok(rank) = word.parse()
        {
            return Ok(Self::Rank(rank));
        }
        match id {
            Ok(id) if word.contains(|letter: char| letter.is_ascii_digit()) => Ok(Self::Id(id)),
            _ => ProcessFilter::new(word).map(Self::Processes).map_err(refused),
        }
    }
}

/// What fails a gate; several are combined.
pub const FAIL_ON: ValueKind<FailOn> =
    ValueKind::new("leak|steady|PROCESSES:N", |_, words| FailOn::parse(first(words)));

/// `min [max]` in seconds.
pub const TIMES: ValueKind<TimeRange> = ValueKind {
    arity: (1, 2),
    ends_with_number: true,
    ..ValueKind::new("SECONDS [MAX]", |_, words| {
        TimeRange::parse(first(words), words.get(1).copied())
    })
};
/// A start time in seconds.
pub const SINCE: ValueKind<TimeRange> =
    ValueKind::new("SECONDS", |_, words| TimeRange::parse(first(words), None));
/// A duration in nanoseconds, not negative.
pub const LENGTH: ValueKind<i64> = ValueKind::new("SECONDS", |_, words| length(first(words)));
/// `min [max]` of a count.
pub const COUNTS: ValueKind<CountRange> = ValueKind {
    arity: (1, 2),
    ends_with_number: true,
    ..ValueKind::new("MIN [MAX]", |_, words| {
        CountRange::parse(CountUnit::None, first(words), words.get(1).copied())
    })
};
/// `min [max]` of a number of bytes.
pub const SIZES: ValueKind<CountRange> = ValueKind {
    arity: (1, 2),
    ends_with_number: true,
    ..ValueKind::new("BYTES [MAX]", |_, words| {
        CountRange::parse(CountUnit::Bytes, first(words), words.get(1).copied())
    })
};
/// `n [skip]`.
pub const TOP: ValueKind<TopN> = ValueKind {
    arity: (1, 2),
    ends_with_number: true,
    ..ValueKind::new("N [SKIP]", |_, words| TopN::parse(first(words), words.get(1).copied()))
};
pub const ADDRESS: ValueKind<u64> = ValueKind::new("ADDRESS", |_, words| address(first(words)));
/// A number of bytes.
pub const SIZE: ValueKind<u64> = ValueKind::new("BYTES", |_, words| bytes(first(words)));
/// A whole number, at least 1.
pub const NUMBER: ValueKind<u64> = ValueKind::new("N", |_, words| number(first(words)));
/// Like [`NUMBER`], but optional.
pub const MAYBE_NUMBER: ValueKind<Option<u64>> = ValueKind {
    arity: (0, 1),
    ends_with_number: true,
    ..ValueKind::new("[N]", |_, words| words.first().map(|word| number(word)).transpose())
};
pub const DIGITS: ValueKind<TimeDigits> =
    ValueKind::new("DIGITS", |_, words| TimeDigits::parse(first(words)));

/// A file to write.
pub const FILE: ValueKind<PathBuf> =
    ValueKind { offers: Offers::Files, ..ValueKind::new("FILE", |_, words| path(words)) };
/// A file to write, optional.
pub const MAYBE_FILE: ValueKind<Option<PathBuf>> = ValueKind {
    arity: (0, 1),
    offers: Offers::Files,
    ..ValueKind::new("[FILE]", |_, words| words.first().map(|_| path(words)).transpose())
};
/// Returns the value for the file an answer may go to.
pub const fn file_in(names: NamesFile) -> ValueKind<Option<PathBuf>> {
    match names {
        NamesFile::Never => ValueKind { arity: (0, 0), ..ValueKind::new("", |_, _| Ok(None)) },
        NamesFile::Maybe => MAYBE_FILE,
        NamesFile::Always => {
            ValueKind { arity: (1, 1), placeholder: FILE.placeholder, ..MAYBE_FILE }
        }
    }
}
pub const FOLDER: ValueKind<PathBuf> =
    ValueKind { offers: Offers::Folders, ..ValueKind::new("FOLDER", |_, words| path(words)) };
/// Files to read: a name, folder or pattern.
pub const QUERY: ValueKind<String> =
    ValueKind { offers: Offers::Traces, ..ValueKind::new("QUERY", |_, words| text(words)) };
/// Symbol servers, separated by semicolons.
pub const SYMBOL_SERVERS: ValueKind<Vec<ServerChoice>> = ValueKind {
    offers: Offers::Servers,
    ..ValueKind::new("SERVER", |_, words| {
        let refused = |error: SymbolSourcesError| ValueError::Server { reason: error.to_string() };
        ServerChoice::parse_list(first(words)).map_err(refused)
    })
};
/// A column of the answer's table.
pub const COLUMN: ValueKind<String> =
    ValueKind { offers: Offers::Column, ..ValueKind::new("COLUMN", |_, words| text(words)) };
/// Several of its columns, separated by commas, or all.
pub const COLUMN_LIST: ValueKind<ColumnChoice> = ValueKind {
    offers: Offers::Columns,
    ..ValueKind::new("COLUMN,…", |_, words| Ok(ColumnChoice::parse(first(words))))
};
/// A point in time: a time or a name.
pub const POINT: ValueKind<String> =
    ValueKind { offers: Offers::Points, ..ValueKind::new("TIME", |_, words| text(words)) };
/// Words joined by spaces.
pub const TEXT: ValueKind<String> = ValueKind::new("TEXT", |_, words| Ok(words.join(" ")));
/// Two texts that belong together.
pub const PAIR: ValueKind<[String; 2]> = ValueKind {
    arity: (2, 2),
    ..ValueKind::new("A B", |_, words| {
        Ok([0, 1].map(|index| words.get(index).copied().unwrap_or_default().to_owned()))
    })
};

pub const TIME_FORMAT: ValueKind<TimeFormat> = ValueKind {
    words: || time_words().collect(),
    offers: Offers::Words,
    ..ValueKind::new("", |_, words| time_format(first(words)))
};
/// Format of starts and ends of processes.
pub const PROCESS_FORMAT: ValueKind<ProcessFormat> = ValueKind {
    words: || process_words().collect(),
    offers: Offers::Words,
    ..ValueKind::new("", |_, words| process_format(first(words)))
};
/// Index of one of the words.
pub const WORD: ValueKind<usize> = ValueKind {
    offers: Offers::Words,
    ..ValueKind::new("", |value, words| value.position(first(words)))
};
/// Like [`WORD`]; the first one by default.
pub const MAYBE_WORD: ValueKind<usize> = ValueKind {
    arity: (0, 1),
    offers: Offers::Words,
    ..ValueKind::new("", |value, words| words.first().map_or(Ok(0), |word| value.position(word)))
};
/// Indices of some of the words, separated by commas, in the order given.
pub const WORDS: ValueKind<Vec<usize>> = ValueKind {
    offers: Offers::List,
    ..ValueKind::new("WORD,…", |value, words| {
        first(words).split(',').map(|word| value.position(word)).collect()
    })
};

/// No value, and no effect.
pub const IGNORED: ValueKind<()> = ValueKind { has_effect: false, ..SWITCH };
