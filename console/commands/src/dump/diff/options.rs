//! The arguments of `.dump Diff` and their options.

use std::path::PathBuf;

use crate::shared::choice::{
    command_line_option, kind_instead_option, new_process_option, process_option,
    show_address_option, show_line_option, show_stack_option, suspect_option,
    type_of_handles_option,
};
use crate::shared::gate::{Gate, format_option};
use crate::shared::ignore::{IgnoreArgs, ignore_option, ignored_option};
use crate::shared::{fields, groups};
use handlescope_fleet::FleetChoice;
use handlescope_query::{DiffCriteria, ProcessCriteria};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{
    ALLOCATION_KINDS, FILE, OBJECT_TYPES, POINT, SUSPECT, ValueKind,
};
use handlescope_session::grammar::{Opt, OptionGroup, to};
use handlescope_session::settings::StackDisplayArgs;

/// Arguments of `.dump Diff`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiffArgs {
    /// `-From`: a snapshot or a time; `None` for the start.
    pub from: Option<String>,
    /// `-To`: a snapshot or a time; `None` for the end.
    pub to: Option<String>,
    /// `-flame`: the file to write.
    pub flame: Option<PathBuf>,
    /// `-Kind`: allocations of these kinds instead of handles.
    pub kind: Option<Filter>,
    pub criteria: DiffCriteria,
    /// `-Format`: findings of two traces.
    pub gate: Gate,
    /// `-Ignore` and `-Ignored`: known leaks.
    pub ignore: IgnoreArgs,
    /// Traces of a dataset.
    pub fleet: FleetChoice,
    /// `-build`: the builds to compare in a dataset.
    pub builds: Option<[String; 2]>,
}

fields!(DiffArgs {
    criteria.owners: ProcessCriteria,
    criteria.stacks: StackDisplayArgs,
    gate: Gate,
    ignore: IgnoreArgs,
    fleet: FleetChoice,
});

/// The option that names a picture.
pub const FLAME: &str = "-flame";

/// All options, under the headings of the help.
pub static OPTIONS: &[OptionGroup<DiffArgs>] = &[
    OptionGroup { title: "Which handles", options: WHICH },
    OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
    OptionGroup { title: groups::DISPLAY, options: DISPLAY },
    OptionGroup { title: groups::SCRIPTS, options: PICTURES },
];

static WHICH: &[Opt<DiffArgs>] = &[
    Opt {
        names: &["-From"],
        help: "handles opened after this point",
        details: "A .snapshot name or a time as for .converttime, in quotes if it has a space. \
             Default: the start of the trace. After .diff the option name may be omitted.",
        example: "-From 0.5s",
        take: to(&(ValueKind { placeholder: "A", ..POINT }, |args, point| args.from = Some(point))),
    },
    Opt {
        names: &["-To"],
        help: "handles open at this point",
        details: "As for -From. Default: the end of the trace.",
        example: "-To 1.5s",
        take: to(&(ValueKind { placeholder: "B", ..POINT }, |args, point| args.to = Some(point))),
    },
    process_option(
        "handles and allocations that these processes own",
        "The owner, not the creator as for -pn of .dump ObjectRef. The name may go without .exe; \
         a number is a pid; ! in front excludes.",
    ),
    command_line_option("handles and allocations owned by processes with this command line"),
    new_process_option(
        "handles and allocations owned by processes that started or ended in the trace",
    ),
    type_of_handles_option(&(OBJECT_TYPES, |args, filter| {
        args.criteria.object_type = Some(filter);
    })),
    suspect_option(
        "only groups of a suspect of .why",
        &(SUSPECT, |args, id| args.criteria.suspect = Some(id)),
    ),
    kind_instead_option(
        "Between two points: allocations made after A and still there at B, by process, kind, \
         allocator and stack. Of two traces: allocations never freed, or freed only by process \
         exit, by program, kind, allocator and functions of the allocating stack; all heaps count \
         as one allocator, because their handles differ. Groups are judged by the same test as \
         handles, by bytes, or by number if they have no bytes; less than 64 KiB of memory does not \
         count.",
        &(ALLOCATION_KINDS, |args, filter| args.kind = Some(filter)),
    ),
];

static DISPLAY: &[Opt<DiffArgs>] =
    &[show_stack_option(), show_address_option(), show_line_option()];

static PICTURES: &[Opt<DiffArgs>] = &[
    format_option(),
    Opt {
        names: &[FLAME],
        help: "draw the difference as a flame graph instead",
        details: "NAME.svg is a picture for a browser. Between two points, the width of a frame is \
         the number of its handles open at B; the type on top is red if there are more than at A, \
         blue if fewer. Of two traces, the width is the number of handles leaked in the second, \
         and the type is red or blue if that is more or fewer than expected from the first in the \
         same time. With -Kind, the width is bytes allocated.",
        example: "-flame grown.svg",
        take: to(&(FILE, |args, file| args.flame = Some(file))),
    },
];
