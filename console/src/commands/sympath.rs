//! `.sympath`

use super::shared::symbols::{SymbolArgs, symbol_options};
use super::shared::{fields, groups};
use super::{Command, CommandError, Context, Entered, Signature};
use crate::grammar::{Arguments, Opt, OptionGroup, ParseError, Take};
use handlescope_model::Untrusted;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SymbolPathArgs {
    /// Where symbols are to be looked for.
    pub(crate) symbols: SymbolArgs,
    /// `-retry`: look again for what was not found.
    pub(crate) retry: bool,
}

fields!(SymbolPathArgs { symbols: SymbolArgs });

pub(crate) struct SymPath;

impl Command for SymPath {
    type Args = SymbolPathArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sympath"],
        group: groups::SESSION,
        usage: "[OPTION…] [PATH]",
        arguments: Arguments::SymbolPath,
        summary: "show or set where symbols are looked for",
        details: "PATH is written like _NT_SYMBOL_PATH: folders, cache*FOLDER and srv*CACHE*SERVER, joined by \
                  a semicolon. Everything after the command and its options belongs to the path. \
                  Relative folders are those of the current folder, also when that changes. \
                  .dump Symbols shows what was found where.",
        examples: &[
            ".sympath examples/symbols",
            ".sympath -symServer ms",
            ".sympath srv*C:\\Symbols*https://msdl.microsoft.com/download/symbols",
            ".sympath -retry",
        ],
    };
    const OPTIONS: &'static [OptionGroup<SymbolPathArgs>] = &[
        OptionGroup { title: "Where symbols come from", options: &symbol_options() },
        OptionGroup {
            title: "What was missing",
            options: &[Opt {
                names: &["-retry"],
                help: "look again for symbols that were not found",
                details: "What a server does not have is recorded for a week, also for other \
                          sessions, and one that does not answer or is too slow gets no more \
                          requests in this one. This discards both.",
                example: "-retry",
                take: Take::Switch(|args| &mut args.retry),
            }],
        },
    ];

    /// A path has spaces and semicolons, so everything after the command belongs to it, except for
    /// options in front.
    fn parse(entered: &Entered<'_>) -> Result<SymbolPathArgs, ParseError> {
        let (mut args, words) = match entered.tokens {
            [first, ..] if first.is_switch() => entered.options_and_words(Self::OPTIONS)?,
            tokens => (SymbolPathArgs::default(), tokens.iter().collect()),
        };
        args.symbols.path = match words.as_slice() {
            [] => None,
            [path] => Some(path.text.clone()),
            [first, ..] => entered.line.get(first.span.start..).map(str::to_owned),
        };
        Ok(args)
    }

    fn run(args: SymbolPathArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, out, messages, .. } = context;
        match args.symbols.symbol_path(&session.settings)? {
            Some(path) => session.set_symbol_path(&path),
            None if args.retry => {}
            None if session.settings.symbol_path().is_empty() => {
                writeln!(out, "No symbol path is set; .sympath PATH sets one.")?;
            }
            None => writeln!(out, "{}", Untrusted(&session.settings.symbol_path().to_string()))?,
        }
        if args.retry {
            session.retry_symbols();
            messages.note("symbols that were missing are looked for again");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::args;
    use crate::settings::Settings;

    #[test]
    fn a_path_may_stand_behind_options() {
        let args: SymbolPathArgs =
            args(".sympath -symCache c -symFolder f srv*https://x;/my symbols");
        let path = args.symbols.symbol_path(&Settings::default()).expect("a path").expect("a path");
        assert_eq!(path.to_string(), "f;cache*c;srv*https://x;/my symbols");
    }
}
