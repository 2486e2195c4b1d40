//! Options about totals and output.

use crate::{
    command::{ObjectRefArgs, ShowTotal},
    registry::{Choice, Doc, Opt, Take, kinds::json_options},
};

/// Tables instead of objects.
pub(super) static TOTALS: &[Opt<ObjectRefArgs>] = &[
    Opt {
        doc: Doc {
            names: &["-ShowTotal"],
            help: "count handles that are open at the end instead of listing objects",
            details: "Counts the handles that the rundown at the end of the trace lists, of all \
                      objects that pass the filters.",
            example: "-ShowTotal Process",
        },
        take: Take::Choice(&[
            Choice {
                word: "Total",
                help: "open handles by object type",
                set: |args| args.show_total = Some(ShowTotal::Total),
            },
            Choice {
                word: "Process",
                help: "open handles by process",
                set: |args| args.show_total = Some(ShowTotal::Process),
            },
            Choice {
                word: "None",
                help: "list the objects, but no totals",
                set: |args| args.show_total = Some(ShowTotal::None),
            },
        ]),
    },
    Opt {
        doc: Doc {
            names: &["-TopN"],
            help: "only the N largest rows of -ShowTotal, leaving out the SKIP largest",
            details: "The largest row comes last.",
            example: "-ShowTotal Total -TopN 5",
        },
        take: Take::Top(|args| &mut args.top),
    },
];

/// What else is printed, and how.
pub(super) static OUTPUT: &[Opt<ObjectRefArgs>] = &[Opt {
    doc: Doc {
        names: &["-ShowRef"],
        help: "print changes of the reference count too",
        details: "Needs a trace with reference tracing.",
        example: "-ShowRef",
    },
    take: Take::Switch(|args| &mut args.show_ref),
}];

/// JSON instead of text.
pub(super) static JSON: &[Opt<ObjectRefArgs>] = &json_options();
