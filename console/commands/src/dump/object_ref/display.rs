//! Options for how things are printed.

use super::args::ObjectRefArgs;
use crate::shared::choice::{time_digits_option, time_format_option};
use handlescope_session::grammar::value::{PROCESS_FORMAT, SWITCH};
use handlescope_session::grammar::{Opt, to};

/// Options for additional output.
pub static DISPLAY: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-ShowRef"],
        help: "include reference count changes",
        details: "Needs a trace with reference tracing.",
        example: "-ShowRef",
        take: to(&(SWITCH, |args, ()| args.criteria.show_ref = true)),
    },
    Opt {
        names: &["-ShowTarget"],
        help: "show which process or thread a handle refers to",
        details: "For handles to processes and threads: the target, its start and end, and what \
                  started it. A process is known by its address, a thread only by the call that \
                  started it and opened the handle. A dump names the target and says whether it has \
                  ended.",
        example: "-Type Process;Thread -Leak -ShowTarget",
        take: to(&(SWITCH, |args, ()| args.criteria.show_target = true)),
    },
    time_format_option(),
    time_digits_option(),
    Opt {
        names: &["-ProcessFmt"],
        help: "print process start, end and duration in this format, or None",
        details: "After the name of a process: +START if it started in the trace, - END if it \
                  ended, and the duration if both. Overrides .processfmt.",
        example: "-ProcessFmt s",
        take: to(&(PROCESS_FORMAT, |args, format| args.display.process_format = Some(format))),
    },
    Opt {
        names: &["-ppn", "-PlainProcessNames"],
        help: "svchost.exe instead of svchost Event Log Service",
        details: "Some services get a better name from their command line. With this option, \
                  output and process filters use only the executable's.",
        example: "-PlainProcessNames",
        take: to(&(SWITCH, |args, ()| args.display.plain_process_names = true)),
    },
    Opt {
        names: &["-NoDigitSep"],
        help: "print sizes without thousands separators",
        details: "Applies to sizes of mappings.",
        example: "-Map 1 -NoDigitSep",
        take: to(&(SWITCH, |args, ()| args.display.no_digit_separator = true)),
    },
    Opt {
        names: &["-Clip"],
        help: "fit lines to the terminal width",
        details: "The default on a terminal, unless .clip 0 is set. A pipe gets whole lines.",
        example: "-Clip",
        take: to(&(SWITCH, |args, ()| args.display.clip = Some(true))),
    },
    Opt {
        names: &["-NoClip"],
        help: "print whole lines, however long",
        details: "The terminal wraps them.",
        example: "-ShowStack -NoClip",
        take: to(&(SWITCH, |args, ()| args.display.clip = Some(false))),
    },
    Opt {
        names: &["-sffn", "-ShowFullFileName"],
        help: "print the whole path of each file",
        details: "Otherwise a file is shown by its name without extension.",
        example: "-ShowFullFileName",
        take: to(&(SWITCH, |args, ()| args.display.full_file_name = Some(true))),
    },
];
