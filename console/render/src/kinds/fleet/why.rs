//! `.why` over a dataset.

use std::io;

use super::stack::frames;
use super::{add_caveats, add_site};
use crate::table::{AnswerTable, Columns, FileRows, Show};
use crate::text::fleet::{
    amounts, builds, causes, commands, count, growth, headline, joined, line_of_ignored_suspects,
};
use crate::text::{BlockWriter, capitalized, ignored_because};
use handlescope_fleet::{CallSite, DayLeaks, FleetSuspect, FleetWhy, WorstTrace};
use handlescope_session::filter::SystemModules;
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;
use handlescope_session::values::CountedNoun;

type NumberOf<T> = fn(&FleetSuspect) -> T;

/// Declares the columns of a suspect.
pub fn fleet_why_columns<'a>() -> Columns<'a, &'a FleetSuspect> {
    let mut columns = Columns::<&'a FleetSuspect>::default();
    columns.add("rank", "rank, from 1", |row| row.rank as u64).title("Rank");
    let numbers: [(_, _, _, NumberOf<usize>); 4] = [
        ("machines", "number of machines where it is a suspect", "Machines", |of| of.machines),
        ("machines_of_process", "number of machines where the program ran", "Of machines", |of| {
            of.machines_of_process
        }),
        ("traces", "number of traces where it is a suspect", "Traces", |of| of.traces),
        ("traces_of_process", "number of traces where the program ran", "", |of| {
            of.traces_of_process
        }),
    ];
    for (name, meaning, title, number) in numbers {
        let column = columns.add(name, meaning, move |row| number(row) as u64);
        if !title.is_empty() {
            column.title(title);
        }
    }
    let meanings = [
        "executable of the owners",
        "`handle`, `view`, or the kind of allocations",
        "type of the objects; for allocations their kind",
        "the allocator, where traces have its name; else null",
        "identity of the create stack, equal on all machines and in all builds; null: no stack",
    ];
    add_site(&mut columns, meanings, |row| &row.site);
    let amounts: [(_, _, NumberOf<i64>); 3] = [
        ("leaked", "Leaked", |of| of.leaked),
        ("closed_at_exit", "At exit", |of| of.closed_at_exit),
        ("created", "Opened", |of| of.acquired),
    ];
    for (name, title, amount) in amounts {
        let meaning = "as in `.dump Why`, sums over the traces";
        let column = columns.add(name, meaning, move |row| count(amount(row)));
        column.title(title).show(Show::Grouped);
    }
    columns.add("bytes", "bytes of the allocations never freed; null for handles", |row| {
        row.site.is_of_allocations().then_some(row.bytes_unreleased)
    });
    columns
        .add(
            "rate_per_minute",
            "median over the machines of the mean rate of their steady traces; null: steady \
             nowhere",
            |row| Some(row.rate_per_minute?.0),
        )
        .title("Per minute");
    columns
        .add("max_rate_per_minute", "maximum of these rates; null: steady nowhere", |row| {
            Some(row.rate_per_minute?.1)
        })
        .title("At most");
    columns
        .add("first_build", "first build that leaks; null if unknown", |row| {
            row.first_build.as_deref()
        })
        .title("First build");
    columns.add("last_build", "last build that leaks; null if unknown", |row| {
        row.last_build.as_deref()
    });
    columns.nest(
        "builds_without",
        "array",
        "builds of the program after the last one that leaks, in order",
        |row| &row.builds_without,
    );
    columns.add("traces_without", "number of traces in which these ran", |row| {
        row.traces_without as u64
    });
    columns
        .add("first_day", "first day on which it leaked, UTC", |row| row.days()[0])
        .title("First day");
    columns
        .add("last_day", "last day on which it leaked, UTC", |row| row.days()[1])
        .title("Last day");
    let verdicts = "growth verdicts of the traces ([growth.md](growth.md)), most frequent first";
    let meanings = [verdicts, "the verdict, and the number of traces that have it"];
    add_words(&mut columns, ["verdicts", "Growth"], meanings, |of| &of.verdicts);
    let causes = "causes that the events of the traces prove, likewise";
    let meanings = [causes, "the cause, as in `.dump Why`, and the number of traces"];
    add_words(&mut columns, ["causes", "Causes"], meanings, |of| &of.causes);
    columns
        .parts("by_day", "the days on which it leaked, in order", day_columns(), |row| {
            row.by_day.iter().collect()
        })
        .detail();
    let function = columns.add(
        "function",
        "the function of the program in the stack ([why.md](why.md#the-function))",
        |row| row.site.function.as_deref(),
    );
    function.title("Function").follows("stack_id");
    columns.add(
        "score",
        "the number that ranks suspects: number of machines, times the median over these machines \
         of the score in the worst trace of each",
        |row| row.score,
    );
    columns
        .add("stack", "frames of the stack, one per line", |row| row.site.stack_text.as_deref())
        .detail();
    columns
        .nest("worst", "object", "the trace with the highest score", |row| {
            worst_columns().part(&row.worst)
        })
        .inner(worst_columns().members());
    columns
        .nest(
            "ignored_because",
            "string?",
            "the reason given by the entry that ignores it in a list of known leaks; null unless \
             `-Ignored` asks for it",
            |row| row.ignored.as_ref().map(|entry| entry.reason().to_owned()),
        )
        .for_programs();
    columns
        .add("worst_trace", "id of the trace that leaks most", |row| row.worst.trace.as_str())
        .rows_only();
    columns
}

