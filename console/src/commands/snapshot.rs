//! `.snapshot`: names points in time of the loaded traces.

use handlescope_model::Untrusted;

use super::{
    Command, CommandError, Context, Entered, Signature,
    converttime::{is_time, recorded_ns},
    shared::{files::files_option, groups},
};
use crate::{
    filter::Filter,
    grammar::{Arguments, OptionGroup, ParseError, parse},
    paths::shown,
    query::trace_info,
    render::time::Seconds,
    terminal::table,
    trace::{self, LoadedTrace, choose},
    values::TimeDigits,
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SnapshotArgs {
    /// The new name; none to list what there is.
    name: Option<String>,
    /// The point in time; none for the end.
    time: Option<String>,
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    files: Vec<Filter>,
}

pub(crate) struct Snapshot;

impl Command for Snapshot {
    type Args = SnapshotArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".snapshot"],
        group: groups::QUERIES,
        usage: "[NAME [TIME]]",
        arguments: Arguments::Points(1),
        summary: "name a point in time for .diff, or list those that have names",
        details: "TIME is written as for .converttime: seconds since session start, 13.123s, or a date \
                  and time. Without it the point is the end of the trace. The point is one of every loaded \
                  trace that was recorded then. A name that is there already gets the new point. \
                  Snapshots last as long as their trace is loaded. Those of !htrace -snapshot in the text of a \
                  debugger are there already, as snapshot1, snapshot2 and so on.",
        examples: &[".snapshot warm 0.5s", ".snapshot", ".diff warm"],
    };
    const OPTIONS: &'static [OptionGroup<SnapshotArgs>] =
        &[OptionGroup { title: "Options", options: &[files_option(|args| &mut args.files)] }];

    fn parse(entered: &Entered<'_>) -> Result<SnapshotArgs, ParseError> {
        let (args, words) =
            parse::options_and_words(&entered.help(), entered.tokens, Self::OPTIONS)?;
        let mut words = words.into_iter().map(|word| word.text.clone());
        let name = words.next();
        // A date and a time are two words.
        let time = words.reduce(|date, time| format!("{date} {time}"));
        Ok(SnapshotArgs { name, time, ..args })
    }

    fn run(args: SnapshotArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, messages, .. } = context;
        let chosen = choose(&session.files, &args.files, messages)?;
        let Some(name) = &args.name else {
            let chosen: Vec<&LoadedTrace> = chosen.into_iter().map(|(_, file)| file).collect();
            let text = listed(&chosen, context.screen)?;
            write!(context.out, "{text}")?;
            return Ok(());
        };
        if is_time(name) {
            return Err(CommandError::SnapshotName { name: name.clone() });
        }
        let mut points = Vec::new();
        for (index, file) in chosen {
            points.extend(point(file, args.time.as_deref())?.map(|ns| (index, ns)));
        }
        if points.is_empty() {
            return Err(CommandError::NotRecorded { text: args.time.unwrap_or_default() });
        }
        for (index, ns) in points {
            if let Some(file) = session.files.get_mut(index) {
                file.snapshots.retain(|known| !known.name.eq_ignore_ascii_case(name));
                let name = name.clone();
                file.snapshots.push(trace::Snapshot { name, ns, of_debugger: false });
            }
        }
        Ok(())
    }
}

/// The point of a trace that a time is, `Some(None)` for its end; `None` when the trace was not recorded
/// then.
fn point(file: &LoadedTrace, time: Option<&str>) -> Result<Option<Option<i64>>, CommandError> {
    let Some(time) = time else { return Ok(Some(None)) };
    let info = trace_info(&file.trace)?;
    if !info.has_clock() {
        return Err(CommandError::NotByTime { path: file.path.clone(), option: "TIME" });
    }
    Ok(recorded_ns(time, &info)?.map(Some))
}

/// All snapshots of some traces.
fn listed(files: &[&LoadedTrace], screen: crate::terminal::Screen) -> Result<String, CommandError> {
    if files.iter().all(|file| file.snapshots.is_empty()) {
        return Ok("No point in time has a name; .snapshot NAME TIME names one.\n".to_owned());
    }
    let mut table = table::table(screen, &["Name", "Seconds", "File"]);
    for file in files {
        let has_clock = trace_info(&file.trace)?.has_clock();
        for trace::Snapshot { name, ns, .. } in &file.snapshots {
            let point = |ns| match has_clock {
                true => Seconds { ns, digits: TimeDigits::MOST }.to_string(),
                false => format!("after {} events", ns.saturating_add(1)),
            };
            table.add_row([
                Untrusted(name).to_string(),
                ns.map_or_else(|| "end".to_owned(), point),
                Untrusted(shown(&file.path)).to_string(),
            ]);
        }
    }
    table::align_right(&mut table, &[1]);
    Ok(table::text(table))
}
