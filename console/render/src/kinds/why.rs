//! `.dump Why`

use std::collections::HashSet;
use std::io::{self, Write};

use handlescope_model::{FILE_MAPPING_NAME, Untrusted};
use indicatif::HumanCount;

use super::{index, no_match_line};
use crate::findings::{Findings, LeakFinding};
use crate::traces::{OfTraces, StackOffset, traces};
use crate::{
    table::{AnswerTable, Columns, FileRows},
    text::{
        StackStyle, amounts, bars, callers, capitalized, headline, ignored_because, is_narrow,
        line_of_holders, line_of_ignored, line_of_zombies, lines_of_not_counted,
        lines_without_suspects, more, overview,
    },
};
use handlescope_query::{
    Caller, CallerLeaks, Diagnosis, ObjectNames, Suspect, SuspectProcess, Verdict, WhyAnswer,
    ZombieHolder,
};
use handlescope_session::paths;
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::CountedNoun;

/// A function that returns the command for the handles of a suspect; its first argument is the file number.
type CommandOf<'a> = &'a dyn Fn(usize, &Suspect) -> String;

/// Share of the worst score, and of the largest amount, below which a suspect is small.
const SMALL: f64 = 0.1;

/// A suspect with at most this many handles is small if a system stack opens them and process exit closes them: each
/// process has a few.
const MIN_AT_EXIT: u64 = 2;

/// Indentation that aligns the following lines with the text after the rank.
const INDENT: &str = "   ";

/// Number of object names of a suspect in the text.
pub const NAMES: usize = 2;

/// Number of callers of a function in the text.
pub const CALLERS: usize = 3;

/// Number of handle values of a suspect in the text.
const HANDLES: usize = 5;

/// Number of processes of a suspect in the text.
pub const PROCESSES: usize = 5;

/// Number of suspects that get a block in the first look.
const BLOCKS: usize = 5;

/// Number of suspects in the table of the first look.
const LISTED: usize = 12;

/// A suspect and its presentation.
pub struct SuspectRow<'a> {
    answer: &'a WhyAnswer<'a>,
    suspect: &'a Suspect,
    numbers: StackOffset,
    stacks: StackStyle<'a>,
    command: String,
    /// Whether the text only counts this suspect.
    is_small: bool,
    /// Whether the text says everything about this suspect.
    is_whole: bool,
}

