//! `.dump Stats`

use handlescope_model::Untrusted;

use crate::{
    commands::{CommandError, DumpContext, Kind, KindSignature},
    filter::Filter,
    grammar::{Example, Opt, OptionGroup, Take, Texts},
    query, render,
};

pub(crate) struct Stats;

impl Kind for Stats {
    /// `-Properties`: the names of those that are printed, instead of everything.
    type Args = Option<Filter>;
    const SIGNATURE: KindSignature = KindSignature {
        name: "Stats",
        summary: "what is in the traces: machine, clock, events by kind, losses",
        details: "Shows also what could not be decoded or attributed; nothing is dropped silently.",
        examples: &[
            Example { goal: "is the trace complete?", line: ".dump Stats" },
            Example { goal: "which machine", line: ".dump Stats -Properties computer;os_*" },
        ],
    };
    const OPTIONS: &'static [OptionGroup<Option<Filter>>] = &[OptionGroup {
        title: "What is printed",
        options: &[Opt {
            names: &["-Properties"],
            help: "only the properties of these names, in every format",
            details: "The names are those of -json: computer, os_version, cpu_count, \
                      session_start_utc and so on; * lists all. Those of ETWAnalyzer work too: \
                      Machine, OSVersion, NumberOfProcessors, SessionStart.",
            example: "-Properties os_*;!os_build",
            take: Take::Filter(Texts::Other, |properties| properties),
        }],
    }];

    fn columns() -> Vec<String> {
        render::stats_columns().names()
    }

    fn answer(
        properties: &Option<Filter>,
        dump: &mut DumpContext<'_, '_>,
    ) -> Result<(), CommandError> {
        let answers = query::stats(dump.sources, dump.cancel)?;
        match properties {
            None => dump.write(render::stats(&answers, &dump.display())?),
            Some(filter) => {
                let filter = &divided_by_commas(filter);
                for name in render::unknown_properties(&answers, filter)? {
                    let name = Untrusted(&name);
                    dump.messages.note(format_args!(
                        "note: no property has the name {name}; -Properties * lists all"
                    ));
                }
                dump.write(render::properties(&answers, filter)?)
            }
        }
    }
}

/// The filter with the names apart that commas divide, as in guides of ETWAnalyzer: no property has one in its name.
fn divided_by_commas(filter: &Filter) -> Filter {
    Filter::new(&filter.text().replace(',', ";")).unwrap_or_else(|_| filter.clone())
}
