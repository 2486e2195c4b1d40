//! Options that select objects and events by properties and times.

use super::args::ObjectRefArgs;
use crate::shared::choice::{
    command_line_option, new_process_option, process_option, suspect_option, time_option,
    type_option,
};
use handlescope_session::grammar::value::{
    COUNTS, OBJECT_NAMES, OBJECT_TYPES, PROCESSES, SUSPECT, SWITCH, TEXTS, TIMES,
};
use handlescope_session::grammar::{Opt, to};

/// Options about leaks and lifetimes.
pub static LEAKS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-Leak"],
        help: "only handles that were opened and never closed",
        details: "A create or duplicate is leaked if no close of the same handle value in the \
             same process follows in the trace; a mapping, if it is not unmapped. Objects without \
             a leak are left out; with -MinMaxTime and -StackFilter an object stays if its \
             creation or end passes. Windows closes everything when a process ends: -LeakAtExit \
             shows handles that only process exit closed.",
        example: "-Leak",
        take: to(&(SWITCH, |args, ()| args.criteria.leak = true)),
    },
    Opt {
        names: &["-LeakAtExit"],
        help: "only handles closed only by process exit",
        details: "A program that ends without closing a handle has leaked it, too. Such a close \
             comes after the process end event, or is one of the last closes of the process, on one \
             thread, with kernel frames that never close a handle of a running program. Inherited \
             handles do not count. With -ShowStack and kernel symbols the close stacks confirm it, \
             or a warning says that they do not. With -Leak, both are shown.",
        example: "-LeakAtExit",
        take: to(&(SWITCH, |args, ()| args.criteria.leak_at_exit = true)),
    },
    Opt {
        names: &["-MinMaxDuration"],
        help: "objects with this lifetime; 9999 is never closed",
        details: "From creation to end, regardless of other options. An object without known \
             creation or end counts as 9999 seconds. Units: s, ms, us, ns.",
        example: "-MinMaxDuration 0 10ms",
        take: to(&(TIMES, |args, times| args.criteria.duration = Some(times))),
    },
];

/// Options about the properties of an object and what happened to it.
pub static CHOICE: &[Opt<ObjectRefArgs>] = &[
    process_option(
        "objects created by these processes",
        "The creating process, not the owners of handles (-RelatedProcess); for an object older \
         than the trace, any process that still has a handle at the end of the trace. Of allocations (.flame, \
         .plot, .report), the owner. The name may go without .exe; a number is a pid; ! in front \
         excludes.",
    ),
    command_line_option("objects created by processes with this command line"),
    new_process_option("objects created by processes that started or ended in the trace"),
    suspect_option(
        "only handles and views leaked by a suspect of .why",
        &(SUSPECT, |args, id| args.criteria.suspect = Some(id)),
    ),
    Opt {
        names: &["-RelatedProcess"],
        help: "objects that any of these processes used",
        details: "The process of any event or open handle, or one that inherited a handle. With \
             an exclusion: objects that some other process used.",
        example: "-RelatedProcess explorer",
        take: to(&(PROCESSES, |args, processes| args.criteria.related_process = Some(processes))),
    },
    Opt {
        names: &["-ObjectName"],
        help: "objects with this name; no mappings",
        details: "* and ? are wildcards, ; separates alternatives, ! in front excludes. Paths may \
             be written with or without a drive letter. An object without a name has an empty \
             name.",
        example: "-ObjectName *Leaky_Signal*",
        take: to(&(OBJECT_NAMES, |args, filter| args.criteria.object_name = Some(filter))),
    },
    type_option(
        "objects of this type: Event, Thread, File, Section, FileMapping…",
        "Applies to totals, too. A type that the trace does not name is UnknownType.",
        &(OBJECT_TYPES, |args, filter| args.criteria.object_type = Some(filter)),
    ),
    Opt {
        names: &["-Object"],
        help: "objects at this kernel address",
        details: "Compared with the address as 0x and hex digits, in any case.",
        example: "-Object 0xFFFF810008BE66F0",
        take: to(&(TEXTS, |args, filter| args.criteria.object = Some(filter))),
    },
    Opt {
        names: &["-Id"],
        help: "objects with these ids",
        details: "The id at the start of each object line. It is the same in every query and \
             counts per file. ; separates ids, ! in front excludes.",
        example: "-Id 73;89",
        take: to(&(TEXTS, |args, filter| args.criteria.id = Some(filter))),
    },
    Opt {
        names: &["-MinMaxId"],
        help: "objects with ids in this range",
        details: "The id at the start of each object line. It is the same in every query and \
             counts per file.",
        example: "-MinMaxId 500 600",
        take: to(&(COUNTS, |args, range| args.criteria.ids = Some(range))),
    },
    time_option(
        "only events in this time range, since session start",
        "Both ends included. Objects without an event in it are left out; lifetimes do not \
         change. Units: s, ms, us, ns.",
        &(TIMES, |args, times| args.criteria.time = Some(times)),
    ),
    Opt {
        names: &["-Handle"],
        help: "only events of this handle value; no mappings",
        details: "Compared with the value as 0x and hex digits, so write 0x in front. The value in \
                  the event matches, and so does its value in the handle table, without tag bits \
                  and the bit of kernel handles. Objects without such an event are left out; \
                  handles known only from the rundown do not count, but handles listed by a dump \
                  do.",
        example: "-Handle 0xC0;0xC4",
        take: to(&(TEXTS, |args, filter| args.criteria.handle = Some(filter))),
    },
];