/// How much the text shows of the suspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look<'c> {
    /// A table, blocks about the first suspects, and how this command shows the others.
    First(&'c str),
    /// Blocks about all suspects that are not small, and how this command shows the others.
    Large(&'c str),
    All,
    /// All suspects, and everything about each.
    Whole,
}

/// Declares the columns of a suspect.
pub fn why_columns<'a>() -> Columns<'a, SuspectRow<'a>> {
    let mut columns = Columns::<SuspectRow<'a>>::default();
    columns.add("file", "index of the file", |row| index(row.answer.file.about.index));
    columns.add(
        "id",
        "`-Suspect` with this id selects what leaked; the same in every run, see \
         [why.md](why.md#the-command)",
        |row| row.suspect.id.text().to_owned(),
    );
    columns
        .add(
            "id_without_symbols",
            "the id of the suspect without symbols, which selects it everywhere; null if it is the same",
            |row| row.suspect.id.without_symbols().map(str::to_owned),
        )
        .for_programs();
    columns
        .add("rank", "rank among the suspects of its file, from 1", |row| index(row.suspect.rank))
        .detail()
        .title("Rank");
    columns
        .add(
            "process",
            "owner of the handles, `name.exe(pid)`; for several processes of one program \
             its name, as in `worker.exe`",
            |row| row.suspect.process.as_str(),
        )
        .title("Process");
    columns.add("name", "process and type", SuspectRow::name).rows_only();
    columns
        .add("pid", "process id of the owner; null if unknown or if there are several", |row| {
            row.suspect.pid
        })
        .detail();
    columns
        .add(
            "process_start_ns",
            "start of the owner; null: before the trace, unknown, or several owners",
            |row| row.suspect.process_start_ns,
        )
        .for_programs();
    columns
        .add("processes", "the processes that leak, worst first", |row| {
            row.suspect.processes.len() as u64
        })
        .rows_only();
    columns
        .parts(
            "processes",
            "the processes that leak, worst first",
            suspect_process_columns(),
            |row| row.suspect.processes.iter().collect(),
        )
        .detail();
    columns
        .add(
            "type",
            "type of the objects; for allocations their kind (`heap`, `commit`, …), or \
             `private heap`",
            |row| row.suspect.type_name.as_str(),
        )
        .title("Type");
    columns.add(
        "allocator",
        "the allocator, if it is more specific than the kind: the name in acquire \
         events, or the type of a GDI or USER handle; else null",
        |row| row.suspect.allocator.as_deref(),
    );
    columns
        .nest(
            "create_stack",
            "integer?",
            "number of the stack that opened them, null without one",
            |row| Some(row.numbers.of(row.suspect.create_stack?)),
        )
        .detail();
    columns
        .nest(
            "create_stacks",
            "integer?",
            "number of create stacks with these functions, at different addresses, that are \
             shown as one; null for allocations",
            |row| row.suspect.create_stacks,
        )
        .detail();
    columns
        .add("leaked", "handles and views never closed, or allocations never freed", |row| {
            row.suspect.counts.leaked
        })
        .title("Leaked");
    columns
        .add(
            "closed_at_exit",
            "handles and views closed only by the end of the process, or allocations that \
             ended with it",
            |row| row.suspect.counts.closed_at_exit,
        )
        .title("At exit");
    columns
        .add("created", "handles and views opened, or allocations made", |row| {
            row.suspect.counts.opened
        })
        .title("Opened");
    columns
        .parts(
            "callers",
            "callers of the function, if the suspect has the stacks of all that leak alike; else \
             none",
            caller_columns(),
            |row| {
                row.suspect
                    .function_of_stacks
                    .iter()
                    .flat_map(|function| &function.callers)
                    .map(|caller| (caller, row.numbers))
                    .collect()
            },
        )
        .detail();
    for (name, meaning, count) in [
        (
            "other_callers_leaked",
            "number that other callers of the function did not release, if these do not leak alike; \
             else null",
            (|leaked| leaked.leaked) as fn(CallerLeaks) -> u64,
        ),
        ("other_callers_created", "number that these opened or allocated", |it| it.acquired),
    ] {
        columns
            .nest(name, "integer?", meaning, move |row| {
                let others = row.suspect.function_of_stacks.as_ref()?.others;
                (others.stacks > 0).then(|| count(others.leaked))
            })
            .detail();
    }
    columns.add("bytes", "bytes of the allocations never freed; null for handles", |row| {
        Some(row.suspect.bytes?.unreleased)
    });
    columns
        .add("allocated_bytes", "bytes of all of them; null for handles", |row| {
            Some(row.suspect.bytes?.allocated)
        })
        .detail();
    columns
        .add("verdict", "how the group grows, see [growth.md](growth.md)", |row| {
            row.suspect.growth.verdict.word()
        })
        .title("Growth");
    columns
        .add("rate_per_minute", "the rate of a steady leak, else null", |row| {
            row.suspect.rate_per_minute()
        })
        .title("Per minute");
    columns
        .nest(
            "rate_per_request",
            "number?",
            "handles or allocations that a steady leak adds per request that its processes \
             began, if the extract has request events; else null",
            |row| row.suspect.rate_per_request(),
        )
        .detail();
    columns
        .add("bytes_per_minute", "the rate in bytes, for allocations", |row| {
            row.suspect.bytes?.per_minute
        })
        .detail();
    columns
        .add("evidence", "the basis of the verdict, as a sentence", |row| row.suspect.evidence())
        .detail();
    columns
        .nest("amount", "string", "the counts, as the text shows them", |row| amounts(row.suspect))
        .detail();
    columns
        .nest(
            "growth",
            "string",
            "the verdict with its evidence, as the text shows them",
            SuspectRow::growth,
        )
        .detail();
    columns
        .nest(
            "calls",
            "string?",
            "the first functions of the stack outside of the system, in one line; null \
             without a stack",
            SuspectRow::calls,
        )
        .detail();
    columns
        .nest("is_small", "boolean", "whether the text without `-All` only counts it", |row| {
            row.is_small
        })
        .for_programs();
    columns
        .nest(
            "ignored_because",
            "string?",
            "the reason given by the entry that ignores it in a list of known leaks; null unless \
             `-Ignored`, a rank or an id asks for it",
            |row| row.suspect.ignored.as_ref().map(|entry| entry.reason().to_owned()),
        )
        .for_programs();
    columns
        .parts(
            "object_names",
            "the most frequent names of leaked objects, at most three; none for allocations",
            object_name_columns(),
            |row| row.suspect.names.frequent.iter().collect(),
        )
        .detail();
    columns
        .parts(
            "diagnoses",
            "causes that the events prove, see [why.md](why.md)",
            diagnosis_columns(),
            |row| {
                let diagnoses = with_telling(&row.suspect.diagnoses);
                let numbers = row.numbers;
                diagnoses.map(|(of, is_shown)| DiagnosisRow { of, is_shown, numbers }).collect()
            },
        )
        .detail();
    columns
        .add("causes", "words of the causes that the events prove", SuspectRow::causes)
        .title("Causes")
        .rows_only();
    let function = columns.add(
        "function",
        "the function of the program in the stack ([why.md](why.md#the-function)), as \
         stack filters see it",
        |row| row.suspect.function.as_deref(),
    );
    function.title("Function").follows("create_stack");
    columns.add("score", "the number that ranks suspects", |row| row.suspect.score).for_programs();
    columns
        .add("stack", "the frames of the stack, one per line", |row| {
            row.stacks.text(row.suspect.create_stack)
        })
        .rows_only();
    columns
        .add("command", "the command that lists the leaked handles or allocations", |row| {
            row.command.clone()
        })
        .for_programs();
    columns
}

