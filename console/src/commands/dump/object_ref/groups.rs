//! Options about groups of handles.

use super::args::ObjectRefArgs;
use crate::commands::shared::choice::{add_column, fold_stack_option, stack_from_option};
use crate::grammar::{Opt, Take};
use crate::query::GroupColumn;

/// So many parts of time are shown unless it is said.
const BUCKETS: u64 = 12;

/// Groups instead of objects.
pub(super) static GROUPS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "handles and views in groups instead of objects, as a tree",
        details: "Columns in any order, divided by commas; the groups of each level are ordered by what \
                  they lose. All other filters come first. A handle belongs to the process that opened it, \
                  was given it as a duplicate, or inherited it. Stacks are equal when their functions are. \
                  The figures sum up to the totals; only an object whose handles are in several groups \
                  counts in each. Open: listed by the rundown at the end or, without one, opened and not \
                  closed in the trace.",
        example: "-GroupBy process,type,createstack",
        take: Take::List(GroupColumn::words, |args, place| {
            add_column(&mut args.criteria.groups.by, GroupColumn::ALL.get(place));
        }),
    },
    Opt {
        names: &["-MinCount"],
        help: "only groups of at least N handles and views",
        details: "On every level. What is left out is counted.",
        example: "-GroupBy type -MinCount 10",
        take: Take::Number(|args| &mut args.min_count),
    },
    Opt {
        names: &["-Depth"],
        help: "only the first N columns of the groups",
        details: "The groups of the last one stay together.",
        example: "-GroupBy process,type -Depth 1",
        take: Take::Number(|args| &mut args.depth),
    },
    fold_stack_option("-GroupBy createstack -FoldStack *!std::*"),
    stack_from_option("-GroupBy createstack -StackFrom *leaky::*"),
    Opt {
        names: &["-ShowTime"],
        help: "how many handles of each group were open in N parts of the trace",
        details: "As bars and as numbers: opened and not yet closed at the end of each part. \
                  Handles from before the trace are not in it. Growth: steady with its rate, burst, \
                  once, balanced, or short for too few handles to judge; .help growth explains it.",
        example: "-GroupBy type -ShowTime 24",
        take: Take::MaybeNumber(BUCKETS, |args| &mut args.buckets),
    },
];
