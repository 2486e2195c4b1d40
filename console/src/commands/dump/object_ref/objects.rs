//! Options that choose objects and events by what they are and when they were.

use super::args::ObjectRefArgs;
use crate::commands::shared::choice::{
    command_line_option, new_process_option, process_option, suspect_option, time_option,
    type_option,
};
use crate::grammar::{Opt, Take, Texts};
use crate::values::CountUnit;

/// Leaks and lifetimes.
pub(super) static LEAKS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-Leak"],
        help: "only handles that were opened and never closed",
        details: "A create or duplicate is leaked when no close of the same handle value in the \
                  same process follows in the trace; a mapping, when it is not unmapped. \
                  Objects without a leak disappear; of the others, -MinMaxTime and -StackFilter keep those, too, \
                  of which only the creation or the end passes. Windows closes everything when a process \
                  ends: -LeakAtExit shows what only that closed.",
        example: "-Leak",
        take: Take::Switch(|args| &mut args.criteria.leak),
    },
    Opt {
        names: &["-LeakAtExit"],
        help: "only handles that the end of their process closed, nothing else",
        details: "A program that ends without closing a handle has leaked it all the same. Such a \
                  close comes after the end event of the process, or belongs to the last closes \
                  of the process, on one thread and on kernel frames on which no program that \
                  goes on closes a handle. An inherited handle does not count. With -ShowStack and \
                  symbols of the kernel, the stacks of the closes confirm it, or a warning is \
                  printed that they do not. With -Leak: both.",
        example: "-LeakAtExit",
        take: Take::Switch(|args| &mut args.criteria.leak_at_exit),
    },
    Opt {
        names: &["-MinMaxDuration"],
        help: "objects with this lifetime; 9999 is never closed",
        details: "The time from creation to end, whatever other options remove. An object \
                  without a known creation or end counts as 9999 seconds. Units: s, ms, us, ns.",
        example: "-MinMaxDuration 0 10ms",
        take: Take::Seconds(|args| &mut args.criteria.duration),
    },
];

/// What an object is, and what happened to it.
pub(super) static CHOICE: &[Opt<ObjectRefArgs>] = &[
    process_option(
        "objects created by these processes",
        "The process of the creation, not those that own handles (-RelatedProcess); for an object that was there before \
                  the trace, any process that still has a handle at the end. Of allocations, which .flame, .plot and \
                  .report have, the owner. The name may go without .exe; a number is a pid; ! in front excludes.",
        |args| &mut args.criteria.creator.name,
    ),
    command_line_option(
        "objects created by processes with this command line",
        "Compared with the whole command line, so write * around a part of it. A \
                  process whose command line is not in the trace has the empty one.",
    ),
    new_process_option(
        "objects created by processes that started or ended in the trace",
        "Also -pn, -CmdLine and -NewProcess together: all three must fit the process.",
    ),
    suspect_option("only handles and views that a suspect of .why lost", |args| {
        &mut args.criteria.suspect
    }),
    Opt {
        names: &["-RelatedProcess"],
        help: "objects that any of these processes had to do with",
        details: "Any process of any event, of a handle that is still open, or that inherited \
                  one. With an exclusion: objects that some other process had to do with.",
        example: "-RelatedProcess explorer",
        take: Take::Processes(|args| &mut args.criteria.related_process),
    },
    Opt {
        names: &["-ObjectName"],
        help: "objects of this name; no mappings",
        details: "* and ? stand for characters, ; separates alternatives, ! in front excludes. \
                  A path may be written with or without its drive letter. An object without a \
                  name has the empty name.",
        example: "-ObjectName *Leaky_Signal*",
        take: Take::Filter(Texts::ObjectNames, |args| &mut args.criteria.object_name),
    },
    type_option(
        "objects of this type: Event, Thread, File, Section, FileMapping…",
        "Applies to the totals too. A type the trace does not name is UnknownType.",
        |args| &mut args.criteria.object_type,
    ),
    Opt {
        names: &["-Object"],
        help: "objects at this kernel address",
        details: "Compared with the address as 0x and upper-case hex digits, in any case.",
        example: "-Object 0xFFFF810008BE66F0",
        take: Take::Filter(Texts::Other, |args| &mut args.criteria.object),
    },
    Opt {
        names: &["-MinMaxId"],
        help: "objects with these ids",
        details: "The id that each object line starts with. It is the same in every query; with \
                  several files it counts per file.",
        example: "-MinMaxId 500 600",
        take: Take::Count(CountUnit::None, |args| &mut args.criteria.ids),
    },
    time_option(
        "only events in this time since the session started",
        "Both ends belong to it. Objects without an event in it disappear, lifetimes \
                  stay as they are. Units: s, ms, us, ns.",
        |args| &mut args.criteria.time,
    ),
    Opt {
        names: &["-Handle"],
        help: "only events of this handle value; no mappings",
        details: "Compared with the value as 0x and hex digits, so write 0x in front. Objects \
                  without such an event disappear; handles that only the rundown at the end \
                  lists do not count.",
        example: "-Handle 0xC0;0xC4",
        take: Take::Filter(Texts::Other, |args| &mut args.criteria.handle),
    },
];
