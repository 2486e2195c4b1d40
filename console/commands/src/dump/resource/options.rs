//! The arguments of `.dump Resource` and their options.

use crate::shared::choice::{
    add_columns, command_line_option, fold_stack_option, kind_option, new_process_option,
    process_option, show_address_option, show_line_option, show_stack_option, show_time_option,
    stack_from_option, suspect_option, time_digits_option, time_format_option, time_option,
};
use crate::shared::options::{sort_details, sort_option};
use crate::shared::{fields, groups};
use handlescope_query::{
    AcquisitionCriteria, Domain, GroupColumn, GroupCriteria, ProcessCriteria, StackTrims,
};
use handlescope_session::grammar::value::{
    ALLOCATION_KINDS, ALLOCATORS, COLUMN, FRAMES, MAYBE_WORD, SIZES, SUSPECT, SWITCH, TIMES,
    ValueKind, WORDS,
};
use handlescope_session::grammar::{Opt, OptionGroup, WordChoices, choice, to, words};
use handlescope_session::settings::{DisplayArgs, StackDisplayArgs};

/// Arguments of `.dump Resource`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceArgs {
    pub criteria: AcquisitionCriteria,
    /// `-ShowTotal`: the columns to sum up by.
    pub total: Option<&'static [GroupColumn]>,
    pub display: DisplayArgs,
    /// `-SortBy`: bytes, count, or a column.
    pub sort_by: Option<String>,
}

fields!(ResourceArgs {
    criteria.creator: ProcessCriteria,
    criteria.stacks: StackDisplayArgs,
    criteria.groups: GroupCriteria,
    criteria.groups.trims: StackTrims,
    display: DisplayArgs,
});

const BY_KIND: [GroupColumn; 1] = [GroupColumn::Kind];
const BY_ALLOCATOR: [GroupColumn; 2] = [GroupColumn::Kind, GroupColumn::Allocator];

/// All options, under the headings of the help.
pub static OPTIONS: &[OptionGroup<ResourceArgs>] = &[
    OptionGroup { title: "Find what leaks", options: LEAKS },
    OptionGroup { title: "Which allocations", options: WHICH },
    OptionGroup { title: "Choose by stacks", options: STACKS },
    OptionGroup { title: "Count and group", options: GROUPS },
    OptionGroup { title: groups::DISPLAY, options: DISPLAY },
];

static LEAKS: &[Opt<ResourceArgs>] = &[
    Opt {
        names: &["-Leak"],
        help: "only leaked allocations of running processes",
        details: "By kind, allocator, process and allocating stack, most bytes first. Windows \
             frees everything when a process ends: -LeakAtExit shows allocations that only \
             process exit freed.",
        example: "-Leak",
        take: to(&(SWITCH, |args, ()| args.criteria.leak = true)),
    },
    Opt {
        names: &["-LeakAtExit"],
        help: "only allocations freed only by process exit",
        details: "In the same groups. With -Leak, both are shown.",
        example: "-LeakAtExit",
        take: to(&(SWITCH, |args, ()| args.criteria.leak_at_exit = true)),
    },
];

static WHICH: &[Opt<ResourceArgs>] = &[
    kind_option(
        "kinds: heap, commit, reserve, resource, gdi, user",
        "Heap blocks; pages committed and address space reserved by VirtualAlloc; resources that \
         events of other providers acquire and release; GDI and USER handles.",
        "-Kind heap;commit",
        &(ALLOCATION_KINDS, |args, filter| args.criteria.kind = Some(filter)),
    ),
    process_option(
        "allocations that these processes own",
        "The owner, even if another process allocated for it. The name may go without .exe; a \
         number is a pid; ! in front excludes. If a process is not in the trace, only its pid is \
         known.",
    ),
    command_line_option("allocations owned by processes with this command line"),
    new_process_option("allocations owned by processes that started or ended in the trace"),
    suspect_option(
        "only allocations leaked by a suspect of .why",
        &(SUSPECT, |args, id| args.criteria.suspect = Some(id)),
    ),
    Opt {
        names: &["-Allocator"],
        help: "allocators with this name: a heap, VirtualAlloc, or a name from events",
        details: "A heap is named by its handle, 0x and hex digits. The allocator of a GDI or USER \
                  handle is its type.",
        example: "-Allocator 0x1d0f2a30000",
        take: to(&(ALLOCATORS, |args, filter| args.criteria.allocator = Some(filter))),
    },
    Opt {
        names: &["-MinMaxSize"],
        help: "allocations of this size",
        details: "The whole size of an allocation that was freed in parts. Units: KiB, MB and so \
             on.",
        example: "-MinMaxSize 64KiB 1MB",
        take: to(&(SIZES, |args, range| args.criteria.size = Some(range))),
    },
    time_option(
        "allocations made in this time range, since session start",
        "In seconds, or with a unit: 10ms. A free without allocation counts at its own time.",
        &(TIMES, |args, times| args.criteria.time = Some(times)),
    ),
];

