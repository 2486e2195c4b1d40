//! The options of commands about tables.

use super::{Doc, Opt, OptionGroup, Take, Texts};
use crate::command::{ExportArgs, SaveArgs, SchemaArgs};

/// Options of `.export`.
pub(crate) static EXPORT: &[OptionGroup<ExportArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        Opt {
            doc: Doc {
                names: &["-parquet"],
                help: "write Parquet files, as usual",
                details: "Only needed to have them beside others.",
                example: "tables -parquet",
            },
            take: Take::Switch(|args| &mut args.parquet),
        },
        Opt {
            doc: Doc {
                names: &["-csv"],
                help: "write comma-separated values",
                details: "With a header; an unknown value is empty, a list is written as in JSON.",
                example: "tables -csv",
            },
            take: Take::Switch(|args| &mut args.csv),
        },
        Opt {
            doc: Doc {
                names: &["-ndjson"],
                help: "write one JSON object a line",
                details: "64-bit integers are plain numbers, also beyond 2^53.",
                example: "tables -ndjson",
            },
            take: Take::Switch(|args| &mut args.ndjson),
        },
        Opt {
            doc: Doc {
                names: &["-fd", "-filedir"],
                help: "only loaded files with such a path",
                details: "Compared with the whole path and with the file name.",
                example: "tables -fd *leaky*",
            },
            take: Take::Filters(Texts::LoadedFiles, |args| &mut args.files),
        },
    ],
}];

/// Options of `.save`.
pub(crate) static SAVE: &[OptionGroup<SaveArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        Opt {
            doc: Doc {
                names: &["-etwanalyzer", "--etwanalyzer"],
                help: "write what ETWAnalyzer reads, too",
                details: "The same archive then opens in both programs. Frames are called as .dump \
                          ObjectRef -ShowStack calls them; names that were found are stored. The \
                          archive gets the time of the session.",
                example: "leaky.json7z -etwanalyzer",
            },
            take: Take::Switch(|args| &mut args.etwanalyzer),
        },
        Opt {
            doc: Doc {
                names: &["-fd", "-filedir"],
                help: "the loaded file with such a path",
                details: "Compared with the whole path and with the file name.",
                example: "leaky.json7z -fd *leaky*",
            },
            take: Take::Filters(Texts::LoadedFiles, |args| &mut args.files),
        },
    ],
}];

/// Options of `.schema`.
pub(crate) static SCHEMA: &[OptionGroup<SchemaArgs>] = &[OptionGroup {
    title: "Options",
    options: &[Opt {
        doc: Doc {
            names: &["-markdown"],
            help: "print the document docs/tables.md",
            details: "The same content with headings and tables of Markdown.",
            example: "-markdown",
        },
        take: Take::Switch(|args| &mut args.markdown),
    }],
}];
