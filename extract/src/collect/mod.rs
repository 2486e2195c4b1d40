//! Collects events into raw columns of their families, in a single pass over the file. Chosen provider events are kept
//! undecoded until all metadata is known.

mod counter;
mod gathered;
mod index;
#[cfg(test)]
mod tests;

pub use self::counter::{EventCounter, EventKindCount, EventTally, KernelSelector};
pub use self::gathered::{GatheredRows, RowGatherer};
pub use self::index::{
    FAMILIES, FamilyDeclaration, FamilyId, FamilyIndex, KERNEL, check_mappings, event_name,
};
use crate::etl::{Event, EventId, WarningKind};
use crate::mapping::ResourceMapping;
use crate::metadata::{DecodedEvent, Decoder, Schema, SchemaId};
use crate::options::EventChoice;
use crate::raw::{EventFamily, PassState, UNKNOWN_ID, event_families};
use crate::stacks::{EventStacks, FragmentRef};

macro_rules! collector {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        $(use crate::$module::$family;)*

        /// Columns and events collected in a pass over a trace.
        #[derive(Default)]
        pub struct Collector {
            $(pub $field: $family,)*
            pub shared: PassState,
            /// Individual events of the chosen providers.
            pub kept: KeptEvents,
            index: FamilyIndex,
            /// Raw time before which the frames of keys may have been overwritten; `None` once an event has reached it.
            complete_from: Option<i64>,
        }

        impl Collector {
            /// Handles one event; events must come in time order.
            pub fn event(&mut self, event: &Event<'_>) {
                self.forget_keys_at(event.time);
                let kept = self.kept.len();
                self.kept.take(event, &mut self.metadata.decoder, &mut self.stacks.events);
                let kept = Some(kept).filter(|number| self.kept.has_no_stack(*number));
                let family = self.index.family(event.id);
                let row = self.shared.timeline.len();
                let decoder = &mut self.metadata.decoder;
                if family.is_none_or(|family| family == FamilyId::Described) {
                    self.described.consider(event, decoder, &mut self.shared);
                } else {
                    self.described.consider_of_family(event, decoder, &mut self.shared);
                }
                if let Some(family) = family {
                    self.decode(family, event);
                }
                let has_row = self.shared.timeline.len() > row;
                if !event.extended.is_empty() && has_row {
                    self.stacks.events.carry(row, event, &mut self.shared.timeline);
                }
                self.stacks.events.note_runtime(event, has_row.then_some(row), kept);
                if event.parts.is_some() {
                    self.stacks.events.take_parts(row, event, &mut self.shared.timeline);
                }
                if family == Some(FamilyId::Threads)
                    && let Some((pid, tid)) = Threads::changed(event)
                {
                    self.stacks.end_thread(pid, tid, event.time, &mut self.shared.timeline);
                }
                self.kept.complete_stacks(&mut self.stacks.events);
            }

            fn decode(&mut self, family: FamilyId, event: &Event<'_>) {
                let taken = match family {
                    $(FamilyId::$family => self.$field.take(event, &mut self.shared),)*
                };
                if taken.is_none() {
                    self.shared.diagnostics.count(WarningKind::ShortPayload, Some(event.offset));
                }
            }

            /// Finishes the families at the end of the trace.
            pub fn finish(&mut self) {
                self.described.decide(&mut self.metadata.decoder, &mut self.shared);
                $(self.$field.finish(&mut self.shared);)*
                self.kept.complete_stacks(&mut self.stacks.events);
                self.methods.native_images.identify(&mut self.images);
            }
        }
    };
}

event_families!(collector);

impl Collector {
    /// Creates an empty collector that keeps these stacks.
    pub fn new(stacks: KeptStacks) -> Self {
        Self { stacks, ..Self::default() }
    }

    /// Keeps individual events of these providers, which [`KernelSelector::with_providers`] must select.
    ///
    /// [`KernelSelector::with_providers`]: self::KernelSelector::with_providers
    #[must_use]
    pub fn keeping(self, events: EventChoice) -> Self {
        Self { kept: KeptEvents::new(events), ..self }
    }

    /// Treats these events as acquiring and releasing resources; [`KernelSelector::following`] must select them.
    ///
    /// [`KernelSelector::following`]: self::KernelSelector::following
    #[must_use]
    pub fn following(self, resources: Vec<ResourceMapping>) -> Self {
        Self { described: Described::new(resources), ..self }
    }

    /// Marks the trace as complete only from this raw time on.
    #[must_use]
    pub fn complete_from(self, time: Option<i64>) -> Self {
        Self { complete_from: time, ..self }
    }

    /// At the first event from which on the trace is complete, forgets the stack keys of earlier events.
    pub fn forget_keys_at(&mut self, time: i64) {
        if self.complete_from.is_some_and(|from| time >= from) {
            self.complete_from = None;
            self.stacks.forget_keys();
        }
    }
}

