//! `.load`: finds the typed traces, extracts them if needed, and opens them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use handlescope_extract::{ExtractError, is_trace};
use handlescope_model::guard::{CaughtPanic, quietly};
use handlescope_model::tables::Warnings;
use handlescope_model::{
    ArchiveError, ArchiveLimits, Reason, Table, TableRows, Trace, Untrusted, is_full,
};
use handlescope_sources::{SourceError, TextContent, is_dump, recognize};

use crate::cancel::{Cancel, Cancelled};
use crate::paths::{
    Access, PLAIN_EXTENSION, SameTrace, TRACE_EXTENSIONS, expand, has_extension, is_extract,
    is_plain_extract,
};
use crate::terminal::Messages;
use crate::trace::caveats::{Caveat, warn_of};
use crate::trace::error::LoadError;
use crate::trace::extraction::{
    self, ExtractLocation, Freshness, MadeFolders, OpenedExtract, beside, differing_trace,
    for_session, for_want_of_cache, freshness, imported, in_cache, is_foreign, kept,
    prepare_folder, side_by_side,
};
use crate::trace::{LoadedTrace, Snapshot};

/// Arguments of `.load` or `.load+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// `.load+`: keep what is loaded.
    pub append: bool,
    /// `-r`: also search subfolders.
    pub recursive: bool,
    /// `-All`: read all tables at once.
    pub all: bool,
    /// Keep traces in the order named, and load a trace twice if it is named twice, because they are compared.
    pub as_named: bool,
    /// No trace was named, so the folder is used only if it has a single trace.
    pub single: bool,
    /// `-MaxSize`: largest archive member that is read, in bytes.
    pub max_size: Option<u64>,
    /// Which files may be read and written.
    pub access: Access,
}

impl LoadArgs {
    /// Arguments that load these files, folders and patterns in place of what is loaded.
    pub fn replacing(queries: Vec<String>) -> LoadArgs {
        LoadArgs { queries, ..LoadArgs::default() }
    }
}

/// Result of a `.load`.
#[derive(Default)]
pub struct Loading {
    /// The traces that were opened.
    pub files: Vec<LoadedTrace>,
    /// Errors about the others.
    pub errors: Vec<LoadError>,
    /// The path by which each trace was opened.
    seen: HashMap<SameTrace, PathBuf>,
}

impl Loading {
    /// Opens everything asked for that is not in `loaded` already.
    ///
    /// # Errors
    /// If `cancel` is set.
    pub fn run(
        args: &LoadArgs,
        loaded: &[LoadedTrace],
        cancel: &Cancel,
        messages: &mut Messages<'_>,
    ) -> Result<Loading, Cancelled> {
        let seen = loaded.iter().map(|file| (SameTrace::new(&file.path), file.path.clone()));
        let mut found_errors = Vec::new();
        let mut loading = Loading { seen: seen.collect(), ..Loading::default() };
        for query in &args.queries {
            let mut problems = Vec::new();
            let expanded = expand(query, args.recursive, &mut problems);
            loading.errors.extend(problems.into_iter().map(LoadError::from));
            if args.single && expanded.files.len() > 1 {
                loading.errors.push(LoadError::NoneNamed { files: expanded.files });
                continue;
            }
            for path in expanded.files {
                let file = path.clone();
                let added =
                    caught(&file, || loading.add(path, expanded.is_found, args, cancel, messages));
                // A file has not failed if its loading was cancelled.
                cancel.check()?;
                let failed =
                    if expanded.is_found { &mut found_errors } else { &mut loading.errors };
                failed.extend(added.err());
            }
        }
        let (failures, notes) = LoadError::from_found(found_errors);
        notes.iter().for_each(|note| messages.note(note));
        loading.errors.extend(failures);
        Ok(loading)
    }

    fn add(
        &mut self,
        path: PathBuf,
        is_found: bool,
        args: &LoadArgs,
        cancel: &Cancel,
        messages: &mut Messages<'_>,
    ) -> Result<(), LoadError> {
        args.access.check(&path)?;
        let same = SameTrace::new(&path);
        if let Some(first) = self.seen.get(&same).filter(|_| !args.as_named) {
            let (path, first) = (Untrusted(path), Untrusted(first));
            messages.note(format_args!("{path} is already loaded as {first}"));
            return Ok(());
        }
        self.seen.insert(same, path.clone());
        let imported = if is_found { import_for(&path, args, cancel, messages) } else { None };
        let file = match imported {
            Some(file) => file,
            None => open(path, args, cancel, messages)?,
        };
        let file = prefetched(file, args.all)?;
        let (path, suffix) = (Untrusted(&file.path), if args.all { ", all of it" } else { "" });
        messages.note(format_args!("loaded {path}{suffix}"));
        self.files.push(file);
        Ok(())
    }
}