/// Returns a row for each suspect; JSON also has its diagnoses and stacks. In text each suspect is a block of lines,
/// and `look` says how much of it is shown.
///
/// # Errors
/// None that a caller could do anything about.
pub fn why<'a>(
    answers: &'a [WhyAnswer<'a>],
    command: CommandOf<'_>,
    look: Look<'_>,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let traces = traces(answers.iter().map(|answer| &answer.file));
    let shown = StackDisplayArgs { show: true, line: true, ..stacks };
    let rows = answers.iter().zip(traces.iter()).flat_map(|(answer, trace)| {
        let small = small(&answer.suspects, &StackStyle::for_answer(&answer.file, shown));
        let rows = answer.suspects.iter().zip(small).map(|(suspect, is_small)| {
            let command = command(answer.file.about.index, suspect);
            let (numbers, stacks) = (trace.numbers, StackStyle::for_answer(&answer.file, shown));
            let is_whole = look == Look::Whole;
            SuspectRow { answer, suspect, numbers, stacks, command, is_small, is_whole }
        });
        rows.collect::<Vec<SuspectRow<'a>>>()
    });
    let rows: Vec<SuspectRow<'a>> = rows.collect();
    let mut rest = rows.as_slice();
    let parts = answers.iter().map(|answer| {
        let rows = rest.split_off(..answer.suspects.len()).unwrap_or_default();
        part(answer, rows, look, display)
    });
    let parts: Vec<FileRows> = parts.collect();
    let (mut columns, display) = (why_columns(), *display);
    columns.row_text(move |row, out| row.write(stacks.show, &display, out));
    let table = AnswerTable::new(columns, rows, parts)?;
    Ok(table.within(why_document(), OfTraces { traces, rest: answers }))
}

