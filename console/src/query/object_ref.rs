//! `.dump ObjectRef`: from loaded traces and arguments to what is to be printed.

use std::path::Path;

use handlescope_model::rules;
use handlescope_model::tables::TraceInfo;
use handlescope_model::{EventIdx, Table};

use super::context::FileContext;
use super::error::QueryError;
use super::filters;
use super::frame_names::{FrameNames, ModuleBases};
use super::info::trace_info;
use super::listing::Listing;
use super::selection::{Selected, Selection};
use super::source::Source;
use super::stacks::StackSet;
use super::totals::{CountBy, OpenHandles, Totals};
use crate::cancel::Cancel;
use crate::query::criteria::{ObjectCriteria, ShowTotal};

/// The answer for all traces, in the order they are loaded.
pub struct ObjectRefAnswer<'a> {
    /// One answer for each trace.
    pub files: Vec<FileAnswer<'a>>,
}

/// The answer for one trace.
pub struct FileAnswer<'a> {
    /// What is known of the trace.
    pub info: TraceInfo,
    /// Objects that passed, in the console's order, and their events.
    pub selection: Selection,
    /// Sums over them.
    pub totals: Totals,
    /// Handles that were open at the end, if they were asked for.
    pub open_handles: Option<OpenHandles>,
    /// What is needed to print objects; `None` when only sums were asked for.
    pub listing: Option<Listing>,
    /// Number of stacks of the trace.
    pub(crate) stack_count: usize,
    /// Stacks to show, if they were asked for.
    pub(crate) shown_stacks: Option<StackSet>,
    /// Addresses of modules, if they were asked for.
    pub(crate) bases: ModuleBases,
    pub(crate) file: FileContext<'a>,
}

/// Answers `.dump ObjectRef` over loaded traces.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn object_ref<'a>(
    sources: &'a [Source<'a>],
    args: &ObjectCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<ObjectRefAnswer<'a>, QueryError> {
    let files: Result<_, _> =
        sources.iter().map(|source| FileAnswer::new(source, args, names, cancel)).collect();
    Ok(ObjectRefAnswer { files: files? })
}

/// What `-ShowTotal` counts open handles by; `None` when it asks for no table.
pub fn count_by(args: &ObjectCriteria) -> Option<CountBy> {
    match args.show_total {
        Some(ShowTotal::Total) => Some(CountBy::Type),
        Some(ShowTotal::Process) => Some(CountBy::Process),
        Some(ShowTotal::File) => Some(CountBy::File),
        Some(ShowTotal::None) | None => None,
    }
}

impl ObjectRefAnswer<'_> {
    /// Sums over all traces.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for file in &self.files {
            totals += file.totals;
        }
        totals
    }

    /// Open handles of all traces.
    pub fn open_handles(&self) -> OpenHandles {
        let mut all = OpenHandles::default();
        for handles in self.files.iter().filter_map(|file| file.open_handles.as_ref()) {
            all.add(handles);
        }
        all
    }
}

impl<'a> FileAnswer<'a> {
    fn new(
        source: &'a Source<'a>,
        args: &ObjectCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        let file = FileContext::load(source, args, names, cancel)?;
        let mut selection = filters::select(&file, args)?;
        let totals = Totals::of(&file, &selection)?;
        let counted = count_by(args).is_some();
        // Scripts know a process by its executable.
        let plain = args.plain_process_names || args.for_programs;
        let open_handles =
            counted.then(|| OpenHandles::of(&file, &selection, plain)).transpose()?;
        let listing = (!counted).then(|| Listing::load(file.trace)).transpose()?;
        let mut bases = ModuleBases::default();
        let mut shown_stacks = None;
        if let Some(listing) = &listing {
            listing.sort(&mut selection);
            if let Some(frames) = file.frames.as_ref().filter(|_| args.stacks.show) {
                let stacks = listing.stacks(&file, &selection, frames.stacks.len())?;
                frames.resolve(stacks.iter())?;
                shown_stacks = Some(stacks);
                if args.stacks.address || args.for_programs {
                    bases = ModuleBases::load(file.trace)?;
                }
            }
        }
        Ok(Self {
            info: trace_info(file.trace)?,
            selection,
            totals,
            open_handles,
            listing,
            stack_count: file.trace.height(Table::Stacks)?,
            shown_stacks,
            bases,
            file,
        })
    }

    /// The file as it was named.
    pub fn path(&self) -> &Path {
        self.file.path
    }

    /// The number of the file in the session.
    pub fn index(&self) -> usize {
        self.file.index
    }

    /// The lifetime of an object before all filters; `None` when its creation or end is unknown.
    pub(crate) fn lifetime_ns(&self, listing: &Listing, selected: Selected) -> Option<i64> {
        let time = |event: Option<EventIdx>| listing.time_ns(event?.row());
        let (object, objects) = (selected.object(), &self.file.objects);
        rules::lifetime_ns(time(objects.create_event(object)), time(objects.destroy_event(object)))
    }

    /// Rows of the events of an object that are left, in time order.
    pub(crate) fn events(&self, selected: Selected) -> impl Iterator<Item = usize> + '_ {
        let events = self.file.objects.events(selected.object());
        events.filter(|&event| self.selection.events.contains(event))
    }
}
