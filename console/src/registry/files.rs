//! The options of commands about files.

use super::{Doc, Opt, OptionGroup, Take, Texts};
use crate::command::{ConvertTimeArgs, DirArgs, LoadArgs};

/// Options of `.load` and `.load+`.
pub(crate) static LOAD: &[OptionGroup<LoadArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        Opt {
            doc: Doc {
                names: &["-r", "-rec", "-recursive"],
                help: "look into folders below folders, too",
                details: "Counts for every QUERY of the line, wherever it stands.",
                example: "-r examples",
            },
            take: Take::Switch(|args| &mut args.recursive),
        },
        Opt {
            doc: Doc {
                names: &["-all"],
                help: "read everything at once",
                details: "Otherwise a table is read by the first query that needs it.",
                example: "-all examples",
            },
            take: Take::Switch(|args| &mut args.all),
        },
        Opt {
            doc: Doc {
                names: &["-MaxSize"],
                help: "largest member of an archive that is read",
                details: "Who made it may want to fill your disk. Unless it is given, 4 GiB for a \
                          part of an ETWAnalyzer extract, 16 GiB for a table of an extract, 64 GiB \
                          for a trace in a .zip or .7z; and nothing that is packed more than a \
                          thousandfold.",
                example: "-MaxSize 20GB examples",
            },
            take: Take::Size(|args| &mut args.max_size),
        },
        Opt {
            doc: Doc {
                names: &["-fd", "-filedir"],
                help: "may stand in front of a QUERY",
                details: "ETWAnalyzer has it, so it is accepted; it changes nothing.",
                example: "-fd examples",
            },
            take: Take::Set(|_| ()),
        },
    ],
}];

/// Options of `.dir`.
pub(crate) static DIR: &[OptionGroup<DirArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        Opt {
            doc: Doc {
                names: &["-r", "-rec", "-recursive"],
                help: "look into folders below, too",
                details: "Files below are listed with their folders.",
                example: "-r",
            },
            take: Take::Switch(|args| &mut args.recursive),
        },
        Opt {
            doc: Doc {
                names: &["-od"],
                help: "sort by time instead of by name",
                details: "The time a file was written last; the newest comes last.",
                example: "-od",
            },
            take: Take::Switch(|args| &mut args.by_time),
        },
    ],
}];

/// Options of `.converttime`.
pub(crate) static CONVERT_TIME: &[OptionGroup<ConvertTimeArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        Opt {
            doc: Doc {
                names: &["-time"],
                help: "2024-05-10 12:46:37.5, 12:46:37, an ISO time, or seconds: 13.123s",
                details: "Without a zone, a time is one of the recording machine. A time without a \
                          date that lies outside of the recording is tried as UTC, too.",
                example: "-time 13.123s",
            },
            take: Take::Text("TIME", 2, |args| &mut args.time),
        },
        Opt {
            doc: Doc {
                names: &["-fd", "-filedir"],
                help: "only loaded files with such a path",
                details: "Compared with the whole path and with the file name. Outside of the \
                          console, it names the files to load.",
                example: "-fd *leaky* -time 1",
            },
            take: Take::Filters(Texts::LoadedFiles, |args| &mut args.files),
        },
    ],
}];
