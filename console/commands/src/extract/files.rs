//! Extracts several traces, one after another, and checks whether they have what `-events` and `-resource` name.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use handlescope_extract::{EventChoice, ExtractOptions, ResourceMapping};
use handlescope_model::tables::{EventCount, EventCounts};
use handlescope_model::{ArchiveError, TableRows, Trace, Untrusted};

use super::options::ExtractArgs;
use crate::error::CommandError;
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::paths::{Overwrite, TRACE_EXTENSIONS, expand, has_extension};
use handlescope_session::suggest;
use handlescope_session::terminal::{Messages, wrapped};
use handlescope_session::trace::extraction::{
    beside, file_name, is_foreign, line, mappings, options, prepare_folder, run, warn,
};
use handlescope_session::trace::{Caveat, LoadError, warn_of};

/// Maximum number of threads for a trace: more would only take memory.
const MAX_THREADS: u64 = 64;

/// Adds to an extract what is not in the trace itself, and returns a line about it.
pub type Finish<'a> = dyn Fn(&Path, &mut Messages<'_>) -> Result<String, CommandError> + 'a;

/// The traces to extract, and how.
pub struct ExtractionWork<'a> {
    pub args: &'a ExtractArgs,
    pub inputs: &'a [PathBuf],
    /// Which files may be replaced although they are not extracts.
    pub overwrite: Overwrite,
    pub finish: Option<&'a Finish<'a>>,
    /// Columns of the screen that shows the summaries.
    pub width: Option<usize>,
}

/// The result of extracting several traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtractionTally {
    /// Number of files.
    pub files: usize,
    /// Number of files that failed.
    pub failed: usize,
}

/// Extracts traces, and applies `finish` to each extract. Also returns what was requested and whether the traces have
/// it. Each summary goes to `out`, everything else to `messages`. Reports files that fail, and continues with the
/// others.
///
/// # Errors
/// If `out` cannot be written, it was cancelled, or `-resource` is invalid.
pub fn extract_files(
    work: &ExtractionWork<'_>,
    mut tally: ExtractionTally,
    cancel: &Cancel,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<(ExtractionTally, RequestedEvents), CommandError> {
    let ExtractionWork { args, inputs, overwrite, finish, width } = work;
    let mut outputs: HashMap<PathBuf, PathBuf> = HashMap::new();
    let events = args.events.as_deref().map(EventChoice::new).unwrap_or_default();
    let stacks = args.stacks.unwrap_or_default();
    let resources = mappings(args.resource.as_deref())?;
    let mut requested = RequestedEvents::new(&events, &resources);
    let usual = options(args.max_size);
    let threads = args.threads.map(|threads| threads.min(MAX_THREADS) as usize);
    let options = ExtractOptions {
        stacks,
        events,
        resources,
        threads: threads.and_then(NonZeroUsize::new).unwrap_or(usual.threads),
        max_memory: args.max_memory.unwrap_or(usual.max_memory),
        ..usual
    };
    for (index, input) in inputs.iter().enumerate() {
        if args.dry_run {
            writeln!(out, "{}", Untrusted(input))?;
            continue;
        }
        let output = match &args.outdir {
            Some(outdir) => outdir.join(file_name(input)),
            None => beside(input),
        };
        if let Some(first) = outputs.insert(output.clone(), input.clone()) {
            let error = LoadError::SameExtract { path: input.clone(), first, output };
            messages.error(error);
            tally.failed += 1;
            continue;
        }
        if args.no_overwrite && output.exists() {
            let (input, number, count) = (Untrusted(input), index + 1, inputs.len());
            messages.note(format_args!(
                "Skipping file {input} {number}/{count} because extract already exists"
            ));
            continue;
        }
        match extract_file(
            input,
            &output,
            options.clone(),
            overwrite,
            &mut requested,
            cancel,
            messages,
        ) {
            Ok(summary) => {
                writeln!(out, "{}", wrapped(&summary, *width))?;
                match finish.map(|finish| finish(&output, messages)) {
                    None => {}
                    Some(Ok(line)) => writeln!(out, "{}", wrapped(&line, *width))?,
                    Some(Err(_)) if cancel.is_cancelled() => return Err(Cancelled.into()),
                    Some(Err(error)) => {
                        messages.error(error);
                        tally.failed += 1;
                    }
                }
            }
            Err(_) if cancel.is_cancelled() => return Err(Cancelled.into()),
            Err(error) => {
                messages.error(error);
                tally.failed += 1;
            }
        }
    }
    summarize(args, tally, messages);
    Ok((tally, requested))
}

/// Prints the last line about several files.
fn summarize(args: &ExtractArgs, tally: ExtractionTally, messages: &mut Messages<'_>) {
    let ExtractionTally { files, failed } = tally;
    if args.dry_run {
        messages.note(format_args!("{} - files found to extract.", files - failed));
    } else if files > 1 {
        let worked = files - failed;
        messages.note(format_args!("Extracted {worked}/{files} - Failed {failed} files."));
    }
}

/// Returns all requested traces without duplicates. A query that matches none is reported and counts as a failed file;
/// a folder or pattern skips files that are not traces.
pub fn inputs(
    args: &ExtractArgs,
    messages: &mut Messages<'_>,
    tally: &mut ExtractionTally,
) -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = Vec::new();
    for query in &args.queries {
        let mut problems = Vec::new();
        let mut expanded = expand(query, args.recursive, &mut problems);
        if expanded.is_found {
            expanded.files.retain(|path| has_extension(path, TRACE_EXTENSIONS));
            if expanded.files.is_empty() {
                messages.error(format_args!("{query}: no trace among these files"));
                tally.failed += 1;
            }
        }
        for path in expanded.files {
            if !inputs.contains(&path) {
                inputs.push(path);
            }
        }
        for problem in problems {
            messages.error(problem);
            tally.failed += 1;
        }
    }
    tally.files = inputs.len() + tally.failed;
    inputs
}

