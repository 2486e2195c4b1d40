//! `.dump Why`

mod findings;
mod text;

use std::io;

pub use self::findings::{findings_of_suspect, why_findings};
pub use self::text::{Look, first_lines, listed_and_others, stacks_with_lines};
use self::text::{part, small};
use super::index;
use crate::table::{AnswerTable, Columns};
use crate::text::{StackStyle, amounts, growth, with_telling};
use crate::traces::{OfTraces, StackOffset, traces};
use handlescope_query::{
    Caller, CallerLeaks, Diagnosis, ObjectNames, Suspect, SuspectProcess, WhyAnswer, ZombieHolder,
};
use handlescope_session::settings::{Display, StackDisplayArgs};

/// A function that returns the command for the handles of a suspect; its first argument is the file number.
type CommandOf<'a> = &'a dyn Fn(usize, &Suspect) -> String;

/// A suspect and its presentation.
pub struct SuspectRow<'a> {
    file: usize,
    suspect: &'a Suspect,
    numbers: StackOffset,
    stacks: StackStyle<'a>,
    command: String,
    /// Whether the text only counts this suspect.
    is_small: bool,
}

impl SuspectRow<'_> {
    /// Returns the program's calls that opened it, in one line.
    fn calls(&self) -> Option<String> {
        let most = self.suspect.functions_of_all_stacks();
        Some(self.stacks.calls(self.suspect.create_stack?, self.suspect.program(), most))
    }
}

/// Declares the columns of a suspect.
pub fn why_columns<'a>() -> Columns<'a, SuspectRow<'a>> {
    const PROCESSES: &str = "the processes that leak, worst first";
    let mut columns = Columns::<SuspectRow<'a>>::default();
    columns.add("file", "index of the file", |row| index(row.file));
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
    columns
        .add("name", "process and type", |row| {
            format!("{} {}", row.suspect.process, row.suspect.type_name)
        })
        .rows_only();
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
    columns.add("processes", PROCESSES, |row| row.suspect.processes.len() as u64).rows_only();
    columns
        .parts("processes", PROCESSES, suspect_process_columns(), |row| {
            row.suspect.processes.iter().collect()
        })
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
        .nest("growth", "string", "the verdict with its evidence, as the text shows them", |row| {
            growth(row.suspect)
        })
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
        .add("causes", "words of the causes that the events prove", |row| {
            let causes = row.suspect.diagnoses.iter().map(|diagnosis| diagnosis.cause);
            causes.collect::<Vec<_>>().join(",")
        })
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
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for (answer, trace) in answers.iter().zip(traces.iter()) {
        let small = small(answer);
        parts.push(part(answer, &small, look, display));
        rows.extend(answer.suspects.iter().zip(small).map(|(suspect, is_small)| SuspectRow {
            file: answer.file.about.index,
            suspect,
            numbers: trace.numbers,
            stacks: StackStyle::for_answer(&answer.file, shown),
            command: command(answer.file.about.index, suspect),
            is_small,
        }));
    }
    let (mut columns, display) = (why_columns(), *display);
    let is_whole = look == Look::Whole;
    columns.row_text(move |row, out| row.write(stacks.show, is_whole, &display, out));
    let table = AnswerTable::new(columns, rows, parts)?;
    Ok(table.within(why_document(), OfTraces { traces, rest: answers }))
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