/// Returns the suspects of each trace as findings. `failures` says which suspects of each trace fail a gate, and `rows`
/// which are kept; `None` keeps all.
pub fn why_findings(
    answers: &[WhyAnswer<'_>],
    failures: Option<&[Vec<bool>]>,
    rows: Option<&[HashSet<usize>]>,
    command: CommandOf<'_>,
) -> Vec<Findings> {
    let of_trace = |(trace, answer): (usize, &WhyAnswer<'_>)| {
        let failures = failures
            .map(|failures| failures.get(trace).map(Vec::as_slice))
            .map(Option::unwrap_or_default);
        let fails = |place| failures.is_none_or(|failures| failures.get(place) == Some(&true));
        let stacks = stacks_with_lines(answer);
        let rows = rows.and_then(|rows| rows.get(trace));
        let is_left = |place: &usize| rows.is_none_or(|rows| rows.contains(place));
        let left = answer.suspects.iter().enumerate().filter(|(place, _)| is_left(place));
        let list = left.map(|(place, suspect)| {
            let command = command(answer.file.about.index, suspect);
            LeakFinding { is_failure: fails(place), ..finding(suspect, &stacks, command) }
        });
        findings(answer, &answer.suspects, list.collect())
    };
    answers.iter().enumerate().map(of_trace).collect()
}

/// Returns one suspect of a trace as the only finding.
pub fn findings_of_suspect(
    answer: &WhyAnswer<'_>,
    suspect: &Suspect,
    stacks: &StackStyle<'_>,
    command: String,
) -> Findings {
    let list = vec![finding(suspect, stacks, command)];
    findings(answer, std::slice::from_ref(suspect), list)
}

/// Returns a style that shows stacks with files and lines.
pub fn stacks_with_lines<'a>(answer: &'a WhyAnswer<'_>) -> StackStyle<'a> {
    let shown = StackDisplayArgs { show: true, line: true, ..StackDisplayArgs::default() };
    StackStyle::for_answer(&answer.file, shown)
}

/// Returns findings about some suspects of a trace.
fn findings(answer: &WhyAnswer<'_>, suspects: &[Suspect], list: Vec<LeakFinding>) -> Findings {
    let about = paths::shown(answer.file.about.path).to_string_lossy().into_owned();
    let mut headline = first_lines(answer, suspects);
    // If ignored suspects were asked for, all suspects are ignored ones.
    let has_others = suspects.iter().any(|suspect| suspect.ignored.is_none());
    headline.extend(line_of_ignored(answer.ignored.len(), "suspect").filter(|_| has_others));
    Findings { about, headline, list }
}

/// Returns the first lines about a trace: the headline of some of its suspects, or why there are none.
pub fn first_lines(answer: &WhyAnswer<'_>, suspects: &[Suspect]) -> Vec<String> {
    if suspects.is_empty() { lines_without_suspects(answer) } else { headline(suspects) }
}

fn finding(suspect: &Suspect, stacks: &StackStyle<'_>, command: String) -> LeakFinding {
    let telling = with_telling(&suspect.diagnoses).filter(|(_, is_shown)| *is_shown);
    let causes = telling.map(|(diagnosis, _)| cause(stacks, diagnosis, suspect.program()));
    let finding = LeakFinding {
        rule: suspect.growth.verdict.word(),
        program: suspect.program().to_owned(),
        title: title(suspect),
        sentences: std::iter::once(growth(suspect))
            .chain(callers(suspect, CALLERS))
            .chain(named_objects(suspect, NAMES))
            .chain(causes)
            .chain(suspect.ignored.as_ref().map(|entry| ignored_because(entry)))
            .collect(),
        command: Some(command),
        id: Some(suspect.id.text().to_owned()),
        ..LeakFinding::default()
    };
    finding.at(stacks.frames.as_ref(), suspect.create_stack)
}

/// Describes a suspect in one line: `8 of 56 Event handles leaked by leaky.exe(7316)`.
pub fn title(suspect: &Suspect) -> String {
    format!("{} by {}", amounts(suspect), suspect.process)
}

/// Returns the suspects of a trace, and the text about them together.
fn part(
    answer: &WhyAnswer<'_>,
    rows: &[SuspectRow<'_>],
    look: Look<'_>,
    display: &Display,
) -> FileRows {
    let part = FileRows::new(answer.file.about.path, rows.len()).of_each("more suspect");
    if rows.is_empty() {
        return without_suspects(part, answer);
    }
    let bold = |line: &String| display.screen.paint(Role::Heading, display.whole(line)).to_string();
    let headline: Vec<String> = headline(&answer.suspects).iter().map(bold).collect();
    let mut above = format!("{}\n\n", headline.join("\n"));
    let (mut part, mut lines) = (part, Vec::new());
    if let Look::First(command) | Look::Large(command) = look {
        let small = rows.iter().map(|row| row.is_small);
        let (mut shown, mut left_out) = shown_and_left_out(small);
        if matches!(look, Look::First(_)) {
            let listed: Vec<&Suspect> =
                shown.iter().filter_map(|place| answer.suspects.get(*place)).take(LISTED).collect();
            if listed.len() > 1 {
                above.push_str(&overview(&listed, display));
                above.push('\n');
            }
            left_out.extend(shown.split_off(shown.len().min(BLOCKS)));
            left_out.sort_unstable();
        }
        lines = lines_of_left_out(answer, rows, &left_out, command);
        part = part.only(shown);
    }
    if look != Look::Whole {
        part = part.above(above);
        lines.extend(lines_of_not_counted(answer));
        lines.extend(lines_of_zombies(answer));
    }
    if lines.is_empty() { part } else { part.below(lines.join("\n")) }
}

/// Returns the indexes of the suspects that the text shows, and of the small ones that it only counts.
fn shown_and_left_out(small: impl Iterator<Item = bool>) -> (Vec<usize>, Vec<usize>) {
    let (mut shown, mut left_out) = (Vec::new(), Vec::new());
    for (place, is_small) in small.enumerate() {
        if is_small { left_out.push(place) } else { shown.push(place) }
    }
    if shown.is_empty() && !left_out.is_empty() {
        shown.push(left_out.remove(0));
    }
    (shown, left_out)
}

/// Returns the suspects in the table of the first look, and the others.
pub fn listed_and_others<'a>(answer: &'a WhyAnswer<'_>) -> (Vec<&'a Suspect>, Vec<&'a Suspect>) {
    let small = small(&answer.suspects, &stacks_with_lines(answer));
    let (mut listed, mut others) = shown_and_left_out(small.into_iter());
    others.extend(listed.split_off(listed.len().min(LISTED)));
    others.sort_unstable();
    let suspects = |places: Vec<usize>| {
        places.into_iter().filter_map(|place| answer.suspects.get(place)).collect()
    };
    (suspects(listed), suspects(others))
}

/// Returns lines that count the omitted rows, and say how the command shows them.
fn lines_of_left_out(
    answer: &WhyAnswer<'_>,
    rows: &[SuspectRow<'_>],
    left_out: &[usize],
    command: &str,
) -> Vec<String> {
    let is_start = |place: &usize| rows.get(*place).is_some_and(SuspectRow::is_of_process_start);
    let (starts, others): (Vec<usize>, Vec<usize>) = left_out.iter().copied().partition(is_start);
    let others: Vec<&Suspect> =
        others.iter().filter_map(|place| answer.suspects.get(*place)).collect();
    let mut lines = Vec::new();
    let first = others.first().map(|suspect| suspect.rank);
    if let Some(rank) = first {
        let is_kind = command.split(' ').next().is_some_and(|word| word != ".why");
        let which = if is_kind { "-Which " } else { "" };
        let (more, command) = (more(&others), Untrusted(command));
        lines.push(format!("+ {more}: {command} {which}{rank}, {command} -All"));
    }
    if !starts.is_empty() {
        let groups = CountedNoun(starts.len() as u64, "more suspect");
        let handles = "of handles opened at process start";
        lines.push(format!("+ {groups} {handles}: {} -All", Untrusted(command)));
    }
    lines
}

/// Adds the reason why there are no suspects.
fn without_suspects(part: FileRows, answer: &WhyAnswer<'_>) -> FileRows {
    if let Some(no_match) = &answer.file.about.no_match {
        return part.below(no_match_line(no_match));
    }
    lines_without_suspects(answer)
        .into_iter()
        .chain(lines_of_zombies(answer))
        .fold(part, FileRows::below)
}

/// Returns lines about processes that have ended and are still in memory, and about who keeps them there.
pub fn lines_of_zombies(answer: &WhyAnswer<'_>) -> Vec<String> {
    let zombies = &answer.zombies;
    let all = line_of_zombies(zombies);
    let all = all.map(|line| format!("{line}; .dump Process -Zombie lists them"));
    let holders = line_of_holders(zombies, &stacks_with_lines(answer));
    all.into_iter().chain(holders).map(|line| Untrusted(&line).to_string()).collect()
}

/// Declares the processes that have ended and are still in memory.
fn zombie_columns<'a>() -> Columns<'a, (&'a WhyAnswer<'a>, StackOffset)> {
    let mut columns = Columns::<(&WhyAnswer<'_>, StackOffset)>::default();
    columns.member("file", "index of the file", |(answer, _)| answer.file.about.index);
    columns.member("count", "number of them", |(answer, _)| answer.zombies.count);
    columns.member("programs", "`[name, count]` pairs, the most first", |(answer, _)| {
        &answer.zombies.programs
    });
    columns.member("held", "number of those with known open handles", |(answer, _)| {
        answer.zombies.held
    });
    columns.parts(
        "holders",
        "the processes with these handles, the one that keeps most first",
        holder_columns(),
        |(answer, numbers)| {
            answer.zombies.holders.iter().map(|holder| (holder, *numbers)).collect()
        },
    );
    columns
}

/// Declares the columns of a process with open handles to zombies.
fn holder_columns<'a>() -> Columns<'a, (&'a ZombieHolder, StackOffset)> {
    const PROCESS: &str = "the process, `name.exe(pid)`, and its id";
    const COUNTS: &str = "number of the zombies that it keeps, and of its open handles to them";
    let mut columns = Columns::<(&ZombieHolder, StackOffset)>::default();
    columns.member("process", PROCESS, |(holder, _)| holder.process.as_str());
    columns.member("pid", PROCESS, |(holder, _)| holder.pid).for_programs();
    columns.member("zombies", COUNTS, |(holder, _)| holder.zombies);
    columns.member("handles", COUNTS, |(holder, _)| holder.handles).for_programs();
    columns
        .member(
            "create_stack",
            "number of the stack that opened the most of them; null if all are older than the trace",
            |(holder, numbers)| holder.create_stack.map(|stack| numbers.of(stack)),
        )
        .for_programs();
    columns
}

/// Returns lines about the open handles over time, and about the time where the verdict starts, if that is not the
/// start of the trace.
fn over_time(suspect: &Suspect, display: &Display) -> Vec<String> {
    const TITLE: &str = "Open over time  ";
    let open = &suspect.open_over_time;
    let Some(last) = open.last() else { return Vec::new() };
    let most = open.iter().max().unwrap_or(last);
    let step = if is_narrow(display) { 2 } else { 1 };
    let (last, most) = (HumanCount((*last).into()), HumanCount((*most).into()));
    let bars = bars(suspect, Suspect::PARTS / step);
    let mut lines = vec![format!("{TITLE}{bars}  {most} at most, {last} at the end")];
    if let Some((part, text)) = suspect.change_point() {
        let space = " ".repeat(TITLE.len() + part / step);
        lines.push(format!("{space}^ {text}"));
    }
    lines
}

/// Describes the leaks of each process if there are several, the most first; names the first `shown` of them.
pub fn in_processes(processes: &[SuspectProcess], shown: usize) -> Option<String> {
    if processes.len() < 2 {
        return None;
    }
    let named = processes
        .iter()
        .take(shown)
        .map(|process| format!("{} {}", process.process, HumanCount(process.counts.unreleased())));
    let mut text = format!(
        "in {}: {}",
        CountedNoun(processes.len() as u64, "process"),
        named.collect::<Vec<_>>().join(", ")
    );
    if let more @ 1.. = processes.len().saturating_sub(shown) {
        text.push_str(&format!(", and {more} more"));
    }
    Some(text)
}

/// Lists the `shown` most frequent names of leaked objects, and counts the others.
pub fn named_objects(suspect: &Suspect, shown: usize) -> Option<String> {
    let names = &suspect.names;
    let is_file = suspect.type_name == FILE_MAPPING_NAME;
    let handles = suspect.counts.unreleased();
    if let ([ObjectNames { name, count: 1 }], 0, 0, 2.., false) =
        (names.frequent.as_slice(), names.others, names.unnamed, handles, is_file)
    {
        return Some(format!("Object: {name} (all {} handles)", HumanCount(handles)));
    }
    let (shown, more) = names.frequent.split_at(names.frequent.len().min(shown));
    let others = names.others + more.iter().map(|names| names.count).sum::<u64>();
    let mut parts: Vec<String> = shown
        .iter()
        .map(|ObjectNames { name, count }| format!("{name} ({})", HumanCount(*count)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let rest = [(others, "with other names"), (names.unnamed, "without a name")]
        .into_iter()
        .filter(|(count, _)| *count > 0);
    parts.extend(rest.map(|(count, text)| format!("{} {text}", HumanCount(count))));
    let title = if is_file { "Files" } else { "Objects" };
    Some(format!("{title}: {}", parts.join(", ")))
}

/// Lists the values of leaked handles, if there are any, as in "Handles: 0xAC, 0xB0 and 3 more".
fn handle_values(suspect: &Suspect, shown: usize) -> Option<String> {
    let values = &suspect.names.handles;
    let shown = values.len().min(shown);
    let more = suspect.counts.unreleased().saturating_sub(shown as u64);
    let texts = values
        .iter()
        .take(shown)
        .map(|value| format!("0x{value:X}"))
        .collect::<Vec<String>>()
        .join(", ");
    let rest = if more > 0 { format!(" and {} more", HumanCount(more)) } else { String::new() };
    let title = if shown == 1 && more == 0 { "Handle" } else { "Handles" };
    (shown > 0).then(|| format!("{title}: {texts}{rest}"))
}

/// Declares the columns of a process of a suspect.
fn suspect_process_columns<'a>() -> Columns<'a, &'a SuspectProcess> {
    const PROCESS: &str = "the process, as above";
    const COUNTS: &str = "its share of the counts";
    let mut columns = Columns::<&SuspectProcess>::default();
    columns.member("process", PROCESS, |process| process.process.as_str());
    columns.member("pid", PROCESS, |process| process.pid);
    columns.member("process_start_ns", PROCESS, |process| process.start_ns);
    columns.member("leaked", COUNTS, |process| process.counts.leaked);
    columns.member("closed_at_exit", COUNTS, |process| process.counts.closed_at_exit);
    columns.member("created", COUNTS, |process| process.counts.opened);
    columns
}

/// Declares the columns of a caller of a suspect's function.
fn caller_columns<'a>() -> Columns<'a, (&'a Caller, StackOffset)> {
    let mut columns = Columns::<(&Caller, StackOffset)>::default();
    columns.member(
        "function",
        "the function, as stack filters see it; null if none of the program calls",
        |(caller, _)| caller.function.as_deref(),
    );
    columns.member("create_stack", "number of the stack that leaks most of it", |(caller, of)| {
        of.of(caller.stack)
    });
    columns.member("leaked", "number of those that the program did not release", |(caller, _)| {
        caller.leaked.leaked
    });
    columns.member("created", "number of all", |(caller, _)| caller.leaked.acquired);
    columns
}

/// Declares the columns of the names of leaked objects.
fn object_name_columns<'a>() -> Columns<'a, &'a ObjectNames> {
    let mut columns = Columns::<&ObjectNames>::default();
    columns.member(
        "name",
        "the name, or the pattern that several names share, with `#` for numbers and \
         GUIDs",
        |names| names.name.as_str(),
    );
    columns.member("count", "number of leaked objects with such a name", |names| names.count);
    columns
}

/// A cause, and whether the text shows it.
struct DiagnosisRow<'a> {
    of: &'a Diagnosis,
    is_shown: bool,
    numbers: StackOffset,
}

/// Declares the columns of a cause.
fn diagnosis_columns<'a>() -> Columns<'a, DiagnosisRow<'a>> {
    let mut columns = Columns::<DiagnosisRow<'a>>::default();
    columns.member(
        "cause",
        "`race`, `duplicate_not_closed`, `inherited_not_closed`, \
         `thread_or_process_handle`, `view_not_unmapped`, `sometimes_closed`, \
         `never_closed`, `exit_only`, `handle_reuse`, `opened_twice`, `owner_crashed`, \
         `owner_ended`, `pid_reused`, `other_side_open`, `never_freed`, \
         `sometimes_freed`, `realloc_growth`, `reserve_without_commit` or \
         `heap_not_destroyed`",
        |diagnosis| diagnosis.of.cause,
    );
    columns.member("count", "number of leaked handles or allocations it explains", |diagnosis| {
        diagnosis.of.count
    });
    columns.member("objects", "number of their objects; 0 for allocations", |diagnosis| {
        diagnosis.of.objects
    });
    columns.member(
        "object_ids",
        "ids of up to five of their objects; none for allocations",
        |diagnosis| &diagnosis.of.object_ids,
    );
    columns.member(
        "close_stacks",
        "stacks that close or free others of the group, most frequent first",
        |DiagnosisRow { of, numbers, .. }| {
            of.stacks.iter().map(|stack| numbers.of(*stack)).collect::<Vec<_>>()
        },
    );
    columns.member("text", "a sentence", |diagnosis| diagnosis.of.sentence(&[]));
    columns.member(
        "is_shown",
        "whether the text of `.why` has it: the others explain no more than those \
         before",
        |diagnosis| diagnosis.is_shown,
    );
    columns
}

impl SuspectRow<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.suspect.process, self.suspect.type_name)
    }

    /// Describes the verdict and its evidence in a sentence.
    fn growth(&self) -> String {
        growth(self.suspect)
    }

    /// Returns the program's calls that opened it, in one line.
    fn calls(&self) -> Option<String> {
        let most = self.suspect.functions_of_all_stacks();
        Some(self.stacks.calls(self.suspect.create_stack?, self.suspect.program(), most))
    }

    fn causes(&self) -> String {
        let words: Vec<&str> =
            self.suspect.diagnoses.iter().map(|diagnosis| diagnosis.cause).collect();
        words.join(",")
    }

    /// Whether the loader opened the handles when the process started, and no program code took part. Every process has
    /// such handles.
    fn is_of_process_start(&self) -> bool {
        is_of_process_start(self.suspect, &self.stacks)
    }

    /// Writes a block about a suspect and an empty line: rank, amount and process, the calls that opened it, growth,
    /// causes, and the command that shows it.
    fn write(&self, all_frames: bool, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let suspect = self.suspect;
        let paint = |role, text: &str| display.screen.paint(role, display.whole(text)).to_string();
        let (process, amounts) = (Untrusted(&suspect.process), amounts(suspect));
        let heading = format!("{}  {}   {process}", suspect.rank, Untrusted(&amounts));
        writeln!(out, "{}", paint(Role::Heading, &heading))?;
        let mut line = |text: String| writeln!(out, "{INDENT}{text}");
        match (suspect.create_stack, all_frames || self.is_whole) {
            (None, _) => line(paint(Role::Heading, "no create stack"))?,
            (stack, true) => {
                for frame in self.stacks.short_lines(stack, true) {
                    line(paint(Role::Heading, &Untrusted(&frame).to_string()))?;
                }
            }
            (Some(stack), false) => {
                let most = suspect.functions_of_all_stacks();
                let calls = self.stacks.calls(stack, suspect.program(), most);
                let calls = paint(Role::Heading, &Untrusted(&calls).to_string());
                // Keep an arrow on the line of its function.
                line(calls.replace(&format!("← {}", display.line_break()), "← "))?;
            }
        }
        for callers in callers(suspect, if self.is_whole { usize::MAX } else { CALLERS }) {
            line(display.whole(&Untrusted(&callers).to_string()))?;
        }
        let are_alike = suspect.equal_stacks.len() == 1;
        if let Some(stacks @ 2..) = suspect.create_stacks.filter(|_| are_alike) {
            line(format!("{stacks} create stacks with these functions, at different addresses"))?;
        }
        line(display.whole(&self.growth()))?;
        if self.is_whole {
            over_time(suspect, display).into_iter().try_for_each(&mut line)?;
        }
        let (names, processes) =
            if self.is_whole { (usize::MAX, usize::MAX) } else { (NAMES, PROCESSES) };
        if let Some(processes) = in_processes(&suspect.processes, processes) {
            line(display.whole(&Untrusted(&processes).to_string()))?;
        }
        if let Some(names) = named_objects(suspect, names) {
            line(display.whole(&Untrusted(&names).to_string()))?;
        }
        if let Some(handles) =
            handle_values(suspect, if self.is_whole { usize::MAX } else { HANDLES })
        {
            line(handles)?;
        }
        let diagnoses = with_telling(&suspect.diagnoses);
        let diagnoses = diagnoses.filter(|(_, is_telling)| *is_telling || self.is_whole);
        for (diagnosis, _) in diagnoses {
            let sentence = cause(&self.stacks, diagnosis, suspect.program());
            line(paint(Role::Cause, &Untrusted(&sentence).to_string()))?;
            for stack in diagnosis.stacks.iter().filter(|_| self.is_whole) {
                let calls = self.stacks.calls(*stack, suspect.program(), None);
                line(display.whole(&format!("{INDENT}{}", Untrusted(&calls))))?;
            }
        }
        if let Some(entry) = &suspect.ignored {
            line(display.whole(&ignored_because(entry)))?;
        }
        line(paint(Role::Aside, &Untrusted(&self.command).to_string()))?;
        writeln!(out)
    }
}

