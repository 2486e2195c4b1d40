//! Options about files: `-fd`, which of the loaded ones are meant; `-r`, which folders are searched; `-etwanalyzer`, what archives hold; `-MaxSize`, which
//! members of archives are read; `-Force`, which may be replaced.

use crate::{
    filter::Filter,
    grammar::{Opt, Take, Texts},
};

pub(crate) const fn files_option<A>(field: fn(&mut A) -> &mut Vec<Filter>) -> Opt<A> {
    Opt {
        names: &["-fd", "-filedir"],
        help: "only loaded files with such a path",
        details: "Compared with the whole path and with the file name. Given twice, both must \
                  fit. Outside of the console, it names the files to load.",
        example: "-fd *leaky*",
        take: Take::Filters(Texts::LoadedFiles, field),
    }
}

/// `-r` of commands that take queries.
pub(crate) const fn recursive_queries_option<A>(
    example: &'static str,
    field: fn(&mut A) -> &mut bool,
) -> Opt<A> {
    let help = "look into folders below folders, too";
    recursive_option(help, "Counts for every QUERY of the line, in any position.", example, field)
}

pub(crate) const fn recursive_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    field: fn(&mut A) -> &mut bool,
) -> Opt<A> {
    Opt { names: &["-r", "-rec", "-recursive"], help, details, example, take: Take::Switch(field) }
}

pub(crate) const fn etwanalyzer_option<A>(
    details: &'static str,
    example: &'static str,
    field: fn(&mut A) -> &mut bool,
) -> Opt<A> {
    let (names, help) = (&["-etwanalyzer", "--etwanalyzer"], "write what ETWAnalyzer reads, too");
    Opt { names, help, details, example, take: Take::Switch(field) }
}

pub(crate) const fn max_size_option<A>(
    example: &'static str,
    field: fn(&mut A) -> &mut Option<u64>,
) -> Opt<A> {
    Opt {
        names: &["-MaxSize", "--max-size"],
        help: "largest member of an archive that is read",
        details: "An archive that was made to harm could fill the disk. Unless it is given, 64 GiB for a trace \
                  in a .zip or .7z, 16 GiB for a table of an extract, 4 GiB for a part of an ETWAnalyzer \
                  extract; and nothing that is packed more than a thousandfold.",
        example,
        take: Take::Size(field),
    }
}

pub(crate) const fn force_option<A>(
    example: &'static str,
    field: fn(&mut A) -> &mut bool,
) -> Opt<A> {
    Opt {
        names: &["-Force"],
        help: "replace a file that handlescope did not write",
        details: "Without it, an existing file is replaced only if handlescope wrote it and it was \
                  not changed since. A trace or extract that is loaded, and the trace of a loaded \
                  extract, are never replaced. After > FILE it counts for that file.",
        example,
        take: Take::Switch(field),
    }
}
