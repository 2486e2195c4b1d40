//! Options that choose modules.

use super::choice::process_option;
use crate::{
    filter::Filter,
    grammar::{Opt, OptionGroup, Take, Texts},
    query::ModuleCriteria,
};

/// `-Dll`
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
            |args| &mut args.process,
        ),
        dll_option(|args| &mut args.name),
    ],
}];
