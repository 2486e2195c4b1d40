//! `.sympath`

use super::shared::symbols::{SymbolArgs, symbol_options};
use super::shared::{fields, groups};
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_model::Untrusted;
use handlescope_session::grammar::value::SWITCH;
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolPathArgs {
    /// Locations to search for symbols.
    pub symbols: SymbolArgs,
    /// `-retry`: search again for what was not found.
    pub retry: bool,
}

fields!(SymbolPathArgs { symbols: SymbolArgs });

pub struct SymPath;

impl Command for SymPath {
    type Args = SymbolPathArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sympath"],
        group: groups::SESSION,
        usage: "[OPTION…] [PATH]",
        arguments: Arguments::SymbolPath,
        summary: "show or set the symbol path",
        details: "PATH is written like _NT_SYMBOL_PATH: folders, cache*FOLDER and \
             srv*CACHE*SERVER, joined by semicolons. Everything after the command and its options \
             is the path. Relative folders are relative to the current folder, even when it \
             changes. .dump Symbols shows which symbols were found where.",
        examples: &Example::lines([
            ".sympath examples/symbols",
            ".sympath -symServer ms",
            ".sympath srv*C:\\Symbols*https://msdl.microsoft.com/download/symbols",
            ".sympath -retry",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<SymbolPathArgs>] = &[
        OptionGroup {
            title: "Where symbols come from",
            options: &{
                let [_, server, cache, folder] = symbol_options();
                [server, cache, folder]
            },
        },
        OptionGroup {
            title: "Missing symbols",
            options: &[Opt {
                names: &["-retry"],
                help: "search again for missing symbols",
                details: "Files that a server does not have are remembered for a week, across \
                     sessions, and a server that does not answer or is too slow is skipped for \
                     this session. This option forgets both.",
                example: "-retry",
                take: to(&(SWITCH, |args, ()| args.retry = true)),
            }],
        },
    ];

    /// Takes everything after the command as the path, because a path has spaces and semicolons; only options before it
    /// are excluded.
    fn parse(entered: &EnteredLine<'_>) -> Result<SymbolPathArgs, ParseError> {
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
            Some(path) => {
                session.set_symbol_path(&path);
                session.warn_of_symbol_path(messages);
            }
            None if args.retry => {}
            None if session.settings.symbol_path().is_empty() => {
                writeln!(out, "No symbol path is set; .sympath PATH sets one.")?;
            }
            None => writeln!(out, "{}", Untrusted(&session.settings.symbol_path().to_string()))?,
        }
        if args.retry {
            session.retry_symbols();
            messages.note("missing symbols are searched again");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::args;
    use handlescope_session::settings::Settings;

    #[test]
    fn a_path_may_stand_behind_options() {
        let args: SymbolPathArgs =
            args(".sympath -symCache c -symFolder f srv*https://x;/my symbols");
        let path = args.symbols.symbol_path(&Settings::default()).expect("a path").expect("a path");
        assert_eq!(path.to_string(), "f;cache*c;srv*https://x;/my symbols");
    }
}
