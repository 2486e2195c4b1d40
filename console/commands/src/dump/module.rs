//! `.dump Module`, `.dump Version` and `.dump Symbols`: modules, their versions and their symbols.

use crate::shared::choice::{command_line_option, new_process_option, process_option};
use crate::shared::fields;
use crate::{Command, CommandError, DumpContext, Signature, Tabular};
use handlescope_query::{self as query, ModuleCriteria, ProcessCriteria};
use handlescope_render as render;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::TEXTS;
use handlescope_session::grammar::{Example, Opt, OptionGroup, To, to};

pub struct Module;

impl Command for Module {
    type Args = ModuleCriteria;
    const SIGNATURE: Signature = Signature {
        names: &["Module"],
        summary: "modules with their versions, symbol identities and load addresses",
        details: "One row per image; JSON output also lists where and when each was loaded.",
        examples: &[
            Example { goal: "all modules", line: ".dump Module" },
            Example { goal: "what one program loaded", line: ".dump Module -pn leaky" },
            Example { goal: "which ntdll.dll it was", line: ".dump Module -Dll ntdll.dll -json" },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<ModuleCriteria>] = MODULES;

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::module_columns().names()));

    fn answer(args: &ModuleCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::modules(dump.sources, args, dump.cancel)?;
        dump.note_no_match(&answers);
        dump.write(render::modules(&answers)?)
    }
}

pub struct Version;

impl Command for Version {
    type Args = ModuleCriteria;
    const SIGNATURE: Signature = Signature {
        names: &["Version"],
        summary: "modules with version, product and description, by the processes that loaded them",
        details: "Modules loaded by the same processes are listed together, under the names of \
             the processes.",
        examples: &[
            Example { goal: "all modules", line: ".dump Version" },
            Example { goal: "one module", line: ".dump Version -Dll leaky.exe" },
            Example { goal: "modules of Windows", line: ".dump Version -VersionFilter *system32*" },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<ModuleCriteria>] = MODULES;

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::version_columns().names()));

    fn answer(args: &ModuleCriteria, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::modules(dump.sources, args, dump.cancel)?;
        dump.note_no_match(&answers);
        let format = dump.shared.output.format();
        dump.write(render::versions(&answers, format, &dump.display())?)
    }
}

pub struct Symbols;

impl Command for Symbols {
    /// `-Dll`: modules with a matching file name.
    type Args = Option<Filter>;
    const SIGNATURE: Signature = Signature {
        names: &["Symbols"],
        summary: "where the symbols of each module were found, or why not",
        details: "Looks up the names of all frames of the trace and lists their modules: distinct \
             frames, frames with names, the PDB that the trace names, and where it was found or \
             why not. Modules with the most missing names come first. Nothing is downloaded \
             unless a server is named; see .sympath.",
        examples: &[
            Example { goal: "what is missing?", line: ".dump Symbols" },
            Example { goal: "one module", line: ".dump Symbols -Dll leaky.exe" },
            Example { goal: "the most missing names", line: ".dump Symbols -TopN 5" },
        ],
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<Option<Filter>>] = &[OptionGroup {
        title: "Which modules",
        options: &[dll_option(&(TEXTS, |name, filter| *name = Some(filter)))],
    }];

    const TABLE: Option<Tabular> = Some(Tabular::new(|| render::symbol_columns().names()));

    fn answer(name: &Self::Args, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let answers = query::symbols(dump.sources, name.as_ref(), dump.names, dump.cancel)?;
        dump.write(render::symbols(&answers)?)?;
        // The answer already says so.
        dump.session.skip_missing_symbols();
        Ok(())
    }
}

const fn dll_option<A>(set: &'static To<A, Filter>) -> Opt<A> {
    Opt {
        names: &["-Dll", "-md"],
        help: "modules with this name",
        details: "The file name with its extension, as in ntdll.dll.",
        example: "-Dll leaky.exe;kernel*",
        take: to(set),
    }
}

/// The options of `.dump Module` and `.dump Version`.
pub const MODULES: &[OptionGroup<ModuleCriteria>] = &[OptionGroup {
    title: "Which modules",
    options: &[
        process_option(
            "modules that these processes loaded",
            "The name may go without .exe; a number is a pid; ! in front excludes. \
                      Kernel modules belong to every process.",
        ),
        command_line_option("modules that processes with this command line loaded"),
        new_process_option("modules loaded by processes that started or ended in the trace"),
        dll_option(&(TEXTS, |args, filter| args.name = Some(filter))),
        Opt {
            names: &["-VersionFilter"],
            help: "modules with this path, version, product, description or company",
            details: "Compared with each of these texts and with all of them joined; an exclusion \
                      must match none. Paths are compared with and without drive letters.",
            example: "-VersionFilter !*Microsoft*",
            take: to(&(TEXTS, |args, filter| args.version = Some(filter))),
        },
    ],
}];

fields!(ModuleCriteria { loaders: ProcessCriteria });
