//! Options that say where symbols come from.

use super::{Doc, Opt, OptionGroup, Take, Texts};
use crate::command::{ExtractArgs, SymbolArgs, SymbolPathArgs, SymbolizeArgs};

/// What `-symServer` knows by name, each with its meaning.
pub(crate) const SERVERS: &[(&str, &str)] = &[
    ("ms", "Microsoft: Windows, .NET, Office"),
    ("google", "Google: Chrome"),
    ("ntsymbolpath", "the servers and folders of _NT_SYMBOL_PATH"),
];

/// Options of `.sympath`.
pub(crate) static SYMBOL_PATH: &[OptionGroup<SymbolPathArgs>] = &[
    OptionGroup { title: "Where symbols come from", options: &symbol_options() },
    OptionGroup {
        title: "What was missing",
        options: &[Opt {
            doc: Doc {
                names: &["-retry"],
                help: "look again for symbols that were not found",
                details: "What a server does not have is remembered for a week, also in other \
                          sessions, and one that gives no answer or is too slow is not asked \
                          again in this one. This forgets both.",
                example: "-retry",
            },
            take: Take::Switch(|args| &mut args.retry),
        }],
    },
];

/// Options of `.symbolize`.
pub(crate) static SYMBOLIZE: &[OptionGroup<SymbolizeArgs>] = &[OptionGroup {
    title: "Which files",
    options: &[Opt {
        doc: Doc {
            names: &["-fd", "-filedir"],
            help: "only loaded files with such a path",
            details: "Compared with the whole path and with the file name. Given twice, both must \
                      fit. Outside of the console, it names the files to load.",
            example: "-fd *leaky*",
        },
        take: Take::Filters(Texts::LoadedFiles, |args| &mut args.files),
    }],
}];

/// Arguments that say where symbols come from.
pub(super) trait TakesSymbols {
    /// What was said.
    fn symbols(&mut self) -> &mut SymbolArgs;
}

macro_rules! takes_symbols {
    ($($args:ty),*) => {$(
        impl TakesSymbols for $args {
            fn symbols(&mut self) -> &mut SymbolArgs {
                &mut self.symbols
            }
        }
    )*};
}

takes_symbols!(ExtractArgs, SymbolPathArgs);

/// The options of everybody who can say so.
pub(super) const fn symbol_options<A: TakesSymbols>() -> [Opt<A>; 3] {
    [
        Opt {
            doc: Doc {
                names: &["-symServer"],
                help: "symbol servers: ms, google, ntsymbolpath, or https://…, joined by ;",
                details: "A piece of a symbol path like srv*FOLDER*https://… will do, too. Names of \
                          functions are looked up when stacks are shown; nothing is downloaded \
                          unless a server is named.",
                example: "-symServer ms -fd examples/leaky.etl",
            },
            take: Take::Servers(|args| &mut args.symbols().servers),
        },
        Opt {
            doc: Doc {
                names: &["-symCache"],
                help: "a folder for downloaded symbols",
                details: "Without it they are kept in the folder for caches of the platform. Alone \
                          it says nothing of servers: those of _NT_SYMBOL_PATH count.",
                example: "-symCache cache -fd examples/leaky.etl",
            },
            take: Take::Folder(|args| &mut args.symbols().cache),
        },
        Opt {
            doc: Doc {
                names: &["-symFolder"],
                help: "a folder with symbols",
                details: "Is searched before servers are asked.",
                example: "-symFolder examples/symbols -fd examples/leaky.etl",
            },
            take: Take::Folder(|args| &mut args.symbols().folder),
        },
    ]
}