/// Turns a panic while loading a file into its error, so that the other files still load.
fn caught<T>(path: &Path, load: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
    quietly(load).unwrap_or_else(|CaughtPanic { message, location }| {
        Err(LoadError::Panicked { path: path.to_path_buf(), message, location })
    })
}

/// Returns the trace, after reading every table if `all_tables`.
fn prefetched(file: LoadedTrace, all_tables: bool) -> Result<LoadedTrace, LoadError> {
    if all_tables {
        for table in Table::ALL {
            file.trace.frame(table)?;
        }
    }
    Ok(file)
}

/// Opens an extract, or a trace through its extract.
fn open(
    path: PathBuf,
    args: &LoadArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<LoadedTrace, LoadError> {
    let import = |messages: &mut Messages<'_>| {
        imported(&path, args.max_size, &args.access, cancel, messages)
    };
    let opened = if is_extract(&path) {
        match Trace::open_within(&path, archive_limits(args.max_size)) {
            Err(ArchiveError::NotAnExtract { .. }) => import(messages)?,
            opened => named(&path, opened?, &args.access, messages),
        }
    } else if has_extension(&path, &[PLAIN_EXTENSION]) {
        import(messages)?
    } else {
        if !has_extension(&path, TRACE_EXTENSIONS) && !is_dump(&path)? {
            check_text(&path, cancel)?;
        }
        extracted(&path, args, cancel, messages)?
    };
    with_caveats(path, opened, messages)
}

/// Rejects a file that is neither a trace nor a text with handles.
fn check_text(path: &Path, cancel: &Cancel) -> Result<(), LoadError> {
    let path_of = || path.to_path_buf();
    match recognize(path, cancel)? {
        TextContent::Debugger | TextContent::List => Ok(()),
        TextContent::NotUnderstood(line) => {
            Err(SourceError::NotUnderstood { path: path_of(), line }.into())
        }
        TextContent::NoHandles | TextContent::Other if is_trace(path)? => Ok(()),
        TextContent::Other => Err(LoadError::UnknownFormat { path: path_of() }),
        TextContent::NoHandles => Err(LoadError::NoHandlesInText { path: path_of() }),
    }
}

/// Opens an extract that was named itself. It is what the user asked for, but warn if it does not belong to the trace
/// beside it.
fn named(
    path: &Path,
    opened: Trace,
    access: &Access,
    messages: &mut Messages<'_>,
) -> OpenedExtract {
    let differing = differing_trace(path, &opened).filter(|(trace, _)| access.allows(trace));
    if let Some((trace, difference)) = differing {
        let (path, trace) = (Untrusted(path), Untrusted(trace));
        messages.warning(format_args!(
            "{path} {difference}; load {trace} beside it to extract it again"
        ));
    }
    OpenedExtract::found(opened)
}

/// Creates the loaded trace, after reporting its warnings and the caveats about its answers.
fn with_caveats(
    path: PathBuf,
    opened: OpenedExtract,
    messages: &mut Messages<'_>,
) -> Result<LoadedTrace, LoadError> {
    let OpenedExtract { trace, line, temporary } = opened;
    extraction::warn(&path, Warnings::read(&trace)?.rows(), messages);
    line.iter().for_each(|line| messages.note(line));
    warn_of(&path, &Caveat::for_load(&trace)?, messages);
    let snapshots = Snapshot::from_debugger(&trace)?;
    Ok(LoadedTrace { temporary, snapshots, ..LoadedTrace::new(path, trace) })
}

