//! `.dump`: finds the kind, which may be anywhere between the options.

pub mod diff;
pub mod events;
pub mod module;
pub mod object_ref;
pub mod process;
pub mod resource;
pub mod stack;
pub mod why;

use handlescope_model::Untrusted;
use thiserror::Error;

use super::shared::groups;
use super::{AnyCommand, EnteredLine, Invocation, Registry, Signature};
use handlescope_session::grammar::parse::{Item, known_items};
use handlescope_session::grammar::{Arguments, Example, OptionSpec, ParseError, Token};
use handlescope_session::suggest::{self, followed_by};

/// `.dump` of what is loaded.
pub struct Dump {
    signature: &'static Signature,
    over_dataset: Option<&'static Dump>,
}

pub static DUMP: Dump = Dump {
    signature: &SIGNATURE,
    over_dataset: Some(&Dump {
        signature: &Signature {
            summary: "print tables of the loaded dataset",
            details: "Each KIND has its own options: see .help KIND. Names of kinds and options are \
                 case-insensitive. > FILE at the end writes the output into a file, in the format of its \
                 extension .csv, .json, .ndjson or .parquet; >> FILE appends it.",
            examples: &Example::lines([
                ".dump ObjectRef -Leak -GroupBy machine,process,createstack",
                ".dump Why -TopN 5",
            ]),
            ..SIGNATURE
        },
        over_dataset: None,
    }),
};

/// The kinds, in the order of the help.
static KINDS: &[&dyn AnyCommand] = &[
    &object_ref::ObjectRef,
    &why::Why,
    &diff::Diff,
    &resource::Resource,
    &process::Process,
    &module::Module,
    &module::Version,
    &stack::Stack,
    &module::Symbols,
    &events::Events,
    &events::Stats,
];

/// Why a line does not say what to dump.
#[derive(Debug, Error)]
enum KindError {
    #[error("{command} needs a kind, as in {example}; the kinds are {kinds}")]
    Missing {
        command: String,
        /// The command with a kind.
        example: String,
        /// Names of all kinds, joined by commas.
        kinds: String,
    },
    #[error(
        "{}",
        followed_by(
            format!("{command} has no kind '{}'{hint}", Untrusted(.kind)),
            &format!("the kinds are {kinds}")
        )
    )]
    Unknown {
        command: String,
        kind: String,
        /// Names of all kinds, joined by commas.
        kinds: String,
        /// Suggests what may be meant; may be empty.
        hint: String,
    },
}

const SIGNATURE: Signature = Signature {
    names: &[".dump"],
    group: groups::QUERIES,
    usage: "KIND [OPTION…]",
    arguments: Arguments::Kind,
    summary: "print tables of the loaded traces",
    details: "Each KIND has its own options: see .help KIND, or in a shell handlescope dump KIND \
         --help. Names of kinds and options are case-insensitive. > FILE at the end writes the \
         output into a file, in the format of its extension .csv, .json, .ndjson or .parquet; >> \
         FILE appends it, and at the prompt | PROGRAM, as in | grep heap, pipes it into a program.",
    examples: &Example::lines([
        ".dump ObjectRef -Leak -ShowStack",
        ".dump Process",
        ".dump Resource -Leak -TopN 10",
    ]),
};

impl AnyCommand for Dump {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn kinds(&self) -> &'static [&'static dyn AnyCommand] {
        KINDS
    }

    fn over_dataset(&self) -> Option<&'static dyn AnyCommand> {
        self.over_dataset.map(|dump| dump as _)
    }

    fn parse(&self, entered: &EnteredLine<'_>) -> Result<Invocation, ParseError> {
        let EnteredLine { tokens, registry, .. } = *entered;
        let words = DumpWords::new(tokens, registry);
        let command = entered.command();
        let Some(word) = words.word else {
            kind_taken_as_value(entered)?;
            let (example, kinds) = (example(&command, entered), kinds(registry));
            return Err(ParseError::refused(KindError::Missing { command, example, kinds }));
        };
        let Some(kind) = words.kind else {
            let hint = hint(&word.text, &command, registry);
            let (kind, kinds) = (word.text.clone(), kinds(registry));
            return Err(ParseError::refused(KindError::Unknown { command, kind, kinds, hint }));
        };
        kind.parse(&EnteredLine { tokens: &words.option_tokens, ..*entered })
    }
}

/// Kinds of ETWAnalyzer's `-dump` that do not exist here, each with the kind to use instead and what it shows.
const OF_ETWANALYZER: [(&str, &str, &str); 7] = [
    ("VirtualAlloc", "Resource", "lists allocations, including VirtualAlloc"),
    ("Memory", "Resource", "lists allocations of memory"),
    ("File", "ObjectRef -Type File", "lists handles of files"),
    ("ThreadPool", "ObjectRef -Type TpWorkerFactory", "lists handles of thread pools"),
    ("TraceLog", "Events", "lists what providers logged"),
    ("Mark", "Events", "counts all events"),
    ("Marker", "Events", "counts all events"),
];