/// Maximum bytes of payloads kept in memory.
const MAX_BYTES: usize = 4 << 30;

/// Maximum number of provider events kept.
const MAX_EVENTS: usize = u32::MAX as usize / 2;

/// Event without its payload.
#[derive(Debug, Clone, Copy)]
pub struct KeptEvent {
    pub id: EventId,
    version: u8,
    pointer_size: u8,
    /// Raw time.
    pub time: i64,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    /// Its schema, if known when the event came.
    schema: Option<SchemaId>,
    /// End of its payload, which begins where the previous event's ends.
    end: u64,
    /// First and second part of its stack.
    pub stack: [FragmentRef; 2],
}

/// Kept events in time order.
#[derive(Default)]
pub struct KeptEvents {
    choice: EventChoice,
    /// Whether events of each schema are kept; `None` until the first such event.
    selected: Vec<Option<bool>>,
    events: Vec<KeptEvent>,
    payloads: Vec<u8>,
    /// Events left out because there were too many.
    pub left_out: u64,
}

impl KeptEvents {
    /// Creates an empty collection for events of these providers.
    pub fn new(choice: EventChoice) -> Self {
        Self { choice, ..Self::default() }
    }

    /// Keeps an event if its provider was chosen or is not known yet.
    pub fn take(&mut self, event: &Event<'_>, decoder: &mut Decoder, stacks: &mut EventStacks) {
        if self.choice == EventChoice::None || Decoder::is_metadata(event.id) {
            return;
        }
        let schema = match event.id {
            // A manifest may come after its events; a WMI class comes before.
            EventId::Manifest { .. } => decoder.schema_of(event),
            EventId::Classic { .. } => match decoder.schema_of(event) {
                None => return,
                schema => schema,
            },
            EventId::Hook(_) | EventId::Message => return,
        };
        if schema.is_some_and(|schema| !self.is_selected(schema, decoder)) {
            return;
        }
        if self.events.len() >= MAX_EVENTS || self.payloads.len() > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.payloads.extend_from_slice(event.payload);
        let stack = stacks.carry_kept(event, self.events.len() as u32);
        self.events.push(KeptEvent {
            id: event.id,
            version: event.version,
            pointer_size: event.pointer_size as u8,
            time: event.time,
            pid: event.pid,
            tid: event.tid,
            schema,
            end: self.payloads.len() as u64,
            stack,
        });
    }

    /// Whether an event is kept but carries no stack.
    fn has_no_stack(&self, number: usize) -> bool {
        self.events.get(number).is_some_and(|event| event.stack[0] == FragmentRef::NONE)
    }

    /// Adds stack parts that came after their events.
    fn complete_stacks(&mut self, stacks: &mut EventStacks) {
        for (number, part) in stacks.take_for_kept() {
            let parts = self.events.get_mut(number as usize).map(|event| event.stack.iter_mut());
            let slot = parts.into_iter().flatten().find(|slot| **slot == FragmentRef::NONE);
            if let Some(slot) = slot {
                *slot = part;
            }
        }
    }

    /// Whether events of a schema are kept. Each schema is examined once.
    fn is_selected(&mut self, id: SchemaId, decoder: &Decoder) -> bool {
        if let Some(known) = self.selected.get(id.row()).copied().flatten() {
            return known;
        }
        let is_selected =
            decoder.schemas().get(id.row()).is_none_or(|schema| self.has_provider(schema));
        if self.selected.len() <= id.row() {
            self.selected.resize(id.row() + 1, None);
        }
        self.selected[id.row()] = Some(is_selected);
        is_selected
    }

    fn has_provider(&self, schema: &Schema) -> bool {
        self.choice.means(&schema.provider, &schema.guid.to_string())
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn get(&self, row: usize) -> Option<&KeptEvent> {
        self.events.get(row)
    }

    /// Decodes a kept event; `None` if it has no schema, or its provider turns out not to be chosen.
    pub fn decode<'a>(&'a self, row: usize, decoder: &'a mut Decoder) -> Option<DecodedEvent<'a>> {
        let event = self.events.get(row)?;
        let start = row.checked_sub(1).and_then(|row| self.events.get(row));
        let start = start.map_or(0, |before| before.end as usize);
        let payload = self.payloads.get(start..event.end as usize)?;
        let schema = match event.schema {
            Some(schema) => schema,
            None => {
                let KeptEvent { id, version, pid, .. } = *event;
                let late = decoder.schema_of(&Event { id, version, pid, ..Event::default() })?;
                if !self.has_provider(decoder.schemas().get(late.row())?) {
                    return None;
                }
                late
            }
        };
        decoder.decode_as(schema, payload, event.pointer_size.into())
    }

    /// Returns the process id for resolving an event's stack.
    pub fn stack_pid(event: &KeptEvent) -> u32 {
        event.pid.unwrap_or(UNKNOWN_ID)
    }
}