/// Opens another program's extract of a trace that was found rather than named, unless this program has one, too.
fn import_for(
    trace: &Path,
    args: &LoadArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Option<LoadedTrace> {
    if !has_extension(trace, TRACE_EXTENSIONS) {
        return None;
    }
    let extract = foreign(trace, &args.access)?;
    let opened = imported(&extract, args.max_size, &args.access, cancel, messages)
        .and_then(|opened| with_caveats(extract.clone(), opened, messages));
    let (trace, extract) = (Untrusted(trace), Untrusted(extract));
    match opened {
        Ok(file) => {
            messages.note(format_args!(
                "{trace} is not extracted: {extract} is another program's extract of it; name the trace \
                 to extract it"
            ));
            Some(file)
        }
        Err(error) => {
            messages.note(format_args!("{extract} cannot be used ({error}); using {trace}"));
            None
        }
    }
}

/// Returns the path of another program's extract of a trace, if this program has none.
fn foreign(trace: &Path, access: &Access) -> Option<PathBuf> {
    let candidates = [beside(trace), side_by_side(trace)];
    let mut archives = candidates.iter().filter(|extract| access.allows(extract));
    if archives.clone().any(|file| matches!(freshness(trace, file), Freshness::UpToDate(_))) {
        return None;
    }
    let archive = archives.find(|extract| is_foreign(extract)).cloned();
    let mut plain = candidates.iter().map(|path| path.with_extension(PLAIN_EXTENSION));
    archive.or_else(|| plain.find(|extract| is_plain_extract(extract)))
}

/// Returns the extract of a trace: an existing one, or else a new one.
fn extracted(
    path: &Path,
    args: &LoadArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<OpenedExtract, LoadError> {
    let LoadArgs { max_size, access, .. } = args;
    let (beside, in_cache) = (beside(path), in_cache(path));
    let mut is_taken = false;
    let near =
        [beside.clone(), side_by_side(path)].into_iter().filter(|extract| access.allows(extract));
    for extract in near.chain([in_cache.clone()]) {
        match freshness(path, &extract) {
            Freshness::UpToDate(trace) => return Ok(OpenedExtract::found(*trace)),
            Freshness::Missing => {}
            Freshness::Foreign => is_taken |= extract == beside,
            Freshness::Stale(reason) => {
                let extract = Untrusted(extract);
                messages.note(format_args!("{extract} {reason}; extracting the trace again"));
            }
        }
    }
    let mut target = if access.read_only {
        for_session(&beside)?
    } else {
        match prepare_beside(&beside, is_taken, access) {
            Ok(made) => ExtractLocation { path: beside, folder: None, made },
            Err(reason) => {
                let target = kept(in_cache, messages)?;
                let (preferred, used) = (Untrusted(&beside), Untrusted(&target.path));
                messages.note(format_args!("{preferred} {reason}; using {used}"));
                target
            }
        }
    };
    let options = extraction::options(*max_size);
    let summary = match extraction::run(path, &target.path, options.clone(), cancel, messages) {
        Err(SourceError::Extract(ExtractError::Output(ArchiveError::Io { source, .. })))
            if is_full(&source) && target.folder.is_none() =>
        {
            target = for_want_of_cache(&target.path, &source, messages)?;
            extraction::run(path, &target.path, options, cancel, messages)
        }
        Err(SourceError::Extract(ExtractError::Output(ArchiveError::Replace {
            path: taken,
            source,
        }))) => {
            messages.note(format_args!(
                "{} cannot be replaced ({}); extracting for this session only",
                Untrusted(&taken),
                Reason(&source)
            ));
            target = for_session(&taken)?;
            extraction::run(path, &target.path, options, cancel, messages)
        }
        result => result,
    }?;
    let ExtractLocation { path: output, folder: temporary, made: _made } = target;
    let line = extraction::line(&output, &summary);
    Ok(OpenedExtract { trace: Trace::open(&output)?, line: Some(line), temporary })
}

/// Creates the folder for an extract beside its trace, or says why nothing is written there, for example because
/// another program's extract is there.
fn prepare_beside(beside: &Path, is_taken: bool, access: &Access) -> Result<MadeFolders, String> {
    if is_taken {
        return Err("is another program's extract and stays".to_owned());
    }
    if !access.allows(beside) {
        return Err("is outside the folders that may be written".to_owned());
    }
    prepare_folder(beside).map_err(|reason| format!("cannot be written ({})", Reason(&reason)))
}

/// Returns the limits for an extract, raised to the member size its user trusts.
fn archive_limits(max_size: Option<u64>) -> ArchiveLimits {
    let usual = ArchiveLimits::default();
    max_size.map_or(usual, |size| usual.trusted_with(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_error_of_its_file() {
        let error = caught(Path::new("a.etl"), || -> Result<(), LoadError> { panic!("row {}", 7) });
        let text = error.map_err(|error| error.to_string()).expect_err("a panic");
        assert!(text.starts_with("a.etl: this is a bug in handlescope (console"), "{text}");
        assert!(text.contains("row 7"), "{text}");
    }
}
