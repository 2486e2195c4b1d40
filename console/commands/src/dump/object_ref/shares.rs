//! Options about objects with several users, and about file mappings.

use super::args::ObjectRefArgs;
use handlescope_query::MapMode;
use handlescope_session::grammar::value::{ADDRESS, SIZES, SWITCH, TEXTS, ValueKind, WORD};
use handlescope_session::grammar::{Opt, WordChoices, choice, to, words};

/// Options about objects that several processes or threads use.
pub static SHARED: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-MultiProcess"],
        help: "objects that more than one process used",
        details: "More than one process created, duplicated (from or to), referenced, mapped or \
             unmapped it. Closing does not count.",
        example: "-MultiProcess",
        take: to(&(SWITCH, |args, ()| args.criteria.multi_process = true)),
    },
    Opt {
        names: &["-Overlapped"],
        help: "objects that had two open handles at once",
        details: "A sign of a race: two threads opened the same object at once. Considers events \
             that pass the other options.",
        example: "-Overlapped",
        take: to(&(SWITCH, |args, ()| args.criteria.overlapped = true)),
    },
    Opt {
        names: &["-Inherit"],
        help: "objects with a handle that a child process inherited",
        details: "Recorded as a duplicate with the same value in parent and child.",
        example: "-Inherit",
        take: to(&(SWITCH, |args, ()| args.criteria.inherit = true)),
    },
];

const MAPS: &WordChoices<MapMode> = &[
    ("0", "objects with handles or references", MapMode::Objects),
    ("1", "file mappings", MapMode::Mappings),
];

/// Options about views of files in memory.
pub static MAPPINGS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        names: &["-Map"],
        help: "0 for objects only, 1 for mappings only",
        details: "-Handle and -ObjectName imply 0; -PtrInMap, -ViewBase and -MinMaxMapSize \
                  imply 1, and override it.",
        example: "-Map 1",
        take: to(&(ValueKind { words: || words(MAPS), ..WORD }, |args, index| {
            args.criteria.map = choice(MAPS, index);
        })),
    },
    Opt {
        names: &["-PtrInMap"],
        help: "mappings whose view contains this address",
        details: "A hexadecimal address, with or without 0x. The end of the view is included.",
        example: "-PtrInMap 0x1B544000010",
        take: to(&(ADDRESS, |args, address| args.criteria.ptr_in_map = Some(address))),
    },
    Opt {
        names: &["-ViewBase"],
        help: "mappings whose view starts at this address",
        details: "Compared with the address as 0x and hex digits, so write 0x in front.",
        example: "-ViewBase 0x1B5*",
        take: to(&(TEXTS, |args, filter| args.criteria.view_base = Some(filter))),
    },
    Opt {
        names: &["-MinMaxMapSize"],
        help: "mappings of this size",
        details: "Units: B, KB = 1000, KiB = 1024, MB, MiB, GB, GiB.",
        example: "-MinMaxMapSize 64KiB 10MB",
        take: to(&(SIZES, |args, range| args.criteria.map_size = Some(range))),
    },
];
