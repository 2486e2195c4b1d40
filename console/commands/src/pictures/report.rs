//! `.report`: one page about all leaks.

use std::path::Path;

use super::report_of_fleet::OF_FLEET;
use super::{FILES, PictureArgs, PictureOptions, groups as option_groups, parse};
use crate::context::answer;
use crate::dump::object_ref::LEAK_FILTERS;
use crate::dump::why::{Commands, note_suspects};
use crate::shared::groups;
use crate::shared::ignore::{ignore_option, ignored_option};
use crate::shared::write_caveats;
use crate::{Command, CommandError, Context, DumpContext, EnteredLine, OverDataset, Signature};
use handlescope_query::{
    self as query, self, AcquisitionCriteria, AllocationsOverview, FrameNames, QueryError, Source,
    WhyCriteria,
};
use handlescope_render::output::Target;
use handlescope_render::report::{self, ReportAnswer};
use handlescope_session::cancel::Cancel;
use handlescope_session::grammar::{Arguments, Example, GroupView, OptionGroup, ParseError};
use handlescope_session::paths::has_extension;
use handlescope_session::settings::Ignoring;
use handlescope_session::trace::warn_of;

pub struct Report;

static OPTIONS: &[OptionGroup<PictureOptions>] = &[
    OptionGroup { title: groups::KNOWN, options: &[ignore_option(), ignored_option()] },
    OptionGroup { title: groups::SCRIPTS, options: FILES },
];

impl Command for Report {
    type Args = PictureArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".report"],
        group: groups::QUERIES,
        usage: "FILE [OPTION…]",
        arguments: Arguments::Files,
        summary: "write a web page about all leaks",
        details: "NAME.html is a single file that needs no network: the suspects of .why with \
             stacks and source lines, open handles and allocations over time, flame graphs, and \
             tables to sort and search. It is light or dark like the browser. Names in the trace \
             cannot run as code. Other options choose handles as for .dump ObjectRef, and the \
             page names them; allocations are chosen by -pn, -Type (their kind), -MinMaxTime, \
             -CreateStack, -DestroyStack and -Suspect, and left out with any other option. The \
             commands in the page show everything that their suspect leaked.",
        examples: &Example::lines([
            ".report leaks.html",
            ".report events.html -pn leaky -Type Event",
            ".report connect.html -CreateStack *Connect*",
        ]),
    };

    const FOR_DATASET: Option<&'static OverDataset<PictureArgs>> = Some(&OF_FLEET);

    fn groups() -> Vec<GroupView> {
        option_groups(LEAK_FILTERS, OPTIONS)
    }

    fn parse(entered: &EnteredLine<'_>) -> Result<PictureArgs, ParseError> {
        let args = parse(entered, LEAK_FILTERS, OPTIONS)?;
        Self::check_named(&args, entered)?;
        Ok(args)
    }

    fn run(args: PictureArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let file = args.file.clone().unwrap_or_default();
        if !has_extension(&file, &["html", "htm"]) {
            return Err(CommandError::PictureName { path: file, endings: ".html" });
        }
        answer(false, &args.options.shared, context, |dump| draw(&file, &args, dump))
    }
}

impl Report {
    /// Refuses a line without a file.
    pub fn check_named(args: &PictureArgs, entered: &EnteredLine<'_>) -> Result<(), ParseError> {
        match args.file {
            Some(_) => Ok(()),
            None => Err(entered.missing("the file to write, NAME.html")),
        }
    }
}

fn draw(
    path: &Path,
    args: &PictureArgs,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    dump.overwrite().replacing(path)?;
    let handles = &args.handles.criteria;
    let command_line =
        (*handles != AcquisitionCriteria::default()).then_some(args.options.shared.text.as_str());
    let ignoring = args.options.ignore.read(&dump.session.settings, dump.messages)?;
    let criteria = criteria(handles.clone(), ignoring);
    let answers = answers(dump.sources, &criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        note_suspects(dump.session, std::slice::from_ref(&answer.why));
        let file = &answer.why.file;
        write_caveats(file, dump.session, dump.messages);
        warn_of(file.about.path, answer.allocation_caveats(), dump.messages);
    }
    let target = Target { path, option: Report::SIGNATURE.names[0], format: "HTML" };
    let commands = Commands::new(dump.session, &criteria);
    let command = |file, suspect: &_| commands.show(file, suspect);
    dump.write_file(target, |out| report::write(&answers, command_line, command, out))
}

/// Returns the criteria of a page about these handles, either without known leaks or only with them.
pub fn criteria(handles: AcquisitionCriteria, ignoring: Ignoring) -> WhyCriteria {
    WhyCriteria { handles, with_every_group: true, ignoring, ..WhyCriteria::default() }
}

/// Returns the answers for a page.
pub fn answers<'a>(
    sources: &'a [Source<'a>],
    criteria: &WhyCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<ReportAnswer<'a>>, QueryError> {
    let answers =
        sources.iter().zip(query::why(sources, criteria, names, cancel)?).map(|(source, why)| {
            let allocations = allocations(source, criteria, names, cancel)?;
            Ok(ReportAnswer { why, allocations })
        });
    answers.collect()
}

/// Returns the allocations of a trace, if any are wanted: options may filter by something that only objects have.
fn allocations<'a>(
    source: &Source<'a>,
    criteria: &WhyCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Option<AllocationsOverview<'a>>, QueryError> {
    if !criteria.handles.select_allocations() {
        return Ok(None);
    }
    query::allocations_overview(source, &criteria.handles, names, cancel)
}
