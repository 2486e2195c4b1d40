//! Options that choose modules.

use crate::{
    grammar::{Doc, Opt, OptionGroup, Take, Texts},
    query::ModuleCriteria,
};

/// `-Dll`
pub(crate) const DLL: Doc = Doc {
    names: &["-Dll", "-md"],
    help: "modules of this name",
    details: "The file name with its extension, as in ntdll.dll.",
    example: "-Dll leaky.exe;kernel*",
};

/// The options of `.dump Module` and `.dump Version`.
pub(crate) const MODULES: &[OptionGroup<ModuleCriteria>] = &[OptionGroup {
    title: "Which modules",
    options: &[
        Opt {
            doc: Doc {
                names: &["-pn", "-ProcessName"],
                help: "modules that these processes loaded",
                details: "The name may go without .exe; a number is a pid; ! in front excludes. \
                          Kernel modules belong to every process.",
                example: "-pn leaky",
            },
            take: Take::Processes(|args| &mut args.process),
        },
        Opt { doc: DLL, take: Take::Filter(Texts::Other, |args| &mut args.name) },
    ],
}];
