//! The commands.

use super::{
    Arguments, CommandSpec,
    extract::EXTRACT,
    files::{CONVERT_TIME, DIR, LOAD},
    sql::SQL,
    symbols::{SYMBOL_PATH, SYMBOLIZE},
    tables::{EXPORT, SAVE, SCHEMA},
    views,
};
use crate::command::{entry, export, file_entry, setting, sql, symbols};

const FILES: &str = "Files";
const QUERIES: &str = "Queries";
const PRINTING: &str = "How it is printed";
const SESSION: &str = "Session";

/// All commands, in the order of the help.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        names: &[".load"],
        group: FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load traces instead of those that are loaded",
        details: "QUERY is an extract (.json7z), a trace (.etl, also inside a .zip or .7z), a folder \
                  of such files, or a pattern like *leak*;!*old* for their names. A trace is \
                  extracted first; the extract is kept as Extract/NAME.json7z beside it and used \
                  again as long as it is up to date. A trace and its extract are loaded once. \
                  Extracts of ETWAnalyzer (.json7z, or .json with its companions) are loaded, too: \
                  they are converted once, into the cache folder. \
                  Files that cannot be loaded are named, the others are loaded; when none can, the \
                  session stays as it is.",
        examples: &[
            ".load examples/leaky.etl",
            ".load -r examples",
            ".load \"C:\\traces\\my trace.etl\" Extract/*.json7z",
        ],
        groups: || views(LOAD),
        parse: file_entry::load,
    },
    CommandSpec {
        names: &[".load+"],
        group: FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load traces beside those that are loaded",
        details: "QUERY is written as for .load. What is loaded already stays as it is.",
        examples: &[".load+ examples/leaky.etl"],
        groups: || views(LOAD),
        parse: file_entry::load,
    },
    CommandSpec {
        names: &[".list"],
        group: FILES,
        usage: "",
        arguments: Arguments::None,
        summary: "list the loaded traces",
        details: "The number is the file index of the JSON output.",
        examples: &[".list"],
        groups: Vec::new,
        parse: entry::list,
    },
    CommandSpec {
        names: &[".unload"],
        group: FILES,
        usage: "[FILE…]",
        arguments: Arguments::LoadedFiles,
        summary: "forget loaded traces, all of them or those named",
        details: "FILE is a path as .list shows it, or just the file name; * and ? work.",
        examples: &[".unload", ".unload leaky.etl"],
        groups: Vec::new,
        parse: entry::unload,
    },
    CommandSpec {
        names: &[".extract"],
        group: FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "extract traces without loading them",
        details: "QUERY is written as for .load. Words that ETWAnalyzer extracts by may stand between: \
                  ObjectRef, All, Default and Module are always extracted, others are named in a note, \
                  and refused when they are alone.",
        examples: &[".extract examples/leaky.etl", ".extract ObjectRef -fd examples -NoOverwrite"],
        groups: || views(EXTRACT),
        parse: file_entry::extract,
    },
    CommandSpec {
        names: &[".dir"],
        group: FILES,
        usage: "[FOLDER|PATTERN]",
        arguments: Arguments::Files,
        summary: "list folders, traces and extracts on disk",
        details: "Tells of each trace whether it has an extract: loading it then takes no time. \
                  PATTERN is written as for .load. Without either, it is about the current folder. \
                  Options may start with / too.",
        examples: &[".dir", ".dir -od examples", ".dir -r *leak*"],
        groups: || views(DIR),
        parse: file_entry::dir,
    },
    CommandSpec {
        names: &[".cd"],
        group: FILES,
        usage: "[FOLDER]",
        arguments: Arguments::Folder,
        summary: "show or change the current folder",
        details: "~ is the home folder. Loaded traces stay loaded.",
        examples: &[".cd", ".cd examples"],
        groups: Vec::new,
        parse: file_entry::change_folder,
    },
    CommandSpec {
        names: &[".dump"],
        group: QUERIES,
        usage: "KIND [OPTION…]",
        arguments: Arguments::Kind,
        summary: "print what the loaded traces know",
        details: "KIND says what to print; each kind has its own options, see .help KIND. Names of \
                  kinds and options may be written in any case.",
        examples: &[".dump ObjectRef -Leak -ShowStack", ".dump Process"],
        groups: Vec::new,
        parse: entry::dump,
    },
    CommandSpec {
        names: &[".sql"],
        group: QUERIES,
        usage: "SELECT …",
        arguments: Arguments::Sql,
        summary: "ask anything, in SQL, over the tables of the loaded traces",
        details: "The tables are those of .schema, with a column row, which other tables point to, \
                  and file_index, the number of the trace. leaks and handles have a row for each handle \
                  that was opened, with names instead of row numbers; stacks has the text of each \
                  stack. hex(x) writes an address like 0xC0. It is the SQL of polars: joins, \
                  groups, WITH, window functions, LIKE, ~ for regular expressions. Names of columns \
                  are in lower case. Text shows the first 1000 rows. Several traces count as one; \
                  their rows count on.",
        examples: &[
            ".sql SELECT process, pid, type, count(*) AS n FROM leaks GROUP BY ALL ORDER BY n DESC",
            ".sql SELECT s.text, count(*) AS n FROM leaks l JOIN stacks s ON s.row = l.stack \
             GROUP BY s.text ORDER BY n DESC LIMIT 3",
            ".sql SELECT type, name, lifetime_ns / 1000000 AS ms FROM handles WHERE process = \
             'leaky.exe' AND NOT leaked ORDER BY ms DESC LIMIT 10",
            ".sql SELECT kind_name, count(*) AS n FROM events GROUP BY kind_name ORDER BY n DESC \
             -json",
            ".sql SELECT m.name, hex(l.base) AS base FROM module_loads l JOIN modules m ON m.row = \
             l.module WHERE l.pid = 0 -csv modules.csv",
        ],
        groups: || views(SQL),
        parse: sql::sql,
    },
    CommandSpec {
        names: &[".converttime"],
        group: QUERIES,
        usage: "-time TIME",
        arguments: Arguments::Options,
        summary: "seconds since session start of a point in time, or the other way round",
        details: "For each loaded trace. Seconds become date and time of the recording machine.",
        examples: &[
            ".converttime -time 13.123s",
            ".converttime -time 12:46:37.775",
            ".converttime -time 2024-05-10T10:46:37Z",
        ],
        groups: || views(CONVERT_TIME),
        parse: file_entry::convert_time,
    },
    CommandSpec {
        names: &[".export"],
        group: QUERIES,
        usage: "FOLDER",
        arguments: Arguments::Folder,
        summary: "write the tables of the loaded traces for other programs",
        details: "One file for each table, for DuckDB, pandas, polars and the like: FOLDER/events.parquet \
                  and so on, see .schema. Of several traces each has a folder of its own in FOLDER.",
        examples: &[".export tables", ".export tables -csv -ndjson"],
        groups: || views(EXPORT),
        parse: export::export,
    },
    CommandSpec {
        names: &[".save"],
        group: QUERIES,
        usage: "FILE",
        arguments: Arguments::Files,
        summary: "write a loaded trace as an archive",
        details: "FILE is the name of the archive, NAME.json7z; an archive of this program is \
                  replaced, any other file stays. It holds what the loaded extract holds, and loads \
                  at once on any machine. Of several loaded traces, -fd chooses one.",
        examples: &[".save leaky.json7z", ".save leaky.json7z -etwanalyzer"],
        groups: || views(SAVE),
        parse: file_entry::save,
    },
    CommandSpec {
        names: &[".schema"],
        group: QUERIES,
        usage: "[TABLE…]",
        arguments: Arguments::Tables,
        summary: "describe the tables: columns, types, units and meanings",
        details: "A type with ? has values that are unknown or do not apply. A unit like row of \
                  objects says that the number counts rows of that table from 0.",
        examples: &[".schema", ".schema objects events"],
        groups: || views(SCHEMA),
        parse: export::schema,
    },
    CommandSpec {
        names: &[".timefmt"],
        group: PRINTING,
        usage: "[FORMAT [DIGITS]]",
        arguments: Arguments::TimeFormat,
        summary: "how points in time are written",
        details: "FORMAT and DIGITS are those of -TimeFmt and -TimeDigits, which win where they are \
                  given. One argument leaves the digits as they are; none goes back to Local with \
                  6 digits.",
        examples: &[".timefmt s", ".timefmt LocalTime 3", ".timefmt"],
        groups: Vec::new,
        parse: setting::time_format,
    },
    CommandSpec {
        names: &[".timedigits"],
        group: PRINTING,
        usage: "[DIGITS]",
        arguments: Arguments::Digits,
        summary: "digits behind the second, 0 to 6",
        details: "For times and lifetimes. Without an argument there are 6 again.",
        examples: &[".timedigits 3", ".timedigits"],
        groups: Vec::new,
        parse: setting::time_digits,
    },
    CommandSpec {
        names: &[".processfmt"],
        group: PRINTING,
        usage: "[FORMAT]",
        arguments: Arguments::ProcessFormat,
        summary: "what stands behind the name of a process",
        details: "FORMAT is that of -ProcessFmt: start, end and duration in a time format, or None. \
                  Without an argument there are + and - again.",
        examples: &[".processfmt s", ".processfmt None", ".processfmt"],
        groups: Vec::new,
        parse: setting::process_format,
    },
    CommandSpec {
        names: &[".sffn"],
        group: PRINTING,
        usage: "",
        arguments: Arguments::None,
        summary: "print whole paths of files, or names again",
        details: "Each use turns it over. -ShowFullFileName is for one query.",
        examples: &[".sffn"],
        groups: Vec::new,
        parse: setting::file_names,
    },
    CommandSpec {
        names: &[".clip"],
        group: PRINTING,
        usage: "[0|1]",
        arguments: Arguments::Switch,
        summary: "cut lines at the width of the terminal, or do not",
        details: "Lines are cut unless it is switched off; a pipe or file always gets whole lines. \
                  Without an argument it tells how it is. -Clip and -NoClip are for one query.",
        examples: &[".clip 0", ".clip"],
        groups: Vec::new,
        parse: setting::clip,
    },
    CommandSpec {
        names: &[".cls"],
        group: SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "clear the screen",
        details: "Also what has scrolled away. Does nothing in a pipe or file.",
        examples: &[".cls"],
        groups: Vec::new,
        parse: setting::clear_screen,
    },
    CommandSpec {
        names: &[".sympath"],
        group: SESSION,
        usage: "[OPTION…] [PATH]",
        arguments: Arguments::SymbolPath,
        summary: "show or set where symbols are looked for",
        details: "PATH is written like _NT_SYMBOL_PATH, whose value is used as long as none is set \
                  here or in the command line: folders, cache*FOLDER and srv*CACHE*SERVER, joined by \
                  a semicolon. Everything behind the command and its options belongs to the path. \
                  Relative folders are those of the current folder, also when that changes. \
                  .dump Symbols tells what was found where.",
        examples: &[
            ".sympath examples/symbols",
            ".sympath -symServer ms",
            ".sympath srv*C:\\Symbols*https://msdl.microsoft.com/download/symbols",
            ".sympath -retry",
        ],
        groups: || views(SYMBOL_PATH),
        parse: symbols::symbol_path,
    },
    CommandSpec {
        names: &[".symbolize"],
        group: FILES,
        usage: "[OPTION…]",
        arguments: Arguments::Options,
        summary: "store the names of all frames in the loaded extracts",
        details: "So that they can be read where no symbols are. Names are looked up on the symbol \
                  path; see .sympath. Stored names count where the symbol path has none, and are \
                  replaced when .symbolize finds better ones. An extract is written anew beside the \
                  old one, which it replaces when it is complete.",
        examples: &[".symbolize", ".symbolize -fd *leaky*"],
        groups: || views(SYMBOLIZE),
        parse: symbols::symbolize,
    },
    CommandSpec {
        names: &[".help", "help", "?", ".?"],
        group: SESSION,
        usage: "[TOPIC]",
        arguments: Arguments::Topic,
        summary: "list the commands, or explain one",
        details: "TOPIC is a command, a kind of .dump, or an option.",
        examples: &[".help", ".help ObjectRef", ".help ObjectRef -Leak", ".help .load"],
        groups: Vec::new,
        parse: entry::help,
    },
    CommandSpec {
        names: &[".quit", ".q", ".exit", "q"],
        group: SESSION,
        usage: "",
        arguments: Arguments::None,
        summary: "leave",
        details: "So does Ctrl-D on an empty line, and the end of a script.",
        examples: &[".quit"],
        groups: Vec::new,
        parse: entry::quit,
    },
];
