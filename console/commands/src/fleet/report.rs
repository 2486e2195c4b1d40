//! `.report` for a dataset: a page about the fleet, and pages about its worst traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use handlescope_model::Trace;

use super::{CHOICE, choices, fleet, warn_of};
use crate::context::answer;
use crate::dump::why::Commands;
use crate::pictures::report::{answers, criteria};
use crate::shared::ignore::{IgnoreArgs, ignore_option, ignored_option};
use crate::shared::options::force_option;
use crate::shared::{fields, groups};
use crate::{Command, CommandError, Context, DumpContext, EnteredLine, SharedArgs, Signature};
use handlescope_fleet::{Fleet, FleetCriteria, FleetWhy, fleet_why};
use handlescope_query::Source;
use handlescope_render::output::Target;
use handlescope_render::report::{self, FleetReport};
use handlescope_session::grammar::value::{NUMBER, SWITCH};
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::paths::{has_extension, with_home};
use handlescope_session::settings::Ignoring;
use handlescope_session::trace::LoadedTrace;

pub struct FleetPage;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetPageArgs {
    file: PathBuf,
    criteria: FleetCriteria,
    /// `-Traces`: number of traces that get a page.
    traces: Option<u64>,
    shared: SharedArgs,
    ignore: IgnoreArgs,
}

fields!(FleetPageArgs { criteria: FleetCriteria, ignore: IgnoreArgs });

/// Name of the command in messages.
const REPORT: &str = ".report";

impl Command for FleetPage {
    type Args = FleetPageArgs;
    const SIGNATURE: Signature = Signature {
        names: &[REPORT],
        group: groups::QUERIES,
        usage: "FILE [OPTION…]",
        arguments: Arguments::Files,
        summary: "write a web page about all leaks in the fleet",
        details: "NAME.html is a single file that needs no network: the suspects of .why with \
             machines, first builds, days and stacks, a heat map of machines by days, and for each \
             suspect the trace where it is worst. -Traces N also writes the pages of the N worst \
             traces into the folder NAME.traces, and links them.",
        examples: &Example::lines([".report fleet.html", ".report app.html -pn app -Traces 5"]),
    };
    const OPTIONS: &'static [OptionGroup<FleetPageArgs>] = &[
        OptionGroup { title: CHOICE, options: &choices() },
        OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
        OptionGroup { title: groups::SCRIPTS, options: PAGES },
    ];

    fn parse(entered: &EnteredLine<'_>) -> Result<FleetPageArgs, ParseError> {
        let (mut args, words): (FleetPageArgs, _) = entered.options_and_words(Self::OPTIONS)?;
        let takes = "one file, in quotes if its name has spaces";
        let file = entered.at_most_one(&words, takes)?;
        let Some(file) = file else { return Err(entered.missing("the file to write, NAME.html")) };
        args.file = with_home(&file);
        args.shared.text = entered.line.to_owned();
        Ok(args)
    }

    fn run(args: FleetPageArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if !has_extension(&args.file, &["html", "htm"]) {
            return Err(CommandError::PictureName { path: args.file, endings: ".html" });
        }
        answer(true, &args.shared, context, |dump| draw(&args, dump))
    }
}

fn draw(args: &FleetPageArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    dump.overwrite().replacing(&args.file)?;
    let fleet = fleet(&args.criteria, dump)?;
    let ignoring = args.ignore.read(&dump.session.settings, dump.messages)?;
    let why = fleet_why(&fleet, &args.criteria, 0, &ignoring, dump.cancel)?;
    warn_of(&why.caveats, dump.messages);
    let number = usize::try_from(args.traces.unwrap_or_default()).unwrap_or(usize::MAX);
    let pages = pages(&args.file, &fleet, &why, number, &ignoring, dump)?;
    let folder = dump.session.dataset.clone().unwrap_or_default();
    let is_limited = args.criteria != FleetCriteria::default();
    let command_line = is_limited.then_some(args.shared.text.as_str());
    let report = FleetReport { folder: &folder, fleet: &fleet, why: &why, command_line, pages };
    let target = Target { path: &args.file, option: REPORT, format: "HTML" };
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

static PAGES: &[Opt<FleetPageArgs>] = &[
    Opt {
        names: &["-Traces"],
        help: "also write the pages of the N worst traces",
        details: "The traces where the first suspects have their highest scores, from the extracts \
                  in the dataset.",
        example: "fleet.html -Traces 5",
        take: to(&(NUMBER, |args, number| args.traces = Some(number))),
    },
    force_option("fleet.html -Force", &(SWITCH, |args, ()| args.shared.output.force = true)),
];
