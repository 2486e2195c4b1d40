//! Options about stacks.

use super::args::ObjectRefArgs;
use crate::shared::choice::{
    fold_stack_option, show_address_option, show_line_option, show_stack_option,
    stack_filter_option, stack_from_option,
};
use handlescope_session::grammar::value::FRAMES;
use handlescope_session::grammar::{Opt, to};

/// Options that filter by stacks, and say how stacks are shown.
pub static STACKS: &[Opt<ObjectRefArgs>] = &[
    show_stack_option(),
    CREATE_STACK,
    DESTROY_STACK,
    STACK_FILTER,
    show_address_option(),
    show_line_option(),
];

/// Options that filter by stacks.
pub static FILTERS: &[Opt<ObjectRefArgs>] = &[
    CREATE_STACK,
    DESTROY_STACK,
    STACK_FILTER,
    fold_stack_option("-FoldStack *!std::*"),
    stack_from_option("-StackFrom *leaky::*"),
];

const CREATE_STACK: Opt<ObjectRefArgs> = Opt {
    names: &["-CreateStack"],
    help: "objects created on a matching stack",
    details: "All events of the object are kept. A filter is compared with each line \
              module!function of the stack.",
    example: "-CreateStack *EventCache::GetOrCreate*",
    take: to(&(FRAMES, |args, filter| args.criteria.create_stack = Some(filter))),
};

const DESTROY_STACK: Opt<ObjectRefArgs> = Opt {
    names: &["-DestroyStack"],
    help: "objects ended on a matching stack",
    details: "The end is the delete, the last unmap or the last close. All events of the \
              object are kept.",
    example: "-DestroyStack *NtTerminateProcess*",
    take: to(&(FRAMES, |args, filter| args.criteria.destroy_stack = Some(filter))),
};

const STACK_FILTER: Opt<ObjectRefArgs> = stack_filter_option(
    "only events with a matching stack",
    "Objects without such an event are left out. A filter is compared with each line \
     module!function of the stack; an exclusion must match no line.",
    &(FRAMES, |args, filter| args.criteria.stack_filter = Some(filter)),
);