/// Describes the verdict on a suspect's growth and its evidence in a sentence.
fn growth(suspect: &Suspect) -> String {
    format!("{}: {}", suspect.growth.verdict.title(), suspect.evidence())
}

/// Describes a cause in a sentence, with the functions that close or free others of the group.
pub fn cause(stacks: &StackStyle<'_>, diagnosis: &Diagnosis, program: &str) -> String {
    let mut closers: Vec<String> = diagnosis
        .stacks
        .iter()
        .filter_map(|stack| stacks.representative(*stack, program))
        .collect();
    closers.dedup();
    capitalized(&diagnosis.sentence(&closers))
}

/// Returns the bytes that a suspect leaks, or the number of handles.
pub fn unreleased(suspect: &Suspect) -> i64 {
    let count = || i64::try_from(suspect.counts.unreleased()).unwrap_or(i64::MAX);
    suspect.bytes.map_or_else(count, |bytes| bytes.unreleased)
}

/// Returns for each suspect whether it matters little next to the others.
fn small(suspects: &[Suspect], stacks: &StackStyle<'_>) -> Vec<bool> {
    let handles = suspects.partition_point(|suspect| suspect.bytes.is_none());
    let (of_handles, of_allocations) = suspects.split_at(handles);
    let small = [of_handles, of_allocations].map(|suspects| small_of_kind(suspects, stacks));
    small.concat()
}

