//! The options that every kind of `.dump` has.

use super::{files::files_option, groups::SCRIPTS};
use crate::{
    commands::context::SharedArgs,
    grammar::{Doc, Opt, OptionGroup, Take},
    values::JsonMode,
};

/// What every kind of `.dump` takes beside its own options.
pub(crate) const SHARED: &[OptionGroup<SharedArgs>] = &[OptionGroup {
    title: SCRIPTS,
    options: &[files_option(), json_option(), json_pretty_option()],
}];

/// Arguments that choose JSON.
pub(crate) trait TakesJson {
    fn json(&mut self) -> &mut JsonMode;
}

impl TakesJson for SharedArgs {
    fn json(&mut self) -> &mut JsonMode {
        &mut self.json
    }
}

/// `-json`
pub(crate) const fn json_option<A: TakesJson>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json"],
            help: "print one JSON document, one line per element",
            details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
            example: "-json",
        },
        take: Take::Set(|args| *args.json() = JsonMode::Lines),
    }
}

/// `-json-pretty`
pub(crate) const fn json_pretty_option<A: TakesJson>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json-pretty"],
            help: "print the same JSON document indented",
            details: "For reading; the content is that of -json.",
            example: "-json-pretty",
        },
        take: Take::Set(|args| *args.json() = JsonMode::Pretty),
    }
}
