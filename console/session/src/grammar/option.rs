//! Arguments and options of a command: the names of options, their documentation, what their values set, and the
//! headings of the help that they stand under.

use std::borrow::Cow;
use std::path::PathBuf;

use handlescope_symbols::ServerChoice;

use super::token::Token;
use crate::filter::{Days, DaysError, Filter, FilterError, ProcessFilter};
use crate::paths::with_home;
use crate::values::{
    ColumnChoice, CountRange, CountUnit, FormatSpec, NamesFile, ProcessFormat, RequestedFormat,
    SuspectId, TimeDigits, TimeFormat, TimeRange, TopN, ValueError, address, bytes, length,
    no_choice, number, process_format, process_words, time_format, time_words,
};

/// Words, each with its meaning.
pub type Words = Vec<(&'static str, &'static str)>;

/// Arguments that may follow the name of a command.
#[derive(Debug, Clone, Copy)]
pub enum Arguments {
    None,
    /// The options of the command.
    Options,
    /// At most this many points in time, with options around them.
    Points(usize),
    /// Files on disk.
    Files,
    /// A folder on disk.
    Folder,
    /// One of these words, then anything.
    Word(fn() -> Words),
    /// Tables and views of SQL.
    Relations,
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
#[derive(Clone, Copy)]
pub struct Example {
    /// What it is for, if the line does not say so.
    pub goal: &'static str,
    pub line: &'static str,
}

impl Example {
    /// Command lines without goals.
    pub const fn lines<const N: usize>(lines: [&'static str; N]) -> [Example; N] {
        let mut examples = [Example { goal: "", line: "" }; N];
        let mut index = 0;
        while index < N {
            examples[index].line = lines[index];
            index += 1;
        }
        examples
    }
}

/// Documentation of an option.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// Names with their `-`; the first one is shown.
    pub names: &'static [&'static str],
    /// One-line summary.
    pub help: &'static str,
    /// Full explanation.
    pub details: &'static str,
    /// The option with a value, as one would type it.
    pub example: &'static str,
}

/// An option that fills a field of `A`, the arguments of its command.
pub struct Opt<A: 'static> {
    /// Names with their `-`; the first one is shown.
    pub names: &'static [&'static str],
    /// One-line summary.
    pub help: &'static str,
    /// Full explanation.
    pub details: &'static str,
    /// The option with a value, as one would type it.
    pub example: &'static str,
    /// The value, and the field it goes to.
    pub take: Take<A>,
}

// A derived implementation would require `A: Clone`.
impl<A> Clone for Opt<A> {
    fn clone(&self) -> Opt<A> {
        *self
    }
}

impl<A> Copy for Opt<A> {}

