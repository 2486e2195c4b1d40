//! `.dump`: from the loaded traces to the output.

use std::io::Write;

use crate::{
    cancel::Cancel,
    command::{DisplayArgs, Dump, ObjectRefArgs, ShowTotal},
    error::CommandError,
    file_filter::{self, files_of},
    messages::Messages,
    query::{self, Source, SymbolReports, count_by},
    render::{self, Format, ObjectView, OutputOptions, Table},
    screen::Screen,
    session::{LoadedTrace, Session},
    settings::Settings,
    symbols::WatchedSymbols,
};

/// Answers a `.dump`: results, and nothing else, go to `out`, in the manner of `screen`.
///
/// # Errors
/// When nothing is loaded or left, a trace cannot be read, `out` cannot be written, or `cancel` asks
/// to stop.
pub fn dump(
    session: &Session,
    dump: &Dump,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
    screen: Screen,
) -> Result<(), CommandError> {
    let wanted = file_filter::choose(session.files(), files_of(dump), messages)?;
    let source = |(index, file)| {
        let LoadedTrace { path, trace, frames, .. }: &LoadedTrace = file;
        Source { path, index, trace, frames }
    };
    let sources: Vec<Source<'_>> = wanted.into_iter().map(source).collect();
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    let asking = Asking { names: &names, settings: &session.settings, screen, cancel };
    answer(&sources, dump, &asking, messages, out)
}

/// What an answer needs besides traces.
pub(crate) struct Asking<'a> {
    pub(crate) names: &'a dyn SymbolReports,
    pub(crate) settings: &'a Settings,
    pub(crate) screen: Screen,
    pub(crate) cancel: &'a Cancel,
}

/// Answers a `.dump` over some traces.
pub(crate) fn answer(
    sources: &[Source<'_>],
    dump: &Dump,
    &Asking { names, settings, screen, cancel }: &Asking<'_>,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let output = dump.output();
    let usual = output.display(settings.display(&DisplayArgs::default(), screen));
    let write = |table: Table<'_>, out: &mut dyn Write| table.write(output, &usual, cancel, out);
    match dump {
        Dump::ObjectRef(args) => {
            let answer = query::object_ref(sources, args, names, cancel)?;
            let display = output.display(settings.display(&args.display, screen));
            render::object_ref(answer, &view(args), output, &display, cancel, out)?;
        }
        Dump::Process(args) => {
            write(render::processes(&query::processes(sources, args, cancel)?)?, out)?;
        }
        Dump::Module(args) => {
            let answers = query::modules(sources, args, cancel)?;
            let table = match args.versions {
                true => render::versions(&answers, &usual),
                false => render::modules(&answers),
            };
            write(table?, out)?;
        }
        Dump::Stack(args) => {
            let answers = query::call_stacks(sources, args, names, cancel)?;
            // The text says so itself.
            if output.format() != Format::Text
                && answers.iter().any(|answer| !answer.has_every_stack)
            {
                messages.note(
                    "note: these are stacks of handle events; for those of every event extract \
                     with -stacks all",
                );
            }
            let table = render::call_stacks(&answers, args.stacks, output.format(), &usual)?;
            // Names are looked up only for the stacks that are shown, so the query has cut already.
            let top = output.top.filter(|_| args.most_frequent().is_none());
            table.write(&OutputOptions { top, ..output.clone() }, &usual, cancel, out)?;
        }
        Dump::Symbols(args) => {
            let answers = query::symbols(sources, args, names, cancel)?;
            write(render::symbols(&answers)?, out)?;
        }
        Dump::Stats(_) => {
            write(render::stats(&query::stats(sources, cancel)?, &usual)?, out)?;
        }
    }
    Ok(())
}

/// What is shown of the objects.
pub(crate) fn view(args: &ObjectRefArgs) -> ObjectView<'_> {
    ObjectView {
        command: &args.text,
        by: count_by(args),
        top: args.output.top,
        has_totals: args.show_total != Some(ShowTotal::None),
        stacks: args.stacks,
        shows_references: args.show_ref,
        has_separator_line: !args.no_csv_separator,
        has_command_line: !args.no_command_line,
    }
}
