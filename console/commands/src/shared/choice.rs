//! Options that filter by process, stack or time, for every kind that can, and options for how times and stacks are
//! printed. The help depends on what is filtered.

use crate::shared::Has;
use handlescope_query::{GroupCriteria, NewProcess, ProcessCriteria, StackTrims};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{
    DIGITS, FRAMES, MAYBE_NUMBER, PROCESSES, SWITCH, TEXTS, TIME_FORMAT, ValueKind, WORD,
};
use handlescope_session::grammar::{Opt, To, WordChoices, choice, to, words};
use handlescope_session::settings::{DisplayArgs, StackDisplayArgs};
use handlescope_session::values::{SuspectId, TimeRange};

/// `-ProcessName`
pub const fn process_option<A: Has<ProcessCriteria>>(
    help: &'static str,
    details: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-pn", "-ProcessName"],
        help,
        details,
        example: "-pn leaky;!4",
        take: to(&(PROCESSES, |args, processes| args.part().name = Some(processes))),
    }
}

pub const fn type_option<A>(
    help: &'static str,
    details: &'static str,
    set: &'static To<A, Filter>,
) -> Opt<A> {
    let (names, example) = (&["-Type"], "-Type Event;Thread");
    Opt { names, help, details, example, take: to(set) }
}

/// `-Type` of handles.
pub const fn type_of_handles_option<A>(set: &'static To<A, Filter>) -> Opt<A> {
    let help = "handles of objects with this type";
    type_option(help, "As in -Type of .dump ObjectRef.", set)
}

/// `-Kind` of allocations.
pub const fn kind_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    set: &'static To<A, Filter>,
) -> Opt<A> {
    Opt { names: &["-Kind"], help, details, example, take: to(set) }
}

/// `-Kind` for commands that are otherwise about handles.
pub const fn kind_instead_option<A>(details: &'static str, set: &'static To<A, Filter>) -> Opt<A> {
    let help = "allocations of these kinds instead of handles: heap, commit, reserve…";
    kind_option(help, details, "-Kind heap", set)
}

pub const fn stack_filter_option<A>(
    help: &'static str,
    details: &'static str,
    set: &'static To<A, Filter>,
) -> Opt<A> {
    let (names, example) = (&["-sf", "-StackFilter"], "-StackFilter *Session::Connect*");
    Opt { names, help, details, example, take: to(set) }
}

/// `-Suspect`
pub const fn suspect_option<A>(help: &'static str, set: &'static To<A, SuspectId>) -> Opt<A> {
    Opt {
        names: &["-Suspect"],
        help,
        details: "The id is in the command that .why prints; the first four digits are enough if \
             they are unique. Its halves are the ids with and without symbols; the second is always known.",
        example: "-Suspect 33434dfa4c",
        take: to(set),
    }
}

/// `-MinMaxTime`
pub const fn time_option<A>(
    help: &'static str,
    details: &'static str,
    set: &'static To<A, TimeRange>,
) -> Opt<A> {
    let (names, example) = (&["-MinMaxTime"], "-MinMaxTime 0 1.5s");
    Opt { names, help, details, example, take: to(set) }
}

/// `-CmdLine`
pub const fn command_line_option<A: Has<ProcessCriteria>>(help: &'static str) -> Opt<A> {
    Opt {
        names: &["-CmdLine"],
        help,
        details: "Compared with the whole command line; write * around a part of it. A command line \
                  that is not in the trace is empty.",
        example: "-CmdLine *--helper*",
        take: to(&(TEXTS, |args, filter| args.part().command_line = Some(filter))),
    }
}

/// `-NewProcess`
pub const fn new_process_option<A: Has<ProcessCriteria>>(help: &'static str) -> Opt<A> {
    Opt {
        names: &["-NewProcess"],
        help,
        details: "Combined with other filters, all must match.",
        example: "-NewProcess 1",
        take: to(&(ValueKind { words: || words(NEW_PROCESSES), ..WORD }, |args, index| {
            args.part().new_process = choice(NEW_PROCESSES, index);
        })),
    }
}