/// Other kinds of ETWAnalyzer; they are about something else.
const NOT_ABOUT_HANDLES: [&str; 9] =
    ["CPU", "Disk", "Exception", "DNS", "TCP", "PMC", "LBR", "Power", "TestRun"];

/// Returns the end of the message about an unknown kind: what may be meant.
fn hint(unknown: &str, command: &str, registry: Registry) -> String {
    let is = |name: &str| name.eq_ignore_ascii_case(unknown);
    let is_there = |kind: &str| registry.kind(kind.split(' ').next().unwrap_or_default()).is_some();
    let mut other = OF_ETWANALYZER.iter();
    if let Some((_, kind, answer)) = other.find(|(name, kind, _)| is(name) && is_there(kind)) {
        return format!("; {command} {kind} {answer}");
    }
    if let Some(name) = NOT_ABOUT_HANDLES.iter().find(|name| is(name)) {
        return format!(
            "; {name} is not about handles; use ETWAnalyzer or Windows Performance Analyzer"
        );
    }
    let option = format!("-{unknown}");
    let mut kinds = registry.kinds();
    match kinds.find_map(|kind| Some((kind, kind.option(&option)?))) {
        Some((kind, option)) if option.value().arity.0 == 0 => {
            suggest::did_you_mean(&format!("{command} {} {}", kind.name(), option.name()))
        }
        _ => suggest::hint(unknown, registry.kinds().map(|kind| kind.name())),
    }
}

/// Returns the error of an option that took the kind as its value: in `-MinMaxTime 1 ObjectRef` it explains more than
/// the error about a missing kind.
fn kind_taken_as_value(entered: &EnteredLine<'_>) -> Result<(), ParseError> {
    let kind = entered.tokens.iter().find_map(|token| entered.registry.kind(&token.text));
    kind.map_or(Ok(()), |kind| kind.parse(entered).map(drop))
}

/// Returns an example: the command with a kind that has the typed option, and the option itself if it is a switch.
fn example(command: &str, entered: &EnteredLine<'_>) -> String {
    let EnteredLine { tokens, registry, .. } = *entered;
    let typed = registry.kinds().find_map(|kind| {
        let token = tokens.iter().find(|token| kind.option(&token.text).is_some())?;
        Some((kind, kind.option(&token.text)?, token))
    });
    match typed {
        Some((kind, option, token)) if option.has_effect() && option.value().arity.1 == 0 => {
            format!("{command} {} {}", kind.name(), token.text)
        }
        Some((kind, ..)) => format!("{command} {}", kind.name()),
        None => format!("{command} {}", registry.kinds().next().map_or("", |kind| kind.name())),
    }
}

/// Returns the names of all kinds.
fn kinds(registry: Registry) -> String {
    registry.kinds().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// The words after `.dump`. The kind may be anywhere between the options.
pub struct DumpWords<'t> {
    /// The word for the kind: among the words that are neither options nor values, the one that is a kind, or else the
    /// first.
    pub word: Option<&'t Token>,
    /// The kind, if the word is one.
    pub kind: Option<&'static dyn AnyCommand>,
    /// The other words: options and their values.
    pub option_tokens: Vec<Token>,
}

impl<'t> DumpWords<'t> {
    /// Looks for the kind.
    pub fn new(tokens: &'t [Token], registry: Registry) -> DumpWords<'t> {
        let items = known_items(&options_of_any_kind(registry), tokens);
        let words = items.into_iter().filter_map(|item| match item {
            Item::Word(token) => Some(token),
            _ => None,
        });
        let words: Vec<&Token> = words.collect();
        let named = words.iter().find(|word| registry.kind(&word.text).is_some());
        let word = named.or(words.first()).copied();
        let mut option_tokens = tokens.to_vec();
        option_tokens.retain(|token| word.is_none_or(|word| word.span != token.span));
        DumpWords { word, kind: word.and_then(|word| registry.kind(&word.text)), option_tokens }
    }

    /// Returns the options to consider: those of the kind, or of all kinds before the kind is known.
    pub fn options(&self, registry: Registry) -> Vec<&'static dyn OptionSpec> {
        self.kind.map_or_else(|| options_of_any_kind(registry), |kind| kind.options())
    }
}

/// Returns the options of all kinds; a name may occur several times.
fn options_of_any_kind(registry: Registry) -> Vec<&'static dyn OptionSpec> {
    registry.kinds().flat_map(|kind| kind.options()).collect()
}
