//! Each event to the columns of its family.

use super::index::{Family, FamilyIndex};
use super::kept::KeptEvents;
use crate::etl::{Event, WarningKind};
use crate::mapping::ResourceMapping;
use crate::options::EventChoice;
use crate::raw::{EventFamily, Shared, event_families};

macro_rules! collector {
    ($($field:ident: $family:ident in $module:ident [$($kind:ident),*],)*) => {
        $(use crate::$module::$family;)*

        /// Everything that one pass over a trace gathers.
        #[derive(Default)]
        pub struct Collector {
            $(pub $field: $family,)*
            pub shared: Shared,
            /// Single events of the providers that were chosen.
            pub kept: KeptEvents,
            index: FamilyIndex,
        }

        impl Collector {
            /// Takes one event; events must come in time order.
            pub fn event(&mut self, event: &Event<'_>) {
                self.kept.take(event, &mut self.metadata.decoder);
                let family = self.index.family(event.id);
                let row = self.shared.timeline.len();
                let decoder = &mut self.metadata.decoder;
                if family.is_none_or(|family| family == Family::Described) {
                    self.described.consider(event, decoder, &mut self.shared);
                } else {
                    self.described.consider_of_family(event, decoder, &mut self.shared);
                }
                if let Some(family) = family {
                    self.take(family, event);
                }
                if !event.extended.is_empty() && self.shared.timeline.len() > row {
                    self.stacks.events.carry(row, event);
                }
            }

            fn take(&mut self, family: Family, event: &Event<'_>) {
                let taken = match family {
                    $(Family::$family => self.$field.take(event, &mut self.shared),)*
                };
                if taken.is_none() {
                    self.shared.diagnostics.count(WarningKind::ShortPayload, Some(event.offset));
                }
            }

            /// Takes the end of the trace.
            pub fn finish(&mut self) {
                self.described.decide(&mut self.metadata.decoder, &mut self.shared);
                let unresolved = self.kept.stacks.fragments.unresolved_keys() as u64;
                self.shared.diagnostics.add(WarningKind::UnresolvedStackKey, unresolved, None);
                $(self.$field.finish(&mut self.shared);)*
                self.methods.native_images.identify(&mut self.images);
            }
        }
    };
}

event_families!(collector);

impl Collector {
    /// An empty collection that keeps these stacks.
    pub fn new(stacks: KeptStacks) -> Self {
        Self { stacks, ..Self::default() }
    }

    /// The same with single events of these providers, which [`KernelSelector::with_providers`] must select.
    ///
    /// [`KernelSelector::with_providers`]: super::KernelSelector::with_providers
    #[must_use]
    pub fn keeping(self, events: EventChoice) -> Self {
        Self { kept: KeptEvents::of(events), ..self }
    }

    /// The same with these events as such that acquire and release, which [`KernelSelector::following`] must select.
    ///
    /// [`KernelSelector::following`]: super::KernelSelector::following
    #[must_use]
    pub fn following(self, resources: Vec<ResourceMapping>) -> Self {
        Self { described: Described::new(resources), ..self }
    }
}