static STACKS: &[Opt<ResourceArgs>] = &[
    Opt {
        names: &["-CreateStack"],
        help: "only allocations whose stack contains this frame",
        details: "A filter is compared with each line module!function of the stack; an exclusion \
             must match no line. An allocation without a stack does not match.",
        example: "-CreateStack *Image::Load*",
        take: to(&(FRAMES, |args, filter| args.criteria.create_stack = Some(filter))),
    },
    Opt {
        names: &["-FreeStack"],
        help: "only allocations freed on a stack with this frame",
        details: "Stacks of frees are often not recorded.",
        example: "-FreeStack *Image::Close*",
        take: to(&(FRAMES, |args, filter| args.criteria.free_stack = Some(filter))),
    },
];

const TOTALS: &WordChoices<&[GroupColumn]> = &[
    ("Total", "by kind", &BY_KIND),
    ("Kind", "by kind", &BY_KIND),
    ("Allocator", "by kind and allocator, of all processes", &BY_ALLOCATOR),
    ("Process", "by process", &[GroupColumn::Process]),
    ("File", "of each file", &[]),
];

static GROUPS: &[Opt<ResourceArgs>] = &[
    Opt {
        names: &["-GroupBy"],
        help: "group by these columns instead of printing totals",
        details: "Columns in any order, separated by commas. Groups with the most leaked bytes come \
             first. Stacks with the same functions count as one.",
        example: "-GroupBy process,createstack",
        take: to(&(
            ValueKind { words: || GroupColumn::words(Domain::Allocations), ..WORDS },
            |args, indices| {
                add_columns(
                    args.criteria.groups.by.get_or_insert_default(),
                    &GroupColumn::of(Domain::Allocations),
                    &indices,
                );
            },
        )),
    },
    fold_stack_option("-GroupBy createstack -FoldStack *!std::*"),
    stack_from_option("-GroupBy createstack -StackFrom *leaky::*"),
    Opt {
        names: &["-ShowTotal"],
        help: "sums: Total (the default), Kind, Allocator, Process or File",
        details: "Of all allocations that pass the filters; with -Leak or -LeakAtExit, of the \
             leaked ones.",
        example: "-ShowTotal Process",
        take: to(&(ValueKind { words: || words(TOTALS), ..MAYBE_WORD }, |args, index| {
            args.total = choice(TOTALS, index);
        })),
    },
    show_time_option(
        "show allocated bytes of each group over time, in N parts of the trace",
        "As bars and numbers: allocated and not yet freed at the end of each part. \
             Allocations from before the trace are not included.",
        "-GroupBy kind -ShowTime 24",
    ),
];

static DISPLAY: &[Opt<ResourceArgs>] = &[
    show_stack_option(),
    show_address_option(),
    show_line_option(),
    time_format_option(),
    time_digits_option(),
    sort_option(
        "sort by leaked bytes, leaked count, or a column",
        sort_details!(),
        "-SortBy bytes",
        &(COLUMN, |args, column| args.sort_by = Some(column)),
    ),
];

#[cfg(test)]
mod tests {
    use handlescope_model::tables::ResourceKind;

    use super::WHICH;

    #[test]
    fn the_help_of_kinds_names_all() {
        let option = WHICH.iter().find(|option| option.names.contains(&"-Kind"));
        let names = ResourceKind::ALL.map(ResourceKind::name).join(", ");
        assert_eq!(option.map(|option| option.help), Some(format!("kinds: {names}").as_str()));
    }
}
