//! `.dump ObjectRef`: turns loaded traces and arguments into what is to be printed.

use super::tables::ProcessInfo;
use std::ops::AddAssign;

use handlescope_model::tables::Acquisitions;
use handlescope_model::{AcquisitionIdx, EventColumns, EventPart, StackIdx, Trace};
use rayon::prelude::*;

use super::acquired::handles_of_suspect;
use super::answer::{About, Domain, TraceAnswer};
use super::context::{FileContext, Source};
use super::criterion::{Criteria, Survivors};
use super::error::QueryError;
use super::exit_stacks::ExitStacks;
use super::filters::{self, FilteredObjects};
use super::frame_names::{FrameNames, Frames};
use super::frame_view::ModuleBases;
use super::groups::Groups;
use super::gui_handles::{GuiHandles, gui_handles};
use super::handle_counts::{CountedHandles, HandleCounts};
use super::listing::EventListing;
use super::no_match::NoMatch;
use super::objects::ObjectTable;
use super::selection::Selection;
use super::stacks::StackSet;
use super::suspect_rows::check;
use super::targets::Targets;
use super::totals::Totals;
use super::trimmed_stacks::TrimmedStacks;
use super::unnamed_methods;
use crate::criteria::{AcquisitionCriteria, ProcessCriteria};
use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::trace::{Caveat, has_handle_events};
use handlescope_session::values::TopN;

/// The answer for all traces, in the order they were loaded.
pub struct ObjectRefAnswer<'a> {
    /// One answer for each trace.
    pub files: Vec<FileAnswer<'a>>,
    /// Handle counts over all traces, if requested.
    pub handle_counts: Option<HandleCounts>,
}

/// The answer for one trace.
pub struct FileAnswer<'a> {
    pub about: About<'a>,
    /// Objects that passed, in output order, with their events.
    pub selection: Selection,
    /// Sums over them.
    pub totals: Totals,
    /// Handle counts, if requested.
    pub handle_counts: Option<HandleCounts>,
    /// Groups of handles instead of objects, if requested.
    pub groups: Option<Groups>,
    /// Data needed to print objects; `None` if only sums or groups were requested.
    pub listing: Option<EventListing>,
    /// What handles to processes and threads refer to, if objects are listed and that was asked for.
    pub targets: Option<Targets>,
    /// Evidence from stacks of closes at process exit, if `-LeakAtExit` requests it and there are names.
    pub exit_stacks: Option<ExitStacks>,
    /// Objects that `-Leak` or `-LeakAtExit` found but other filters left without anything that leaks. They stay
    /// because of their creation or end.
    pub without_leak: u64,
    /// Whether only leaks were requested.
    pub is_of_leaks: bool,
    /// Whether the trace has events of handles or views; without them it says nothing about leaks.
    pub knows_leaks: bool,
    /// GDI and USER handles, if requested.
    pub gui_handles: Vec<GuiHandles>,
    /// Objects and groups that `-TopN` leaves out of the output.
    pub left_out: ObjectsLeftOut,
    pub file: FileContext<'a>,
    /// Number of objects that each criterion leaves.
    survivors: Survivors,
}

/// Objects that are not printed, with their handles and views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectsLeftOut {
    pub objects: usize,
    /// Handles opened by their events.
    pub handles: usize,
    /// Views mapped by their events.
    pub views: usize,
    /// Handles in the final rundown, for objects with no event that opened or closed a handle.
    pub existing: usize,
}

impl AddAssign for ObjectsLeftOut {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.handles += other.handles;
        self.views += other.views;
        self.existing += other.existing;
    }
}

/// Answers `.dump ObjectRef` over loaded traces.
///
/// # Errors
/// If an archive is damaged, the suspect id matches none or several, or `cancel` asks to stop.
pub fn object_ref<'a>(
    sources: &'a [Source<'a>],
    args: &AcquisitionCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<ObjectRefAnswer<'a>, QueryError> {
    let answer = unchecked_object_ref(sources, args, names, cancel)?;
    if let Some(id) = &args.suspect {
        let rows = answer.files.iter().filter_map(|file| file.file.suspect.as_ref());
        check(id, "handles", rows)?;
    }
    Ok(answer)
}

