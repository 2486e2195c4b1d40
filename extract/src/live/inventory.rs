//! What a whole file says of its system, for a replay: records at its end name types, processes and modules.

use std::ops::ControlFlow;
use std::path::Path;

use handlescope_model::Cancel;

use crate::collect::Collector;
use crate::error::ExtractError;
use crate::etl::{Event, EventId, Selector};
use crate::kernel::{ImageRow, Images, ObjectTypes, ProcessRow, Processes, System};
use crate::options::ExtractOptions;
use crate::raw::EventFamily;
use crate::recording::OpenRecording;

/// Types, processes and modules of a trace, with the raw times at which they came and went.
#[derive(Default)]
pub struct Inventory {
    processes: Vec<ProcessRow>,
    images: Images,
    object_types: ObjectTypes,
    system: System,
}

/// Selects the events that an inventory is made of.
struct OfSystem;

impl Selector for OfSystem {
    fn select(&mut self, event: &Event<'_>) -> bool {
        let families: [&[(EventId, &str)]; 4] =
            [Processes::EVENTS, Images::EVENTS, ObjectTypes::EVENTS, System::EVENTS];
        families.iter().any(|events| events.iter().any(|(id, _)| *id == event.id))
    }
}

impl Inventory {
    /// Reads a trace from its beginning to its end.
    ///
    /// # Errors
    /// When it cannot be read, or `cancel` asks to stop.
    pub(super) fn read(path: &Path, cancel: &Cancel) -> Result<Self, ExtractError> {
        let limits = ExtractOptions::default().limits;
        let open = OpenRecording::open_cancellable(path, &limits, cancel)?;
        let mut collected = Collector::default();
        let flow = |_| match cancel.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        open.read(&mut OfSystem, flow, |event| collected.event(event))?;
        collected.finish();
        let Collector { processes, images, object_types, system, .. } = collected;
        Ok(Self { processes: processes.rows, images, object_types, system })
    }

    /// The names of the processes that were there before the trace, by process id.
    pub fn older_processes(&self) -> impl Iterator<Item = (u32, &str)> {
        let older = self.processes.iter().filter(|process| process.start.is_none());
        older.map(|process| (process.process.pid, process.process.name.as_str()))
    }

    /// Puts what there was until a raw time in place of what the events so far said.
    pub(super) fn fill(&self, collected: &mut Collector, until: i64) {
        let has_begun = |start: Option<i64>| start.is_none_or(|start| start <= until);
        let ended = |end: Option<i64>| end.filter(|end| *end <= until);
        let processes = self.processes.iter().filter(|process| has_begun(process.start));
        let process =
            |process: &ProcessRow| ProcessRow { end: ended(process.end), ..process.clone() };
        collected.processes.rows = processes.map(process).collect();
        let Images { rows, paths, versions, .. } = &self.images;
        let images = rows.iter().filter(|image| has_begun(image.load));
        let image = |image: &ImageRow| ImageRow { unload: ended(image.unload), ..image.clone() };
        let mut known = Images::default();
        known.rows = images.map(image).collect();
        (known.paths, known.versions) = (paths.clone(), versions.clone());
        collected.images = known;
        collected.object_types.names.clone_from(&self.object_types.names);
        collected.system.clone_from(&self.system);
    }
}
