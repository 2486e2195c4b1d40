//! Options that choose modules.

use super::choice::{ChoosesProcesses, command_line_option, new_process_option, process_option};
use crate::{
    filter::Filter,
    grammar::{Opt, OptionGroup, Take, Texts},
    query::{ModuleCriteria, ProcessCriteria},
};

pub(crate) const fn dll_option<A>(field: fn(&mut A) -> &mut Option<Filter>) -> Opt<A> {
    Opt {
        names: &["-Dll", "-md"],
        help: "modules of this name",
        details: "The file name with its extension, as in ntdll.dll.",
        example: "-Dll leaky.exe;kernel*",
        take: Take::Filter(Texts::Other, field),
    }
}

/// The options of `.dump Module` and `.dump Version`.
pub(crate) const MODULES: &[OptionGroup<ModuleCriteria>] = &[OptionGroup {
    title: "Which modules",
    options: &[
        process_option(
            "modules that these processes loaded",
            "The name may go without .exe; a number is a pid; ! in front excludes. \
                      Kernel modules belong to every process.",
            |args| &mut args.loaders.name,
        ),
        command_line_option(
            "modules that processes with this command line loaded",
            "Compared with the whole command line, so write * around a part of it.",
        ),
        new_process_option(
            "modules that processes loaded which started or ended in the trace",
            "With -pn and -CmdLine: all must fit the process.",
        ),
        dll_option(|args| &mut args.name),
        Opt {
            names: &["-VersionFilter"],
            help: "modules with such a path, version, product, description or company",
            details: "Compared with each of them, and with all in one line, one after the other; an \
                      exclusion must match none. Paths are compared with and without drive \
                      letters.",
            example: "-VersionFilter !*Microsoft*",
            take: Take::Filter(Texts::Other, |args| &mut args.version),
        },
    ],
}];

impl ChoosesProcesses for ModuleCriteria {
    fn processes(&mut self) -> &mut ProcessCriteria {
        &mut self.loaders
    }
}