/// Answers without checking the suspect id, which may be that of allocations.
pub fn unchecked_object_ref<'a>(
    sources: &'a [Source<'a>],
    args: &AcquisitionCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<ObjectRefAnswer<'a>, QueryError> {
    let mut files: Vec<FileAnswer<'a>> = sources
        .iter()
        .map(|source| FileAnswer::new(source, args, names, cancel))
        .collect::<Result<_, _>>()?;
    if files.iter().all(FileAnswer::is_without_match) {
        for FileAnswer { file, about, survivors, .. } in &mut files {
            if args.is_of_leaks() {
                // Criteria before the leak filters are counted over all objects.
                file.objects = ObjectTable::load(file.trace)?;
                *survivors = filters::select(file, args)?.survivors;
            }
            about.no_match = NoMatch::for_objects(file, args, survivors)?;
        }
    }
    let counts = files.iter().filter_map(|file| file.handle_counts.as_ref());
    let handle_counts =
        args.count_by.map(|_| HandleCounts::from_all(CountedHandles::new(args), counts));
    Ok(ObjectRefAnswer { handle_counts, files })
}

/// Loads the objects that `-Leak` and `-LeakAtExit` can keep or count. Loads all objects without these options, or for
/// a suspect, which includes more than its leaks.
fn objects_for(args: &AcquisitionCriteria, trace: &Trace) -> Result<ObjectTable, QueryError> {
    if args.suspect.is_some() || !args.is_of_leaks() {
        return Ok(ObjectTable::load(trace)?);
    }
    Ok(ObjectTable::with_any(trace, |table, row| {
        let state = table.state(row);
        state.is_leaked() || state.is_closed_at_exit() || state.is_closed_unseen()
    })?)
}

/// Returns the reasons why the answer for a trace may be wrong or incomplete.
fn caveats(file: &FileContext<'_>, selection: &Selection) -> Result<Vec<Caveat>, QueryError> {
    let mut caveats = Caveat::for_trace(file.trace)?;
    if let Some(frames) = &file.frames {
        let table = &file.objects.table;
        let stack = file.trace.values(Acquisitions::opened_stack)?;
        let opened = (0..table.allocations).into_par_iter();
        let (opened, without_stack) = opened
            .filter(|row| table.state(*row).is_opened())
            .map(|row| (1, u64::from(stack.get(row).is_none())))
            .reduce(|| (0, 0), |sums, event| (sums.0 + event.0, sums.1 + event.1));
        caveats.extend(Caveat::for_missing_stacks(without_stack, opened));
        let stacks = || {
            let columns = EventColumns::with_all(file.trace)?;
            let (stack, process) = (columns.stacks()?, columns.processes()?);
            Ok((0..table.height()).map(move |event| (stack.get(event), process.get(event))))
        };
        caveats.extend(unnamed_methods::caveat(file.trace, frames, &file.processes, stacks)?);
    }
    caveats.extend(Caveat::for_missing_symbols(&selection.needs_symbols));
    Ok(caveats)
}

/// Whether a trace has events of handles or views, or at least the rundown of a session that recorded them.
fn knows_leaks(trace: &Trace) -> Result<bool, QueryError> {
    if has_handle_events(trace)? {
        return Ok(true);
    }
    let table = trace.event_table()?;
    let has_views = table.states().iter().any(|state| state.is_view());
    let has_rundown = trace.values(Acquisitions::in_rundown)?.any();
    Ok(has_views || (has_rundown && !trace.info()?.is_of_one_moment()))
}

/// Counts objects without a remaining opening event; among leaking objects, these have no leak left.
fn without_leak(file: &FileContext<'_>, selection: &Selection) -> u64 {
    let numbering = file.objects.table.numbering;
    let without_opening = selection.objects().iter().filter(|selected| {
        !file.objects.events(selected.object()).any(|event| {
            selection.events.contains(event) && numbering.part(event).0 == EventPart::Opened
        })
    });
    without_opening.count() as u64
}

