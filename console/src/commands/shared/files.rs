//! `-fd`: which of the loaded files are meant.

use crate::{
    commands::context::SharedArgs,
    filter::Filter,
    grammar::{Opt, Take, Texts},
};

/// The arguments of a command that only takes `-fd`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FilesArgs {
    /// All of the filters must match.
    pub(crate) files: Vec<Filter>,
}

/// Arguments that choose among the loaded files.
pub(crate) trait TakesFiles {
    fn files(&mut self) -> &mut Vec<Filter>;
}

impl TakesFiles for FilesArgs {
    fn files(&mut self) -> &mut Vec<Filter> {
        &mut self.files
    }
}

impl TakesFiles for SharedArgs {
    fn files(&mut self) -> &mut Vec<Filter> {
        &mut self.files
    }
}

/// `-fd`
pub(crate) const fn files_option<A: TakesFiles>() -> Opt<A> {
    Opt {
        names: &["-fd", "-filedir"],
        help: "only loaded files with such a path",
        details: "Compared with the whole path and with the file name. Given twice, both must \
                  fit. Outside of the console, it names the files to load.",
        example: "-fd *leaky*",
        take: Take::Filters(Texts::LoadedFiles, |args| args.files()),
    }
}
