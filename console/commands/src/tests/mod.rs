//! Tests of commands on small handmade traces.

mod chosen_traces;
mod filters;
mod grouped_stacks;
mod process_filters;
mod rendered;
mod stack_filters;

use handlescope_model::EventKind;
use handlescope_query::fixture::SavedTrace;
use handlescope_query::{AcquisitionCriteria, ListedObject, ObjectRefAnswer, object_ref};
use handlescope_session::cancel::Cancel;

use crate::dump::object_ref::ObjectRefArgs;

/// Questions with options of `.dump ObjectRef`, as typed.
pub trait Ask {
    /// Passes the whole answer to `look`.
    fn ask<T>(&self, options: &str, look: impl FnOnce(&ObjectRefAnswer<'_>) -> T) -> T;

    /// Returns the ids of the objects that pass, in the order of the console.
    fn ids(&self, options: &str) -> Vec<u64> {
        self.ask(options, |answer| {
            answer.files[0].selection.objects().iter().map(|selected| selected.id()).collect()
        })
    }

    /// Returns the ids of the objects that pass, with the kinds of their events that passed.
    fn kinds(&self, options: &str) -> Vec<(u64, Vec<&'static str>)> {
        self.ask(options, |answer| {
            let objects = answer.files[0].objects();
            let kinds = |object: ListedObject<'_>| object.kinds().map(EventKind::name).collect();
            objects.map(|object| (object.id(), kinds(object))).collect()
        })
    }
}

impl Ask for SavedTrace {
    fn ask<T>(&self, options: &str, look: impl FnOnce(&ObjectRefAnswer<'_>) -> T) -> T {
        let sources = [self.source()];
        let cancel = Cancel::default();
        look(&object_ref(&sources, &arguments(options), self, &cancel).expect("an answer"))
    }
}

/// Parses options of `.dump ObjectRef`.
pub fn arguments(options: &str) -> AcquisitionCriteria {
    let line = format!(".dump ObjectRef {options}");
    let args: ObjectRefArgs = crate::registry::tests::args(&line);
    let plain_process_names = args.display.plain_process_names;
    AcquisitionCriteria { plain_process_names, ..args.criteria }
}