impl ObjectRefAnswer<'_> {
    /// Sums the evidence from closes at process exit over all traces.
    pub fn exit_stacks(&self) -> Option<ExitStacks> {
        self.files.iter().filter_map(|file| file.exit_stacks).reduce(|mut sums, file| {
            sums += file;
            sums
        })
    }

    /// Adds the GDI and USER handles of the traces.
    ///
    /// # Errors
    /// If an archive is damaged or `cancel` asks to stop.
    pub fn add_gui_handles(
        &mut self,
        sources: &[Source<'_>],
        criteria: &AcquisitionCriteria,
        names: &dyn FrameNames,
        cancel: &Cancel,
    ) -> Result<(), QueryError> {
        for (file, source) in self.files.iter_mut().zip(sources) {
            file.gui_handles = gui_handles(source, criteria, names, cancel)?;
        }
        // A match in one trace is enough.
        if self.files.iter().any(|file| !file.gui_handles.is_empty()) {
            self.files.iter_mut().for_each(|file| file.about.no_match = None);
        }
        Ok(())
    }

    /// Sums over all traces.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for file in &self.files {
            totals += file.totals;
        }
        totals
    }
}

impl<'a> TraceAnswer<'a> for FileAnswer<'a> {
    const DOMAIN: Domain = Domain::Handles;

    fn about(&self) -> &About<'a> {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About<'a> {
        &mut self.about
    }

    fn frames(&self) -> Option<&Frames<'a>> {
        self.file.frames.as_ref()
    }

    fn trims(&self) -> Option<&TrimmedStacks> {
        self.groups.as_ref()?.stacks.as_deref()
    }

    fn totals(&self) -> Option<(Totals, Option<ExitStacks>)> {
        Some((self.totals, self.exit_stacks))
    }
}

impl<'a> FileAnswer<'a> {
    fn new(
        source: &'a Source<'a>,
        args: &AcquisitionCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        let objects = objects_for(args, source.trace)?;
        let mut file = FileContext::load(source, objects, args.needs_frames(), names, cancel)?;
        if let Some(id) = &args.suspect {
            file.suspect = Some(handles_of_suspect(&file, id, &args.groups.trims)?);
        }
        let FilteredObjects { mut selection, at_exit, unseen, suspect, survivors } =
            filters::select(&file, args)?;
        let mut totals = Totals::new(&file, suspect.as_ref().unwrap_or(&selection))?;
        if let Some(at_exit) = &at_exit {
            totals.closed_at_exit += Totals::new(&file, at_exit)?.closed_at_exit;
        }
        if let Some(unseen) = unseen.as_ref().filter(|_| suspect.is_none()) {
            totals.closed_unseen += Totals::new(&file, unseen)?.closed_unseen;
        }
        let is_counted = args.count_by.is_some();
        let handle_counts = is_counted.then(|| HandleCounts::new(&file, &selection, args));
        let handle_counts = handle_counts.transpose()?;
        let is_grouped = args.groups.by.is_some();
        let beside = at_exit.as_ref();
        let groups =
            is_grouped.then(|| Groups::new(&file, &selection, beside, args)).transpose()?;
        let is_listed = !is_counted && !is_grouped;
        let listing = is_listed.then(|| EventListing::load(&file, &selection)).transpose()?;
        let targets = (is_listed && args.show_target).then(|| {
            let rows = selection.object_rows(&file.objects);
            let mut targets = Targets::load(file.trace, &rows, &file.types)?;
            targets.name_functions(file.trace, names)?;
            Ok::<_, QueryError>(targets)
        });
        let mut shown_stacks = None;
        if let Some(listing) = &listing {
            listing.sort(&mut selection);
            if let Some(frames) = file.frames.as_ref().filter(|_| args.stacks.show) {
                let stacks = listing.stacks(&file, &selection, frames.stacks.len())?;
                frames.resolve(stacks.iter())?;
                shown_stacks = Some(stacks);
            }
        }
        if let Some((groups, frames)) = groups.as_ref().zip(file.frames.as_ref()) {
            shown_stacks = Some(groups.shown_stacks(frames.stacks.len()));
        }
        let needs_bases = shown_stacks.is_some() && (args.stacks.address || args.with_identities);
        let bases = needs_bases.then(|| ModuleBases::load(file.trace)).transpose()?;
        let frames = file.frames.as_ref().filter(|_| args.leak_at_exit);
        let exit_stacks =
            frames.map(|frames| ExitStacks::new(&file, frames, &selection)).transpose()?;
        let mut caveats = caveats(&file, &selection)?;
        caveats.extend(exit_stacks.and_then(|stacks| Caveat::for_doubtful_exits(stacks.doubtful)));
        let about = About::new(source, cancel)?;
        let bases = bases.unwrap_or_default();
        Ok(Self {
            about: About { caveats, shown_stacks, bases, ..about },
            exit_stacks,
            gui_handles: Vec::new(),
            left_out: ObjectsLeftOut::default(),
            is_of_leaks: args.is_of_leaks(),
            knows_leaks: knows_leaks(file.trace)?,
            without_leak: if args.is_of_leaks() { without_leak(&file, &selection) } else { 0 },
            selection,
            totals,
            handle_counts,
            groups,
            listing,
            targets: targets.transpose()?,
            file,
            survivors,
        })
    }