/// A value and where it goes. Kind and field are one thing, so that they cannot disagree.
pub enum Take<A: 'static> {
    /// No value: switches the field on.
    Switch(fn(&mut A) -> &mut bool),
    /// No value: does something to the arguments.
    Set(fn(&mut A)),
    /// A filter on text, and what texts those are.
    Filter(Texts, fn(&mut A) -> &mut Option<Filter>),
    /// A filter on text that may be given several times.
    Filters(Texts, fn(&mut A) -> &mut Vec<Filter>),
    Processes(fn(&mut A) -> &mut Option<ProcessFilter>),
    /// Days: `FROM..TO` or a filter.
    Days(fn(&mut A) -> &mut Option<Days>),
    /// Two texts that belong together; the placeholder stands for them in the help.
    Pair(&'static str, fn(&mut A) -> &mut Option<[String; 2]>),
    /// The id of a suspect, or how it begins.
    Suspect(fn(&mut A) -> &mut Option<SuspectId>),
    /// `min [max]` in seconds.
    Seconds(fn(&mut A) -> &mut Option<TimeRange>),
    /// A time from which on, in seconds.
    From(fn(&mut A) -> &mut Option<TimeRange>),
    /// A length of time in nanoseconds, not negative.
    Length(fn(&mut A) -> &mut Option<i64>),
    /// `min [max]` of a count.
    Count(CountUnit, fn(&mut A) -> &mut Option<CountRange>),
    /// `n [skip]`.
    Top(fn(&mut A) -> &mut Option<TopN>),
    Address(fn(&mut A) -> &mut Option<u64>),
    /// A number of bytes.
    Size(fn(&mut A) -> &mut Option<u64>),
    /// One of a few words with their meanings, and what its index among them does.
    Choice(fn() -> Words, fn(&mut A, usize)),
    /// Like [`Take::Choice`]; without a value it is the first word.
    MaybeChoice(fn() -> Words, fn(&mut A, usize)),
    /// Some of them, divided by commas, in their order.
    List(fn() -> Words, fn(&mut A, usize)),
    /// A whole number, at least 1.
    Number(fn(&mut A) -> &mut Option<u64>),
    /// Like [`Take::Number`], with a default for a missing value.
    MaybeNumber(u64, fn(&mut A) -> &mut Option<u64>),
    /// Format of times.
    TimeFormat(fn(&mut A) -> &mut Option<TimeFormat>),
    /// Format of starts and ends of processes.
    ProcessFormat(fn(&mut A) -> &mut Option<ProcessFormat>),
    Digits(fn(&mut A) -> &mut Option<TimeDigits>),
    /// A file to write.
    File(fn(&mut A) -> &mut Option<PathBuf>),
    /// The format of the answer, and whether a file to write follows.
    Format(&'static FormatSpec, NamesFile, fn(&mut A) -> &mut Vec<RequestedFormat>),
    Folder(fn(&mut A) -> &mut Option<PathBuf>),
    /// Files to read: a name, folder or pattern. May be given several times.
    Query(fn(&mut A) -> &mut Vec<String>),
    /// Symbol servers, divided by semicolons.
    Servers(fn(&mut A) -> &mut Option<Vec<ServerChoice>>),
    /// A column of the table that the answer is.
    Column(fn(&mut A) -> &mut Option<String>),
    /// Some of its columns, divided by commas, or all.
    Columns(fn(&mut A) -> &mut ColumnChoice),
    /// Text of at most this many words, joined by spaces; the placeholder stands for it in the help.
    Text(&'static str, usize, fn(&mut A) -> &mut Option<String>),
    /// A point in time: a time, or the name of one; the placeholder stands for it in the help.
    Point(&'static str, fn(&mut A) -> &mut Option<String>),
    /// At most this many values, none of them any use, because of the reason.
    Refused(usize, &'static str),
    /// At most this many values, all without effect, and the field for the reason.
    Ignored(usize, &'static str, fn(&mut A) -> &mut Vec<&'static str>),
}

impl<A> Clone for Take<A> {
    fn clone(&self) -> Take<A> {
        *self
    }
}

impl<A> Copy for Take<A> {}

/// Kind of texts that a filter is compared with, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    ObjectNames,
    ObjectTypes,
    /// Frames, as in `module!function`.
    Frames,
    AllocationKinds,
    /// Names of what allocates.
    Allocators,
    /// Paths of loaded files.
    LoadedFiles,
    /// Values without completion: addresses, handle values, command lines.
    Other,
}

impl Texts {
    /// Compiles a filter for such texts.
    fn filter(self, text: &str) -> Result<Filter, ValueError> {
        // An object may have no name, and an event no stack: a lone `!` excludes these.
        if matches!(self, Self::ObjectTypes | Self::AllocationKinds | Self::LoadedFiles) {
            check_exclusions(text)?;
        }
        Filter::new(text).map_err(refused)
    }
}

/// Refuses a part of a filter that excludes the empty text, where no text is empty.
fn check_exclusions(filter: &str) -> Result<(), ValueError> {
    match filter.split(';').any(|part| part == "!") {
        true => Err(ValueError::NothingExcluded { filter: filter.to_owned() }),
        false => Ok(()),
    }
}

/// Words with their meanings, and what each stands for.
pub type Choices<T> = [(&'static str, &'static str, T)];

/// The words with their meanings.
pub fn words<T>(choices: &Choices<T>) -> Words {
    choices.iter().map(|(word, meaning, _)| (*word, *meaning)).collect()
}

/// The choice that the word at an index stands for.
pub fn choice<T: Copy>(choices: &Choices<T>, index: usize) -> Option<T> {
    choices.get(index).map(|(.., choice)| *choice)
}

/// Kind of value that an option takes, for help, completion and highlighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    None,
    /// A filter on text, and what texts those are.
    Filter(Texts),
    Processes,
    Days,
    /// Two texts, with their placeholder.
    Pair(&'static str),
    /// The id of a suspect.
    Suspect,
    /// `min [max]` in seconds.
    Seconds,
    /// A length of time.
    Length,
    /// `min [max]` of a count.
    Count(CountUnit),
    /// `n [skip]`.
    Top,
    Address,
    /// A number of bytes.
    Size,
    /// One of these words, each with its meaning.
    Choice(Words),
    /// One of these words, which may be missing.
    MaybeChoice(Words),
    /// Some of these words, divided by commas.
    List(Words),
    /// A whole number, at least 1, which may be missing.
    Number {
        may_be_missing: bool,
    },
    Digits,
    /// A file to write.
    File,
    /// A file to write, which may be missing.
    MaybeFile,
    Folder,
    /// Files to read.
    Query,
    Servers,
    /// A column of the table that the answer is.
    Column,
    /// Some of its columns, divided by commas, or all.
    Columns,
    /// Text of at most this many words, with its placeholder.
    Text(&'static str, usize),
    /// A point in time, with its placeholder.
    Point(&'static str),
    /// At most this many values without effect.
    Ignored(usize),
}

impl ValueKind {
    /// Placeholder for the value in the help; empty when there is none.
    pub fn placeholder(&self) -> Cow<'static, str> {
        self.shape().0
    }

    /// Minimum and maximum number of values. A value that may be missing takes the next token whenever that
    /// does not look like an option.
    pub fn arity(&self) -> (usize, usize) {
        let (_, least, most) = self.shape();
        (least, most)
    }

    /// Whether the option may be given several times: all count, or the last one. Of two filters it
    /// would not be plain which.
    pub fn is_repeatable(&self) -> bool {
        match self {
            ValueKind::Filter(texts) => *texts == Texts::LoadedFiles,
            ValueKind::Processes | ValueKind::Days => false,
            _ => true,
        }
    }

    fn shape(&self) -> (Cow<'static, str>, usize, usize) {
        let (placeholder, least, most) = match self {
            ValueKind::None | ValueKind::Ignored(0) => ("", 0, 0),
            ValueKind::Filter(Texts::LoadedFiles) => ("FILES", 1, 1),
            ValueKind::Filter(_) => ("FILTER", 1, 1),
            ValueKind::Processes => ("PROCESSES", 1, 1),
            ValueKind::Days => ("DAYS", 1, 1),
            ValueKind::Pair(placeholder) => (*placeholder, 2, 2),
            ValueKind::Suspect => ("ID", 1, 1),
            ValueKind::Seconds => ("SECONDS [MAX]", 1, 2),
            ValueKind::Length => ("SECONDS", 1, 1),
            ValueKind::Count(CountUnit::None) => ("MIN [MAX]", 1, 2),
            ValueKind::Count(CountUnit::Bytes) => ("BYTES [MAX]", 1, 2),
            ValueKind::Top => ("N [SKIP]", 1, 2),
            ValueKind::Address => ("ADDRESS", 1, 1),
            ValueKind::Size => ("BYTES", 1, 1),
            ValueKind::Choice(words) => return (choice_placeholder(words).into(), 1, 1),
            ValueKind::MaybeChoice(words) => {
                return (format!("[{}]", choice_placeholder(words)).into(), 0, 1);
            }
            ValueKind::List(_) => ("WORD,…", 1, 1),
            ValueKind::Number { may_be_missing: false } => ("N", 1, 1),
            ValueKind::Number { may_be_missing: true } => ("[N]", 0, 1),
            ValueKind::Digits => ("DIGITS", 1, 1),
            ValueKind::File => ("FILE", 1, 1),
            ValueKind::MaybeFile => ("[FILE]", 0, 1),
            ValueKind::Folder => ("FOLDER", 1, 1),
            ValueKind::Query => ("QUERY", 1, 1),
            ValueKind::Servers => ("SERVER", 1, 1),
            ValueKind::Column => ("COLUMN", 1, 1),
            ValueKind::Columns => ("COLUMN,…", 1, 1),
            ValueKind::Text(placeholder, most) => (*placeholder, 1, *most),
            ValueKind::Point(placeholder) => (*placeholder, 1, 1),
            ValueKind::Ignored(most) => ("…", 0, *most),
        };
        (placeholder.into(), least, most)
    }
}

/// The words, or the first of them when all would make a long line.
fn choice_placeholder(words: &[(&'static str, &'static str)]) -> String {
    const SHORT: usize = 20;
    let joined = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|");
    match words.first() {
        Some((first, _)) if joined.len() > SHORT => format!("{first}|…"),
        _ => joined,
    }
}

/// An option for arguments of any type: what help, completion and highlighting see.
pub trait OptionSpec: Sync {
    /// Documentation of the option.
    fn doc(&self) -> Doc;
    fn value(&self) -> ValueKind;
    /// Whether it would take these values.
    fn check(&self, values: &[Token]) -> Result<(), ValueError>;

    /// The name that is shown.
    fn name(&self) -> &'static str {
        self.doc().names.first().copied().unwrap_or_default()
    }

    /// Whether it goes by this name, in any case.
    fn is_named(&self, name: &str) -> bool {
        self.doc().names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether it does anything, and is not only accepted.
    fn has_effect(&self) -> bool {
        !matches!(self.value(), ValueKind::Ignored(_))
    }

    /// Names and value: `-pn, -ProcessName PROCESSES`.
    fn usage(&self) -> String {
        let names = self.doc().names.join(", ");
        let placeholder = self.value().placeholder();
        if placeholder.is_empty() { names } else { format!("{names} {placeholder}") }
    }

    /// The line of the help about this option.
    fn help_line(&self) -> String {
        format!("{}  {}", self.usage(), self.doc().help)
    }
}

impl<A: Default> OptionSpec for Opt<A> {
    fn doc(&self) -> Doc {
        let Opt { names, help, details, example, .. } = *self;
        Doc { names, help, details, example }
    }

    fn value(&self) -> ValueKind {
        match &self.take {
            Take::Switch(_) | Take::Set(_) => ValueKind::None,
            Take::Filter(texts, _) | Take::Filters(texts, _) => ValueKind::Filter(*texts),
            Take::Processes(_) => ValueKind::Processes,
            Take::Days(_) => ValueKind::Days,
            Take::Pair(placeholder, _) => ValueKind::Pair(placeholder),
            Take::Suspect(_) => ValueKind::Suspect,
            Take::Seconds(_) => ValueKind::Seconds,
            Take::From(_) | Take::Length(_) => ValueKind::Length,
            Take::Count(unit, _) => ValueKind::Count(*unit),
            Take::Top(_) => ValueKind::Top,
            Take::Address(_) => ValueKind::Address,
            Take::Size(_) => ValueKind::Size,
            Take::Choice(words, _) => ValueKind::Choice(words()),
            Take::MaybeChoice(words, _) => ValueKind::MaybeChoice(words()),
            Take::List(words, _) => ValueKind::List(words()),
            Take::Number(_) => ValueKind::Number { may_be_missing: false },
            Take::MaybeNumber(..) => ValueKind::Number { may_be_missing: true },
            Take::TimeFormat(_) => ValueKind::Choice(time_words().collect()),
            Take::ProcessFormat(_) => ValueKind::Choice(process_words().collect()),
            Take::Digits(_) => ValueKind::Digits,
            Take::File(_) => ValueKind::File,
            Take::Format(_, NamesFile::Never, _) => ValueKind::None,
            Take::Format(_, NamesFile::Maybe, _) => ValueKind::MaybeFile,
            Take::Format(_, NamesFile::Always, _) => ValueKind::File,
            Take::Folder(_) => ValueKind::Folder,
            Take::Query(_) => ValueKind::Query,
            Take::Servers(_) => ValueKind::Servers,
            Take::Column(_) => ValueKind::Column,
            Take::Columns(_) => ValueKind::Columns,
            Take::Text(placeholder, most, _) => ValueKind::Text(placeholder, *most),
            Take::Point(placeholder, _) => ValueKind::Point(placeholder),
            Take::Ignored(most, ..) | Take::Refused(most, _) => ValueKind::Ignored(*most),
        }
    }

    fn check(&self, values: &[Token]) -> Result<(), ValueError> {
        self.apply(&mut A::default(), values)
    }
}

impl<A> Opt<A> {
    /// Reads the values and sets the field. An option given twice counts as last given.
    pub fn apply(&self, args: &mut A, values: &[Token]) -> Result<(), ValueError> {
        let value = |index: usize| values.get(index).map(|token| token.text.as_str());
        let (first, second) = (value(0).unwrap_or_default(), value(1));
        match &self.take {
            Take::Switch(field) => *field(args) = true,
            Take::Set(set) => set(args),
            Take::Filter(texts, field) => *field(args) = Some(texts.filter(first)?),
            Take::Filters(texts, field) => field(args).push(texts.filter(first)?),
            Take::Processes(field) => {
                check_exclusions(first)?;
                *field(args) = Some(ProcessFilter::new(first).map_err(refused)?);
            }
            Take::Days(field) => {
                let refused = |error: DaysError| ValueError::Filter { reason: error.to_string() };
                *field(args) = Some(Days::parse(first).map_err(refused)?);
            }
            Take::Pair(_, field) => {
                *field(args) = Some([first, second.unwrap_or_default()].map(str::to_owned));
            }
            Take::Suspect(field) => *field(args) = Some(SuspectId::new(first)?),
            Take::Seconds(field) => *field(args) = Some(TimeRange::parse(first, second)?),
            Take::From(field) => *field(args) = Some(TimeRange::parse(first, None)?),
            Take::Length(field) => {
                *field(args) = Some(length(first)?);
            }
            Take::Count(unit, field) => {
                *field(args) = Some(CountRange::parse(*unit, first, second)?);
            }
            Take::Top(field) => *field(args) = Some(TopN::parse(first, second)?),
            Take::Address(field) => *field(args) = Some(address(first)?),
            Take::Size(field) => *field(args) = Some(bytes(first)?),
            Take::Choice(words, choose) => choose(args, index_of(&words(), first)?),
            Take::MaybeChoice(words, choose) => {
                choose(args, value(0).map_or(Ok(0), |word| index_of(&words(), word))?);
            }
            Take::List(words, add) => {
                for word in first.split(',') {
                    add(args, index_of(&words(), word)?);
                }
            }
            Take::Number(field) => *field(args) = Some(number(first)?),
            Take::MaybeNumber(missing, field) => {
                *field(args) = Some(value(0).map_or(Ok(*missing), number)?);
            }
            Take::TimeFormat(field) => *field(args) = Some(time_format(first)?),
            Take::ProcessFormat(field) => *field(args) = Some(process_format(first)?),
            Take::Digits(field) => *field(args) = Some(TimeDigits::parse(first)?),
            Take::File(field) | Take::Folder(field) => *field(args) = Some(with_home(first)),
            Take::Format(spec, _, field) => {
                RequestedFormat { spec, file: value(0).map(with_home) }.add_to(field(args));
            }
            Take::Query(field) => field(args).push(first.to_owned()),
            Take::Servers(field) => {
                let servers = ServerChoice::parse_list(first)
                    .map_err(|error| ValueError::Server { reason: error.to_string() })?;
                *field(args) = Some(servers);
            }
            Take::Column(field) | Take::Point(_, field) => *field(args) = Some(first.to_owned()),
            Take::Columns(field) => *field(args) = ColumnChoice::parse(first),
            Take::Text(_, _, field) => {
                let words: Vec<&str> = values.iter().map(|token| token.text.as_str()).collect();
                *field(args) = Some(words.join(" "));
            }
            Take::Refused(_, reason) => return Err(ValueError::Refused { reason }),
            Take::Ignored(_, note, field) => field(args).push(note),
        }
        Ok(())
    }
}

/// A filter's error as a reason to refuse a value.
#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn refused(error: FilterError) -> ValueError {
    ValueError::Filter { reason: error.to_string() }
}

/// Position of a word among those allowed.
fn index_of(words: &[(&'static str, &str)], word: &str) -> Result<usize, ValueError> {
    let index = words.iter().position(|(known, _)| known.eq_ignore_ascii_case(word));
    index.ok_or_else(|| no_choice(word, || words.iter().map(|(known, _)| *known)))
}

/// Options that serve one purpose.
pub struct OptionGroup<A: 'static> {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    pub options: &'static [Opt<A>],
}

/// An [`OptionGroup`] for arguments of any type.
pub struct GroupView {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    pub options: Vec<&'static dyn OptionSpec>,
}

impl GroupView {
    /// Groups of options without their arguments.
    pub fn all<A: Default>(groups: &'static [OptionGroup<A>]) -> Vec<GroupView> {
        let views = groups.iter().map(|group| GroupView {
            title: group.title,
            options: group.options.iter().map(|option| option as _).collect(),
        });
        views.collect()
    }

    /// Groups with those that are shared, without shared options whose name another one has.
    pub fn with_shared(mut groups: Vec<GroupView>, shared: Vec<GroupView>) -> Vec<GroupView> {
        for GroupView { title, mut options } in shared {
            options.retain(|option| {
                let mut known = groups.iter().flat_map(|group| &group.options);
                !known.any(|known| option.doc().names.iter().any(|name| known.is_named(name)))
            });
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.options.splice(0..0, options).for_each(drop),
                None => groups.push(GroupView { title, options }),
            }
        }
        groups.retain(|group| !group.options.is_empty());
        groups
    }
}