/// Like [`small`], for suspects that are all handles or all allocations. Suspects are small if every process has them;
/// so are those at the end of the list that leak little and do not continue.
fn small_of_kind(suspects: &[Suspect], stacks: &StackStyle<'_>) -> Vec<bool> {
    let min_score = SMALL * suspects.iter().map(|suspect| suspect.score).fold(0.0, f64::max);
    let largest_amount = suspects.iter().map(unreleased).max().unwrap_or_default();
    let min_amount = SMALL * largest_amount as f64;
    let is_large = |suspect: &Suspect| {
        let goes_on = matches!(suspect.growth.verdict, Verdict::Steady | Verdict::Burst);
        goes_on || suspect.score >= min_score || unreleased(suspect) as f64 >= min_amount
    };
    let trivial: Vec<bool> = suspects.iter().map(|suspect| is_trivial(suspect, stacks)).collect();
    let mut judged = suspects.iter().zip(&trivial);
    let last_large = judged.rposition(|(suspect, is_trivial)| !is_trivial && is_large(suspect));
    let large = last_large.map_or(0, |last| last + 1);
    trivial
        .into_iter()
        .enumerate()
        .map(|(place, is_trivial)| is_trivial || place >= large)
        .collect()
}

/// Whether each process has such handles: the loader opens them, or a system stack does and process exit closes them.
fn is_trivial(suspect: &Suspect, stacks: &StackStyle<'_>) -> bool {
    let Suspect { counts, create_stack, bytes, .. } = suspect;
    let is_of_program = |stack| stacks.program_frames(stack).next().is_some();
    let is_of_exit = counts.leaked == 0
        && counts.closed_at_exit <= MIN_AT_EXIT
        && !create_stack.is_some_and(is_of_program);
    (is_of_exit && bytes.is_none()) || is_of_process_start(suspect, stacks)
}