    /// Keeps the objects that `-TopN` selects, in their order and with their stacks, and counts the others.
    ///
    /// # Errors
    /// If the query is cancelled.
    pub fn cut(&mut self, top: TopN) -> Result<(), Cancelled> {
        let Some(listing) = &self.listing else { return Ok(()) };
        let objects = self.selection.objects();
        let shown = top.range(objects.len());
        let others = self.objects().take(shown.start).chain(self.objects().skip(shown.end));
        let mut left_out = ObjectsLeftOut::default();
        others.for_each(|object| left_out += object.left_out());
        self.left_out = left_out;
        self.selection.objects = objects[shown].to_vec();
        if let (Some(stacks), Some(frames)) = (&mut self.about.shown_stacks, &self.file.frames) {
            *stacks = listing.stacks(&self.file, &self.selection, frames.stacks.len())?;
        }
        Ok(())
    }

    /// Shows only the given stacks, with a caveat if their representative functions have no names.
    pub fn show_named_stacks(&mut self, stacks: Vec<StackIdx>) -> Result<(), QueryError> {
        let Some(frames) = &self.file.frames else { return Ok(()) };
        let mut shown_stacks = StackSet::new(frames.stacks.len());
        stacks.into_iter().for_each(|stack| shown_stacks.add(Some(stack)));
        frames.resolve(shown_stacks.iter())?;
        let unnamed = TrimmedStacks::unnamed(frames, shown_stacks.iter());
        self.about.caveats.extend(Caveat::for_unnamed_suspects(&unnamed));
        self.about.shown_stacks = Some(shown_stacks);
        Ok(())
    }

    /// Whether no object and no handle passed and none is counted separately.
    pub fn is_without_match(&self) -> bool {
        self.selection.objects().is_empty()
            && self.totals.closed_at_exit == 0
            && self.handle_counts.as_ref().is_none_or(|counts| counts.process_count() == 0)
    }
}

/// Explains why nothing matches if no handle belongs to the requested process: names the first criterion that no owner
/// passes together with those before it.
pub fn note_owners(files: &mut [FileAnswer<'_>], asked: &ProcessCriteria, is_plain: bool) {
    let is_any = |asked: &ProcessCriteria| {
        files.iter().any(|file| owners(file).any(|owner| asked.matches(owner, is_plain)))
    };
    let mut given = asked.given().into_iter();
    let Some(failed) = given.find(|given| !is_any(&asked.up_to(given.criterion))) else { return };
    for file in files {
        let names = owners(file).map(|process| process.shown_name(is_plain).to_owned()).collect();
        let objects = file.selection.objects().len();
        file.about.no_match =
            file.about.no_match.take().or_else(|| NoMatch::for_owners(&failed, objects, names));
    }
}

/// Returns the owners of handles opened in a trace.
fn owners<'f>(file: &'f FileAnswer<'_>) -> impl Iterator<Item = &'f ProcessInfo> {
    let groups = file.groups.iter().filter_map(|groups| Some((groups, groups.timed.as_ref()?)));
    groups.flat_map(move |(groups, timed)| {
        let leaves = groups.tree.leaves();
        let first = leaves.filter_map(|leaf| {
            let members = groups.tree.handles(leaf).pop()?;
            timed.rows.get(members).and_then(<[AcquisitionIdx]>::first)
        });
        first.map(|row| file.file.processes.known_or_invalid(timed.table.owner(*row)))
    })
}