fn extract_file(
    input: &Path,
    output: &Path,
    options: ExtractOptions,
    overwrite: &Overwrite,
    requested: &mut RequestedEvents,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<String, LoadError> {
    if is_foreign(output) {
        return Err(LoadError::Foreign { path: output.to_path_buf() });
    }
    // An extract may always be replaced, even one from an earlier run.
    if Trace::open(output).is_err() {
        overwrite.replacing(output)?;
    }
    let _made = prepare_folder(output)
        .map_err(|source| LoadError::NoPlace { path: output.to_path_buf(), source })?;
    let summary = run(input, output, options, cancel, messages)?;
    warn(input, summary.warnings.iter().cloned(), messages);
    let trace = Trace::open(output)?;
    requested.look_at(&trace)?;
    warn_of(input, &Caveat::for_load(&trace)?, messages);
    Ok(line(output, &summary))
}

const EVENTS: &str = "-events";
const RESOURCE: &str = "-resource";

/// Maximum number of names in a message.
const MAX_LISTED: usize = 8;

/// The requested providers and events, and those that the traces have.
pub struct RequestedEvents {
    requests: Vec<RequestedEvent>,
    /// Providers in all traces.
    providers: BTreeSet<String>,
    /// Events of the providers that `-resource` names.
    events: BTreeSet<String>,
    traces: usize,
}

/// One item of `-events` or `-resource`.
struct RequestedEvent {
    option: &'static str,
    provider: String,
    /// Name or id; `None` for all events of the provider.
    event: Option<String>,
    has_provider: bool,
    is_present: bool,
}

impl RequestedEvents {
    pub fn new(events: &EventChoice, resources: &[ResourceMapping]) -> RequestedEvents {
        let providers: &[String] = match events {
            EventChoice::Providers(providers) => providers,
            EventChoice::None | EventChoice::All => &[],
        };
        let request = |option, provider: &String, event| RequestedEvent {
            option,
            provider: provider.clone(),
            event,
            has_provider: false,
            is_present: false,
        };
        let events_of_providers = providers.iter().map(|provider| request(EVENTS, provider, None));
        let events_of_mappings = resources
            .iter()
            .map(|mapping| request(RESOURCE, &mapping.provider, Some(mapping.event.clone())));
        RequestedEvents {
            requests: events_of_providers.chain(events_of_mappings).collect(),
            providers: BTreeSet::new(),
            events: BTreeSet::new(),
            traces: 0,
        }
    }

    /// Records what an extracted trace has.
    ///
    /// # Errors
    /// If the extract cannot be read.
    fn look_at(&mut self, trace: &Trace) -> Result<(), ArchiveError> {
        self.traces += 1;
        if self.requests.is_empty() {
            return Ok(());
        }
        for EventCount { kind, provider, name, .. } in EventCounts::read(trace)?.rows() {
            let mut ids = kind.splitn(3, ':').skip(1);
            let (guid, id) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
            let (provider, name) = (provider.unwrap_or_default(), name.unwrap_or_default());
            for request in &mut self.requests {
                let choice = EventChoice::Providers(vec![request.provider.clone()]);
                if request.provider != "*" && !choice.means(&provider, guid) {
                    continue;
                }
                request.has_provider = true;
                request.is_present |= request
                    .event
                    .as_ref()
                    .is_none_or(|event| event.eq_ignore_ascii_case(&name) || event == id);
                if request.event.is_some() && !name.is_empty() {
                    self.events.insert(name.clone());
                }
            }
            if !provider.is_empty() {
                self.providers.insert(provider);
            }
        }
        Ok(())
    }

    /// Warns about requests that no trace satisfies, because a list may name more than each trace has. Fails if no
    /// trace has anything that an option names.
    pub fn check(self, messages: &mut Messages<'_>) -> Result<(), CommandError> {
        if self.traces == 0 {
            return Ok(());
        }
        for option in [EVENTS, RESOURCE] {
            let requests = || self.requests.iter().filter(|request| request.option == option);
            let is_any_present = requests().any(|request| request.is_present);
            for missing in requests().filter(|request| !request.is_present) {
                let error = self.error(missing);
                if !is_any_present {
                    return Err(error);
                }
                messages.warning(error);
            }
        }
        Ok(())
    }

    fn error(&self, missing: &RequestedEvent) -> CommandError {
        let provider = Untrusted(&missing.provider);
        let (item, name, known) = match &missing.event {
            Some(event) if missing.has_provider => {
                (format!("event {} of {provider}", Untrusted(event)), event, &self.events)
            }
            _ => (format!("event of a provider {provider}"), &missing.provider, &self.providers),
        };
        CommandError::NotInTraces { option: missing.option, item, hint: hint(name, known) }
    }
}

/// Suggests the nearest name, or else lists the available names.
fn hint(name: &str, known: &BTreeSet<String>) -> String {
    if let Some(nearest) = suggest::nearest(name, known.iter().map(String::as_str)) {
        return suggest::did_you_mean(nearest);
    }
    let listed: Vec<&str> = known.iter().map(String::as_str).take(MAX_LISTED).collect();
    match (listed.len(), known.len()) {
        (0, _) => "; none has a known name".to_owned(),
        (shown, known) if shown == known => format!("; there are {}", listed.join(", ")),
        (_, known) => format!("; there are {known}, such as {}", listed.join(", ")),
    }
}
