//! Options that choose by process, stack or time, for every kind that does, and that say how times and stacks are printed.
//! The chosen things differ, and so does the help.

use crate::shared::Has;
use handlescope_query::{NewProcess, ProcessCriteria, StackTrims};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::grammar::{Choices, Opt, Take, Texts, choice, words};
use handlescope_session::settings::{DisplayArgs, StackDisplayArgs};
use handlescope_session::values::{SuspectId, TimeRange};

pub const fn process_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<ProcessFilter>,
) -> Opt<A> {
    let (names, example) = (&["-pn", "-ProcessName"], "-pn leaky;!4");
    Opt { names, help, details, example, take: Take::Processes(field) }
}

pub const fn type_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let (names, example) = (&["-Type"], "-Type Event;Thread");
    Opt { names, help, details, example, take: Take::Filter(Texts::ObjectTypes, field) }
}

/// `-Type` of handles.
pub const fn type_of_handles_option<A>(field: fn(&mut A) -> &mut Option<Filter>) -> Opt<A> {
    let help = "handles of objects with this type";
    type_option(help, "As in -Type of .dump ObjectRef.", field)
}

/// `-Kind` of allocations.
pub const fn kind_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    Opt {
        names: &["-Kind"],
        help,
        details,
        example,
        take: Take::Filter(Texts::AllocationKinds, field),
    }
}

/// `-Kind` where handles are meant unless it is given.
pub const fn kind_instead_option<A>(
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let help = "allocations of these kinds instead of handles: heap, commit, reserve…";
    kind_option(help, details, "-Kind heap", field)
}

pub const fn stack_filter_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let (names, example) = (&["-sf", "-StackFilter"], "-StackFilter *Session::Connect*");
    Opt { names, help, details, example, take: Take::Filter(Texts::Frames, field) }
}

/// `-Suspect`
pub const fn suspect_option<A>(
    help: &'static str,
    field: fn(&mut A) -> &mut Option<SuspectId>,
) -> Opt<A> {
    Opt {
        names: &["-Suspect"],
        help,
        details: "The id is in the command that .why prints; the first four digits are enough if \
             they are unique. Ids depend on function names, so they change with the symbols.",
        example: "-Suspect 33434dfa4c",
        take: Take::Suspect(field),
    }
}

/// `-MinMaxTime`
pub const fn time_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<TimeRange>,
) -> Opt<A> {
    let (names, example) = (&["-MinMaxTime"], "-MinMaxTime 0 1.5s");
    Opt { names, help, details, example, take: Take::Seconds(field) }
}

pub const fn command_line_option<A: Has<ProcessCriteria>>(
    help: &'static str,
    details: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-CmdLine"],
        help,
        details,
        example: "-CmdLine *--helper*",
        take: Take::Filter(Texts::Other, |args| &mut args.part().command_line),
    }
}

pub const fn new_process_option<A: Has<ProcessCriteria>>(
    help: &'static str,
    details: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-NewProcess"],
        help,
        details,
        example: "-NewProcess 1",
        take: Take::Choice(
            || words(NEW_PROCESSES),
            |args, index| args.part().new_process = choice(NEW_PROCESSES, index),
        ),
    }
}

const NEW_PROCESSES: &Choices<NewProcess> = &[
    ("0", "processes that neither started nor ended in the trace", NewProcess::Permanent),
    ("1", "processes that started in the trace", NewProcess::Started),
    ("2", "processes that started and did not end in the trace", NewProcess::StartedOnly),
    ("-1", "processes that ended in the trace", NewProcess::Ended),
    ("-2", "processes that ended and did not start in the trace", NewProcess::EndedOnly),
];

/// Adds a column that groups have: each counts once, where it stands first.
pub fn add_column<C: Copy + PartialEq>(columns: &mut Vec<C>, column: Option<&C>) {
    columns.extend(column.filter(|column| !columns.contains(column)).copied().as_slice());
}

pub const fn time_format_option<A: Has<DisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-TimeFmt"],
        help: "time format: s, Local, LocalTime, UTC, UTCTime, Here or HereTime",
        details: "Overrides .timefmt.",
        example: "-TimeFmt s",
        take: Take::TimeFormat(|args| &mut args.part().time_format),
    }
}

pub const fn time_digits_option<A: Has<DisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-TimeDigits"],
        help: "set the decimal places of seconds, 0 to 6",
        details: "For times and lifetimes. Default: 6, or as set by .timedigits.",
        example: "-TimeDigits 3",
        take: Take::Digits(|args| &mut args.part().time_digits),
    }
}

pub const fn show_stack_option<A: Has<StackDisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-ss", "-ShowStack"],
        help: "print stacks with function names",
        details: "Kernel frames first, then user frames. Inlined functions are frames of their \
             own, marked [inlined]. Without symbols a frame is module+0xOFFSET; see .sympath.",
        example: "-ShowStack",
        take: Take::Switch(|args| &mut args.part().show),
    }
}

pub const fn show_address_option<A: Has<StackDisplayArgs>>() -> Opt<A> {
    Opt {
        names: &["-ShowAddress"],
        help: "print offset and address of each frame",
        details: "With -ShowStack: module!function+0xOFFSET and the address.",
        example: "-ShowStack -ShowAddress",
        take: Take::Switch(|args| &mut args.part().address),
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
        take: Take::Switch(|args| &mut args.part().line),
    }
}

pub const fn fold_stack_option<A: Has<StackTrims>>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-FoldStack"],
        help: "remove frames from the stacks of groups",
        details: "Stacks that differ only in these frames are one group. A filter is compared \
             with module!function.",
        example,
        take: Take::Filter(Texts::Frames, |args| &mut args.part().fold),
    }
}

pub const fn stack_from_option<A: Has<StackTrims>>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-StackFrom"],
        help: "begin the stacks of groups at a frame",
        details: "Frames called by the first matching frame are removed; a stack without a match \
             stays whole.",
        example,
        take: Take::Filter(Texts::Frames, |args| &mut args.part().from),
    }
}
