//! `.report` over a dataset: a page about the fleet, and pages about its worst traces.

use std::collections::BTreeMap;
use std::path::Path;

use handlescope_model::Trace;

use super::report::{Report, answers, criteria};
use super::{PictureArgs, check_file, parse_over_dataset};
use crate::dump::why::Commands;
use crate::shared::choice::saturated;
use crate::shared::fleet::{CHOICE, choices, fleet, warn_of};
use crate::shared::groups;
use crate::shared::ignore::{ignore_option, ignored_option};
use crate::shared::options::force_option;
use crate::{Command, CommandError, DumpContext, EnteredLine, OverDataset, ParsedArgs, Signature};
use handlescope_fleet::{Fleet, FleetWhy, fleet_why};
use handlescope_query::Source;
use handlescope_render::output::Target;
use handlescope_render::report::{self, FleetReport};
use handlescope_session::grammar::value::{NUMBER, OBJECT_TYPES, SWITCH};
use handlescope_session::grammar::{Example, Opt, OptionGroup, to};
use handlescope_session::settings::Ignoring;
use handlescope_session::trace::LoadedTrace;

/// Name of the command in messages.
const REPORT: &str = Report::SIGNATURE.names[0];

pub static OF_FLEET: OverDataset<PictureArgs> = OverDataset {
    signature: &Signature {
        summary: "write a web page about all leaks in the fleet",
        details: "NAME.html is a single file that needs no network: the suspects of .why with \
             machines, first builds, days and stacks, a heat map of machines by days, and for each \
             suspect the trace where it is worst. -Traces N also writes the pages of the N worst \
             traces into the folder NAME.traces, and links them.",
        examples: &Example::lines([".report fleet.html", ".report app.html -pn app -Traces 5"]),
        ..Report::SIGNATURE
    },
    options: &[
        OptionGroup {
            title: CHOICE,
            options: &choices(&(OBJECT_TYPES, |args: &mut PictureArgs, filter| {
                args.handles.criteria.object_type = Some(filter);
            })),
        },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::SCRIPTS, options: PAGES },
    ],
    table: None,
    parse,
    answer: draw,
};

fn parse(command: &OverDataset<PictureArgs>, entered: &EnteredLine<'_>) -> ParsedArgs<PictureArgs> {
    let (args, shared) = parse_over_dataset(command, entered)?;
    Report::check_named(&args, entered)?;
    Ok((args, shared))
}

fn draw(args: &PictureArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    let file = args.file.clone().unwrap_or_default();
    check_file(&file, &["html", "htm"], ".html", dump)?;
    let criteria = args.handles.fleet_criteria();
    let fleet = fleet(criteria.choice, dump)?;
    let ignoring = args.options.ignore.read(&dump.session.settings, dump.messages)?;
    let why = fleet_why(&fleet, &criteria, 0, &ignoring, dump.cancel)?;
    warn_of(&why.caveats, dump.messages);
    let number = saturated(args.options.traces.unwrap_or_default());
    let pages = pages(&file, &fleet, &why, number, &ignoring, dump)?;
    let folder = dump.session.dataset.clone().unwrap_or_default();
    let command_line = (!criteria.is_empty()).then_some(dump.shared.text.as_str());
    let report = FleetReport { folder: &folder, fleet: &fleet, why: &why, command_line, pages };
    let target = Target { path: &file, option: REPORT, format: "HTML" };
    dump.write_file(target, |out| report::write_fleet(&report, out))
}

/// Writes a page for each trace where one of the first suspects is worst, and returns the paths of the pages relative
/// to the fleet's page.
fn pages(
    file: &Path,
    fleet: &Fleet,
    why: &FleetWhy,
    number: usize,
    ignoring: &Ignoring,
    dump: &mut DumpContext<'_, '_>,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut pages = BTreeMap::new();
    let folder = file.with_extension("traces");
    for suspect in &why.suspects {
        let trace = &suspect.worst.trace;
        if pages.len() >= number || pages.contains_key(trace) {
            continue;
        }
        let Some(extract) = fleet.dataset.extract(trace)? else {
            let error = CommandError::NoExtract { trace: trace.clone() };
            dump.messages.warning(error);
            continue;
        };
        std::fs::create_dir_all(&folder)?;
        let page = folder.join(format!("{trace}.html"));
        write_page(&page, &extract.path, ignoring, dump)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        pages.insert(trace.clone(), format!("{name}/{trace}.html"));
    }
    Ok(pages)
}

/// Writes the page of a trace, like `.report` for that trace.
fn write_page(
    page: &Path,
    extract: &Path,
    ignoring: &Ignoring,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    dump.cancel.check()?;
    let LoadedTrace { path, trace, frames, .. } =
        LoadedTrace::new(extract.to_path_buf(), Trace::open(extract)?);
    let system = dump.session.settings.system_modules();
    let sources = [Source { path: &path, index: 0, trace: &trace, frames: &frames, system }];
    let criteria = criteria(Default::default(), ignoring.clone());
    let answers = answers(&sources, &criteria, dump.names, dump.cancel)?;
    let commands = Commands::new(dump.session, &criteria);
    let command = |file, suspect: &_| commands.show(file, suspect);
    let target = Target { path: page, option: REPORT, format: "HTML" };
    dump.write_file(target, |out| report::write(&answers, None, command, out))
}

static PAGES: &[Opt<PictureArgs>] = &[
    Opt {
        names: &["-Traces"],
        help: "also write the pages of the N worst traces",
        details: "The traces where the first suspects have their highest scores, from the extracts \
                  in the dataset.",
        example: "fleet.html -Traces 5",
        take: to(&(NUMBER, |args, number| args.options.traces = Some(number))),
    },
    force_option(
        "fleet.html -Force",
        &(SWITCH, |args: &mut PictureArgs, ()| args.options.shared.output.force = true),
    ),
];
