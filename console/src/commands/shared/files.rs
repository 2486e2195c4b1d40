//! Options about files: `-fd`, which of the loaded ones are meant; `-MaxSize`, which of the others may be
//! unpacked; `-Force`, which may be replaced.

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

pub(crate) const fn max_size_option<A>(
    example: &'static str,
    field: fn(&mut A) -> &mut Option<u64>,
) -> Opt<A> {
    Opt {
        names: &["-MaxSize", "--max-size"],
        help: "largest trace in a .zip or .7z that is unpacked",
        details: "An archive that was made to harm could fill the disk. Unless it is given, 64 GiB, and \
                  nothing that is packed more than a thousandfold.",
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
                  extract, are never replaced. Behind > FILE it counts for that file.",
        example,
        take: Take::Switch(field),
    }
}