/// Whether the loader opened the handles of a suspect when the process started.
fn is_of_process_start(suspect: &Suspect, stacks: &StackStyle<'_>) -> bool {
    let Suspect { create_stack: Some(stack), bytes: None, .. } = suspect else { return false };
    stacks.is_of_process_start(*stack)
}

/// Returns each diagnosis with whether the text shows it: the first one, and later ones that explain more than all
/// earlier ones or add to them.
fn with_telling(diagnoses: &[Diagnosis]) -> impl Iterator<Item = (&Diagnosis, bool)> {
    let mut explained = 0;
    diagnoses.iter().map(move |diagnosis| {
        let before = explained;
        explained = diagnosis.count.max(before);
        (diagnosis, diagnosis.count > before || diagnosis.is_beside())
    })
}

/// Declares the document of `.dump Why`.
pub fn why_document<'a>() -> Columns<'a, OfTraces<'a, &'a [WhyAnswer<'a>]>> {
    const AS_IN_OBJECT_REF: &str = "as in `.dump ObjectRef`; `-pn` selects the owners of handles";
    let mut document = Columns::<OfTraces<'a, &'a [WhyAnswer<'a>]>>::default();
    document.kind("`\"Why\"`", "Why");
    document.files(AS_IN_OBJECT_REF);
    document.member(
        "young_groups",
        "number of groups that leak only a few young handles, and are not suspects",
        |of| of.rest.iter().map(|answer| answer.young_groups).sum::<usize>(),
    );
    document.member("ignored", "number of suspects ignored by a list of known leaks", |of| {
        of.rest.iter().map(|answer| answer.ignored.len()).sum::<usize>()
    });
    document.left_out("suspects", "number of omitted suspects");
    document.rows(
        "suspects",
        "groups of handles that leak, ranked within each file, see below; `[]` if nothing leaks",
    );
    document.parts(
        "zombies",
        "ended processes that are still in memory, for each trace that has some",
        zombie_columns(),
        |of| {
            of.rest
                .iter()
                .zip(of.traces.iter())
                .filter(|(answer, _)| answer.zombies.count > 0)
                .map(|(answer, trace)| (answer, trace.numbers))
                .collect()
        },
    );
    document.stacks("their stacks, as in `.dump ObjectRef`", |_| true);
    document.caveats(AS_IN_OBJECT_REF, AS_IN_OBJECT_REF);
    document
}
