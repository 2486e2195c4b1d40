//! `.dump Why -json`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::file::FileJson;
use super::{Array, Members};
use crate::query::{Diagnosis, Suspect, SuspectProcess, WhyAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn why(
    answers: &[WhyAnswer<'_>],
    commands: &[String],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = FileJson::of_files(answers.iter().map(|answer| &answer.file));
    super::write(&Document { answers, files, commands, parts }, mode, out)
}

struct Document<'a> {
    answers: &'a [WhyAnswer<'a>],
    files: Vec<FileJson<'a>>,
    commands: &'a [String],
    parts: &'a [Part],
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Why")?;
        let headers = || self.files.iter().map(FileJson::header);
        map.serialize_entry("files", &Array(headers))?;
        if let suspects @ 1.. = self.left_out() {
            map.serialize_entry("left_out", &LeftOut { suspects })?;
        }
        map.serialize_entry("suspects", &Array(|| self.suspects()))?;
        let stacks = || self.files.iter().flat_map(FileJson::stacks);
        map.serialize_entry("stacks", &Members(stacks))?;
        let caveats = || self.files.iter().flat_map(FileJson::caveats);
        map.serialize_entry("caveats", &Array(caveats))?;
        if let Some(no_match) = self.files.iter().find_map(FileJson::no_match) {
            map.serialize_entry("no_match", &no_match)?;
        }
        map.end()
    }
}

/// What `-TopN` leaves out.
#[derive(Serialize)]
struct LeftOut {
    suspects: usize,
}

impl Document<'_> {
    fn left_out(&self) -> usize {
        let all: usize = self.answers.iter().map(|answer| answer.suspects.len()).sum();
        all - self.parts.iter().map(|part| part.rows().count()).sum::<usize>()
    }

    fn suspects(&self) -> impl Iterator<Item = SuspectJson<'_>> {
        let files = self.answers.iter().zip(&self.files).zip(self.parts);
        files.flat_map(move |((answer, file), part)| {
            part.rows().zip(part.own_rows()).filter_map(move |(row, own)| {
                let suspect = answer.suspects.get(own)?;
                let command = self.commands.get(row).map_or("", String::as_str);
                Some(SuspectJson::new(file, suspect, command))
            })
        })
    }
}

#[derive(Serialize)]
struct SuspectJson<'a> {
    file: usize,
    id: &'a str,
    rank: usize,
    process: &'a str,
    pid: Option<u32>,
    process_start_ns: Option<i64>,
    processes: Vec<ProcessJson<'a>>,
    r#type: &'a str,
    allocator: Option<&'a str>,
    create_stack: Option<u64>,
    function: Option<&'a str>,
    leaked: u64,
    closed_at_exit: u64,
    created: u64,
    bytes: Option<i64>,
    allocated_bytes: Option<i64>,
    verdict: &'static str,
    rate_per_minute: Option<f64>,
    rate_per_request: Option<f64>,
    bytes_per_minute: Option<f64>,
    evidence: String,
    diagnoses: Vec<DiagnosisJson<'a>>,
    score: f64,
    command: &'a str,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    process: &'a str,
    pid: Option<u32>,
    process_start_ns: Option<i64>,
    leaked: u64,
    closed_at_exit: u64,
    created: u64,
}

#[derive(Serialize)]
struct DiagnosisJson<'a> {
    cause: &'static str,
    count: u64,
    object_ids: &'a [u64],
    close_stacks: Vec<u64>,
    text: &'a str,
}

impl<'a> SuspectJson<'a> {
    fn new(file: &FileJson<'_>, suspect: &'a Suspect, command: &'a str) -> Self {
        let diagnosis = |own: &'a Diagnosis| DiagnosisJson {
            cause: own.cause.word(),
            count: own.count,
            object_ids: &own.object_ids,
            close_stacks: own.stacks.iter().map(|stack| file.stack(*stack)).collect(),
            text: &own.text,
        };
        let process = |process: &'a SuspectProcess| ProcessJson {
            process: &process.process,
            pid: process.pid,
            process_start_ns: process.start_ns,
            leaked: process.counts.leaked,
            closed_at_exit: process.counts.closed_at_exit,
            created: process.counts.opened,
        };
        Self {
            file: file.index,
            id: suspect.id.text(),
            rank: suspect.rank,
            process: &suspect.process,
            pid: suspect.pid,
            process_start_ns: suspect.process_start_ns,
            processes: suspect.processes.iter().map(process).collect(),
            r#type: &suspect.type_name,
            allocator: suspect.allocator.as_deref(),
            create_stack: suspect.create_stack.map(|stack| file.stack(stack)),
            function: suspect.function.as_deref(),
            leaked: suspect.counts.leaked,
            closed_at_exit: suspect.counts.closed_at_exit,
            created: suspect.counts.opened,
            bytes: suspect.bytes.map(|bytes| bytes.lost),
            allocated_bytes: suspect.bytes.map(|bytes| bytes.allocated),
            verdict: suspect.growth.verdict.word(),
            rate_per_minute: suspect.rate_per_minute(),
            rate_per_request: suspect.rate_per_request(),
            bytes_per_minute: suspect.bytes.and_then(|bytes| bytes.per_minute),
            evidence: suspect.evidence(),
            diagnoses: suspect.diagnoses.iter().map(diagnosis).collect(),
            score: suspect.score,
            command,
        }
    }
}
