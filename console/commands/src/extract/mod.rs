//! `.extract` and `handlescope extract`

mod files;
mod options;

use std::path::Path;

use handlescope_model::{Trace, Untrusted};
use thiserror::Error;

pub use options::ExtractArgs;

use self::files::{ExtractionTally, ExtractionWork, Finish, extract_files, inputs};
use super::context::write_notes;
use super::shared::groups;
use super::shared::names::{NameSearch, save_for_etwanalyzer, store_names};
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::grammar::{Arguments, Example, OptionGroup, ParseError, Token};
use handlescope_session::paths::with_home;
use handlescope_session::suggest;
use handlescope_session::terminal::Messages;
use handlescope_session::trace::FrameNameCache;

/// ETWAnalyzer extractors with data that every extract has.
const ALWAYS: &str = "All Default ObjectRef Module";

/// Other ETWAnalyzer extractors; no extract has their data.
const NEVER: &str = "CPU Disk DNS Exception File Frequency LBR Memory PMC Power Stacktag TCP ThreadPool \
                     TraceLog VirtualAlloc Window";

/// Returns the names of extractors, each with whether it is supported here.
fn extractors() -> impl Iterator<Item = (&'static str, bool)> {
    let always = ALWAYS.split(' ').map(|name| (name, true));
    always.chain(NEVER.split(' ').map(|name| (name, false)))
}

/// Message about the unsupported extractors.
const EXTRACTED: &str = "not extracted; an extract has objects, handles, mappings, \
                                    processes, modules and stacks";

/// A request for data that no extract has.
#[derive(Debug, Error)]
#[error("{command}: {}: {EXTRACTED}; name ObjectRef, or leave {} out", Untrusted(.names), Untrusted(.names))]
struct NothingToExtract {
    command: String,
    /// Requested names, joined by commas.
    names: String,
}

pub struct Extract;

impl Command for Extract {
    type Args = ExtractArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".extract"],
        group: groups::FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "extract traces without loading them",
        details: "QUERY is written as for .load. ETWAnalyzer's keywords are accepted, too: \
             ObjectRef, All, Default and Module are always extracted; others are skipped with a \
             note, and an error if there are no other keywords.",
        examples: &Example::lines([
            ".extract examples/leaky.etl",
            ".extract ObjectRef -fd examples -NoOverwrite",
            ".extract examples/leaky.etl -stacks all -outdir extracts",
            ".extract examples/leaky.etl -symbols -symFolder examples/symbols",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<ExtractArgs>] = options::OPTIONS;

    /// Parses words as extractors, or as files like those after `-fd`.
    fn parse(entered: &EnteredLine<'_>) -> Result<ExtractArgs, ParseError> {
        let (mut args, words) = entered.options_and_words(Self::OPTIONS)?;
        let (mut queries, mut has_known) = (Vec::new(), false);
        for word in words {
            match extractors().find(|(name, _)| name.eq_ignore_ascii_case(&word.text)) {
                Some(_) if with_home(&word.text).exists() => queries.push(word.text.clone()),
                Some((_, true)) => has_known = true,
                Some((name, false)) => args.unknown_extractors.push(name.to_owned()),
                None => queries.push(file_or_typo(word)?),
            }
        }
        if !has_known && !args.unknown_extractors.is_empty() {
            return Err(ParseError::refused(NothingToExtract {
                command: entered.command(),
                names: args.unknown_extractors.join(", "),
            }));
        }
        args.queries.splice(0..0, queries);
        if args.queries.is_empty() {
            return Err(entered.missing("at least one trace, folder or pattern"));
        }
        Ok(args)
    }

    /// Does not load the extracted traces. Settings about symbols apply to the session.
    fn run(args: ExtractArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, screen, out, messages, .. } = context;
        write_notes(&args.notes, messages);
        if let Some(path) = args.symbols.symbol_path(&session.settings)? {
            if !args.store_names && !args.etwanalyzer {
                messages.note(format_args!(
                    "note: functions are resolved when stacks are shown; set the symbol path with \
                     .sympath {path}, or --symbol-path '{path}'"
                ));
            }
            session.set_symbol_path(&path);
            session.warn_of_symbol_path(messages);
        }
        if !args.unknown_extractors.is_empty() {
            let names = args.unknown_extractors.join(", ");
            messages.note(format_args!("note: {names}: {EXTRACTED}"));
        }
        let mut tally = ExtractionTally::default();
        let inputs = inputs(&args, messages, &mut tally);
        if args.store_names || args.etwanalyzer {
            session.search_beside(&inputs);
        }
        let session = &**session;
        let symbolizer = || session.symbolizer();
        let finish = |output: &Path, messages: &mut Messages<'_>| {
            let (trace, frames) = (Trace::open(output)?, FrameNameCache::default());
            let search = NameSearch { frames: &frames, symbolizer: symbolizer(), cancel };
            if args.etwanalyzer {
                save_for_etwanalyzer(&trace, output, search, messages)
            } else {
                store_names(&trace, search, messages)
            }
        };
        let is_unfinished = args.store_names || args.etwanalyzer;
        let finish = is_unfinished.then_some(&finish as &Finish<'_>);
        let overwrite = session.overwrite(args.force);
        let work =
            ExtractionWork { args: &args, inputs: &inputs, overwrite, finish, width: screen.width };
        let result = extract_files(&work, tally, cancel, out, messages);
        session.warn_of_missing_symbols(messages);
        context.session.search_beside_files();
        let (ExtractionTally { files, failed }, requested) = result?;
        if failed > 0 {
            Err(CommandError::NotExtracted { failed, files })
        } else {
            requested.check(context.messages)
        }
    }
}

/// Takes a word that is not an extractor as a file, unless it looks like a mistyped extractor.
fn file_or_typo(word: &Token) -> Result<String, ParseError> {
    let is_name = word.text.chars().all(char::is_alphanumeric);
    let names = extractors().map(|(name, _)| name);
    match suggest::nearest(&word.text, names) {
        Some(name) if is_name && !with_home(&word.text).exists() => {
            Err(ParseError::unexpected(word, suggest::did_you_mean(name)))
        }
        _ => Ok(word.text.clone()),
    }
}
