//! `-fd`: which of the loaded files are meant.

use crate::{
    filter::Filter,
    grammar::{Opt, Take, Texts},
};

/// `-fd`
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
