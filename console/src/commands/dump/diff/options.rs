//! The arguments of `.dump Diff`, and the options that fill them.

use std::path::PathBuf;

use crate::commands::shared::choice::{
    kind_instead_option, process_option, show_address_option, show_line_option, show_stack_option,
    suspect_option, type_of_handles_option,
};
use crate::commands::shared::{fields, groups};
use crate::filter::Filter;
use crate::grammar::{Opt, OptionGroup, Take};
use crate::query::DiffCriteria;
use crate::settings::StackDisplayArgs;

/// What the kind is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DiffArgs {
    /// `-From`: a snapshot or a time; none for the start.
    pub(super) from: Option<String>,
    /// `-To`: a snapshot or a time; none for the end.
    pub(super) to: Option<String>,
    /// `-flame`: the file to write.
    pub(super) flame: Option<PathBuf>,
    /// `-Kind`: allocations of such kinds instead of handles.
    pub(super) kind: Option<Filter>,
    pub(super) criteria: DiffCriteria,
}

fields!(DiffArgs { criteria.stacks: StackDisplayArgs });

/// The option that names a picture.
pub(super) const FLAME: &str = "-flame";

/// All options, under the headings of the help.
pub(super) static OPTIONS: &[OptionGroup<DiffArgs>] = &[
    OptionGroup { title: "Which handles", options: WHICH },
    OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    OptionGroup { title: groups::SCRIPTS, options: PICTURES },
];

static WHICH: &[Opt<DiffArgs>] = &[
    Opt {
        names: &["-From"],
        help: "handles that were opened after this point",
        details: "A name of .snapshot or a time as for .converttime; in quotes when it has a space. The \
                  start of the trace unless it is given. After .diff the name of the option may be left out.",
        example: "-From 0.5s",
        take: Take::Point("A", |args| &mut args.from),
    },
    Opt {
        names: &["-To"],
        help: "handles that are open at this point",
        details: "Written as for -From. The end of the trace unless it is given.",
        example: "-To 1.5s",
        take: Take::Point("B", |args| &mut args.to),
    },
    process_option(
        "handles and allocations that these processes own",
        "The owner, not the creator of the object as in -pn of .dump ObjectRef. The name may go without .exe; a \
         number is a pid; ! in front excludes.",
        |args| &mut args.criteria.process,
    ),
    type_of_handles_option(|args| &mut args.criteria.object_type),
    suspect_option("only groups of a suspect of .why", |args| &mut args.criteria.suspect),
    kind_instead_option(
        "Between two points: what was allocated after A and is still allocated at B, by process, kind, \
         allocator and stack, and what there is at both. Of two traces: what nothing freed, or only the \
         end of the process, by program, kind, allocator and functions of the stack that allocated it; \
         heaps count as one allocator, because their handles differ. What is worse is said by the test that \
         handles have, of the bytes of memory and the number of what has none; of memory 64 KiB do not matter.",
        |args| &mut args.kind,
    ),
];

static DISPLAY: &[Opt<DiffArgs>] =
    &[show_stack_option(), show_address_option(), show_line_option()];

static PICTURES: &[Opt<DiffArgs>] = &[Opt {
    names: &[FLAME],
    help: "draw the difference as a flame graph instead",
    details: "NAME.svg is a picture for a browser. Between two points a frame is as wide as handles that \
              were opened there are open at B; the type on top is red where these are more than at A, blue \
              where they are fewer. Of two traces it is as wide as handles are lost in the second one, and the type \
              is red or blue where these are more or fewer than expected from the first one in the same time. With -Kind it is \
              as wide as bytes are allocated.",
    example: "-flame grown.svg",
    take: Take::File(|args| &mut args.flame),
}];