/// Returns a row for each suspect; in text each is a block of lines.
///
/// # Errors
/// None that a caller could do anything about.
pub fn fleet_why<'a>(
    answer: &'a FleetWhy,
    all_frames: bool,
    system: &'a SystemModules,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let rows: Vec<&FleetSuspect> = answer.suspects.iter().collect();
    let (mut columns, display) = (fleet_why_columns(), *display);
    columns.row_text(move |suspect, out| {
        let frames = frames(&suspect.site, all_frames, system);
        write(suspect, &frames, BlockWriter { display: &display, out })
    });
    let part = FileRows::rows_of(rows.len()).of_each("more suspect");
    let headline = headline(answer);
    let part = match rows.len() {
        0 => part.below(headline),
        _ => {
            let headline = display.whole(&headline);
            let headline = display.screen.paint(Role::Heading, headline);
            part.above(format!("{headline}\n\n"))
        }
    };
    let part = line_of_ignored_suspects(answer).into_iter().fold(part, FileRows::below);
    Ok(AnswerTable::new(columns, rows, [part])?.within(fleet_why_document(), answer))
}

/// Declares words with the number of traces of each: one text in rows, separate members in documents.
fn add_words<'a>(
    columns: &mut Columns<'a, &'a FleetSuspect>,
    [name, title]: [&'static str; 2],
    [words, word]: [&'static str; 2],
    of: fn(&'a FleetSuspect) -> &'a [(String, usize)],
) {
    let text = columns.add(name, words, move |row| joined(of(row)));
    text.title(title).rows_only();
    let mut members = Columns::<&(String, usize)>::default();
    members.member("word", word, |(word, _)| word.as_str());
    members.member("traces", word, |(_, traces)| *traces);
    columns.parts(name, words, members, move |row| of(row).iter().collect());
}

/// A day and its leaks.
type DayRow<'a> = (&'a String, &'a DayLeaks);

/// Declares the columns of a day.
fn day_columns<'a>() -> Columns<'a, DayRow<'a>> {
    const DAY: &str = "the day, and the number of traces that have the suspect";
    let mut columns = Columns::<DayRow<'a>>::default();
    columns.member("day", DAY, |(day, _)| day.as_str());
    columns.member("traces", DAY, |(_, leaks)| leaks.traces);
    columns.member(
        "unreleased",
        "handles or allocations that leaked, at exit too",
        |(_, leaks)| count(leaks.unreleased),
    );
    columns
}

/// Declares the columns of the trace in which a suspect has its highest score.
fn worst_columns<'a>() -> Columns<'a, &'a WorstTrace> {
    const WHERE: &str = "where and when it was recorded, and its id";
    let mut columns = Columns::<&WorstTrace>::default();
    columns.member("machine", WHERE, |worst| worst.machine.as_str());
    columns.member("day", WHERE, |worst| worst.day.as_str());
    columns.member("trace", WHERE, |worst| worst.trace.as_str());
    columns.member("suspect", "id of the suspect in that trace, for `-Suspect`", |worst| {
        worst.suspect.as_str()
    });
    columns
}

/// Writes a block about a suspect and an empty line: rank, machines and process, its calls, amount, growth, builds,
/// causes, and the commands that show the worst trace.
fn write(suspect: &FleetSuspect, frames: &[String], mut block: BlockWriter<'_>) -> io::Result<()> {
    let CallSite { process, type_name, .. } = &suspect.site;
    let machines = CountedNoun(suspect.machines_of_process as u64, "machine");
    let machines = format!("{} of {machines}", suspect.machines);
    block.heading(suspect.rank, &machines, &format!("{process} {type_name}"))?;
    frames.iter().try_for_each(|frame| block.line(Role::Heading, frame))?;
    let traces = CountedNoun(suspect.traces_of_process as u64, "trace");
    let amount = format!("{} in {} of {traces}", amounts(suspect), suspect.traces);
    for line in [amount, growth(suspect), capitalized(&builds(suspect))] {
        block.line(Role::Plain, &line)?;
    }
    if !suspect.causes.is_empty() {
        block.line(Role::Cause, &capitalized(&causes(suspect)))?;
    }
    if let Some(entry) = &suspect.ignored {
        block.line(Role::Plain, &ignored_because(entry))?;
    }
    let WorstTrace { machine, day, evidence, .. } = &suspect.worst;
    block.line(Role::Plain, &format!("Worst on {machine}, {day}: {evidence}"))?;
    commands(suspect).iter().try_for_each(|command| block.line(Role::Aside, command))?;
    writeln!(block.out)
}

/// Declares the document of `.why` over a dataset.
pub fn fleet_why_document<'a>() -> Columns<'a, &'a FleetWhy> {
    const NUMBERS: &str = "number of machines and traces that pass the options";
    let mut document = Columns::<&FleetWhy>::default();
    document.kind("`\"FleetWhy\"`", "FleetWhy");
    document.member("machines", NUMBERS, |answer| answer.machines);
    document.member("traces", NUMBERS, |answer| answer.traces);
    document.member("ignored", "number of suspects ignored by a list of known leaks", |answer| {
        answer.ignored.len()
    });
    document.left_out("suspects", "number of omitted suspects");
    document.rows("suspects", "suspects, ranked, see below; `[]` if nothing leaks");
    let caveats = [
        "what makes the answer wrong or incomplete",
        "`events_lost`, `symbols_missing`, `no_clock`, or `no_match` (a filter that nothing passes)",
        "a sentence",
        "number of traces concerned",
    ];
    add_caveats(&mut document, caveats, |answer| &answer.caveats);
    document
}
