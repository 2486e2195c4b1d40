//! Options about groups of handles.

use super::args::ObjectRefArgs;
use crate::shared::choice::{
    add_columns, fold_stack_option, saturated, show_time_option, stack_from_option,
};
use handlescope_query::{Domain, GroupColumn};
use handlescope_session::grammar::value::{NUMBER, TOP, ValueKind, WORDS};
use handlescope_session::grammar::{Opt, to};

/// Options for groups instead of objects.
pub static GROUPS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "group handles and views in a tree, instead of listing objects",
        details: "Columns in any order, separated by commas; groups that leak most come first on \
             each level. Other filters apply first. A handle belongs to the process that opened it, \
             got it as a duplicate, or inherited it. Stacks with the same functions count as one. \
             Stats add up to the totals, but an object whose handles are in several groups counts \
             in each. Open: listed by the rundown at the end of the trace or, without one, opened \
             and not closed in the trace.",
        example: "-GroupBy process,type,createstack",
        take: to(&(
            ValueKind { words: || GroupColumn::words(Domain::Handles), ..WORDS },
            |args, indices| {
                add_columns(
                    args.criteria.groups.by.get_or_insert_default(),
                    &GroupColumn::of(Domain::Handles),
                    &indices,
                );
            },
        )),
    },
    Opt {
        names: &["-MinCount"],
        help: "only groups of at least N handles and views",
        details: "On every level. Omitted groups are counted.",
        example: "-GroupBy type -MinCount 10",
        take: to(&(NUMBER, |args, number| args.criteria.groups.min_count = Some(number))),
    },
    Opt {
        names: &["-Depth"],
        help: "only the first N columns of the groups",
        details: "Deeper groups are summed up.",
        example: "-GroupBy process,type -Depth 1",
        take: to(&(NUMBER, |args, number| args.criteria.groups.depth = Some(saturated(number)))),
    },
    Opt {
        names: &["-Rows"],
        help: "only N groups of the last column, after the first SKIP",
        details: "Counts over all groups in the order of the output; -TopN limits the groups within \
                  each group. For scripts that read page by page: only these groups get names of \
                  functions.",
        example: "-GroupBy process,type -Rows 2 1",
        take: to(&(TOP, |args, rows| args.criteria.groups.rows = Some(rows))),
    },
    fold_stack_option("-GroupBy createstack -FoldStack *!std::*"),
    stack_from_option("-GroupBy createstack -StackFrom *leaky::*"),
    show_time_option(
        "show open handles of each group over time, in N parts of the trace",
        "As bars and numbers: handles opened and not yet closed at the end of each part. \
             Handles from before the trace are not included. Growth: steady with its rate, burst, \
             once, balanced, or short if too few to judge; see .help growth.",
        "-GroupBy type -ShowTime 24",
    ),
];