const NEW_PROCESSES: &WordChoices<NewProcess> = &[
    ("0", "processes that neither started nor ended in the trace", NewProcess::Permanent),
    ("1", "processes that started in the trace", NewProcess::Started),
    ("2", "processes that started and did not end in the trace", NewProcess::StartedOnly),
    ("-1", "processes that ended in the trace", NewProcess::Ended),
    ("-2", "processes that ended and did not start in the trace", NewProcess::EndedOnly),
];

/// Adds group columns by their positions; a repeated column counts only the first time.
pub fn add_columns<C: Copy + PartialEq>(columns: &mut Vec<C>, all: &[C], positions: &[usize]) {
    for column in positions.iter().filter_map(|position| all.get(*position)) {
        columns.extend(Some(*column).filter(|column| !columns.contains(column)));
    }
}

/// Default number of parts of the time.
const BUCKETS: usize = 12;

/// `-ShowTime`
pub const fn show_time_option<A: Has<GroupCriteria>>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-ShowTime"],
        help,
        details,
        example,
        take: to(&(MAYBE_NUMBER, |args, number| {
            args.part().buckets = Some(number.map_or(BUCKETS, saturated));
        })),
    }
}

/// Returns a number, or the largest one that fits.
pub fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub const fn time_format_option<A: Has<DisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-TimeFmt"],
        help: "time format: s, Local, LocalTime, UTC, UTCTime, Here or HereTime",
        details: "Overrides .timefmt.",
        example: "-TimeFmt s",
        take: to(&(TIME_FORMAT, |args, format| args.part().time_format = Some(format))),
    }
}

pub const fn time_digits_option<A: Has<DisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-TimeDigits"],
        help: "set the decimal places of seconds, 0 to 6",
        details: "For times and lifetimes. Default: 6, or as set by .timedigits.",
        example: "-TimeDigits 3",
        take: to(&(DIGITS, |args, digits| args.part().time_digits = Some(digits))),
    }
}

pub const fn show_stack_option<A: Has<StackDisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-ss", "-ShowStack"],
        help: "print stacks with function names",
        details: "Kernel frames first, then user frames. Inlined functions are frames of their \
             own, marked [inlined]. Without symbols a frame is module+0xOFFSET; see .sympath.",
        example: "-ShowStack",
        take: to(&(SWITCH, |args, ()| args.part().show = true)),
    }
}

pub const fn show_address_option<A: Has<StackDisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-ShowAddress"],
        help: "print offset and address of each frame",
        details: "With -ShowStack: module!function+0xOFFSET and the address.",
        example: "-ShowStack -ShowAddress",
        take: to(&(SWITCH, |args, ()| args.part().address = true)),
    }
}

pub const fn show_line_option<A: Has<StackDisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-ShowLine"],
        help: "print source file and line of each frame",
        details: "With -ShowStack, if the symbols have them; those of Microsoft's servers do not. \
             If the PDB has Source Link or a source server, the URL or command that gets the file \
             follows in brackets.",
        example: "-ShowStack -ShowLine",
        take: to(&(SWITCH, |args, ()| args.part().line = true)),
    }
}

pub const fn fold_stack_option<A: Has<StackTrims>>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-FoldStack"],
        help: "remove frames from the stacks of groups",
        details: "Stacks that differ only in these frames are one group. A filter is compared \
             with module!function.",
        example,
        take: to(&(FRAMES, |args, filter| args.part().fold = Some(filter))),
    }
}

pub const fn stack_from_option<A: Has<StackTrims>>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-StackFrom"],
        help: "begin the stacks of groups at a frame",
        details: "Frames called by the first matching frame are removed; a stack without a match \
             stays whole.",
        example,
        take: to(&(FRAMES, |args, filter| args.part().from = Some(filter))),
    }
}
