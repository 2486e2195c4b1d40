//! Derives the meaning of events from their schemas, and selects the events the reading thread hands on.

use super::gui::{self, GuiChange, GuiClass};
use crate::etl::{Event, EventId, Guid};
use crate::managed::PROVIDERS;
use crate::mapping::{ResourceAction, ResourceFields, ResourceMapping};
use crate::metadata::{Schema, event_name, schema_item};

const ACQUIRE: &str = "AcquireResource";
const RELEASE: &str = "ReleaseResource";

/// Meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The event is not followed.
    Ignored,
    /// Acquires or releases a resource; [`Rules::fields`] has the names of its fields under this number.
    Resource(ResourceAction, usize),
    /// Changes a GDI or USER handle.
    Gui(GuiChange, GuiClass),
}

/// What mappings allow for an event that another family handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfFamily {
    /// The event is not mapped.
    Nothing,
    /// Mapped only if it already has a description. It does not wait for one: no mapping names its provider, which may
    /// write more events than there is room for.
    Described,
    /// A mapping names its provider.
    Anything,
}

/// Mappings of the user, and the default rules.
#[derive(Debug, Default)]
pub struct Rules {
    mappings: Vec<ResourceMapping>,
    usual: ResourceFields,
}

impl Rules {
    pub fn new(mappings: Vec<ResourceMapping>) -> Self {
        Self { mappings, usual: ResourceFields::default() }
    }

    /// Returns the meaning of a schema's events: from the first mapping for them, or else from their names.
    pub fn meaning(&self, schema: &Schema) -> Meaning {
        let guid = schema.guid.to_string();
        let name = schema.name();
        let is_match = |mapping: &ResourceMapping| {
            mapping.is_of_event(name.as_bytes(), schema.id)
                && mapping.is_of_provider(&schema.provider, &guid)
        };
        if let Some(at) = self.mappings.iter().position(is_match) {
            return Meaning::Resource(self.mappings[at].action, at);
        }
        if let Some((change, class)) = gui::by_names(schema) {
            return Meaning::Gui(change, class);
        }
        let names = [&*schema.task, &*schema.opcode, &name];
        let action = names.iter().find_map(|name| usual_action(name.as_bytes()));
        action.map_or(Meaning::Ignored, |action| Meaning::Resource(action, self.mappings.len()))
    }

    /// Returns what mappings allow for an event that another family handles.
    pub fn of_family(&self, guid: Guid, id: u16) -> OfFamily {
        if self.mappings.is_empty() {
            return OfFamily::Nothing;
        }
        let name = PROVIDERS.iter().find(|(_, known)| *known == guid).map_or("", |(name, _)| name);
        let text = guid.to_string();
        let mut of_id = self.mappings.iter().filter(|mapping| mapping.may_be_of_id(id));
        if of_id.clone().any(|mapping| mapping.names_provider(name, &text)) {
            OfFamily::Anything
        } else if of_id.next().is_some() {
            OfFamily::Described
        } else {
            OfFamily::Nothing
        }
    }

    /// Returns the field names of a resource event.
    pub fn fields(&self, number: usize) -> &ResourceFields {
        self.mappings.get(number).map_or(&self.usual, |mapping| &mapping.fields)
    }
}

/// Whether events with this name are followed without a mapping.
fn is_usual_name(name: &[u8]) -> bool {
    usual_action(name).is_some()
}

fn usual_action(name: &[u8]) -> Option<ResourceAction> {
    let is = |usual: &str| name.eq_ignore_ascii_case(usual.as_bytes());
    if is(ACQUIRE) {
        Some(ResourceAction::Acquire)
    } else if is(RELEASE) {
        Some(ResourceAction::Release)
    } else {
        None
    }
}

/// Chooses events that may acquire or release a resource, before their descriptions are known.
#[derive(Debug, Clone, Default)]
pub struct Interest {
    mappings: Vec<ResourceMapping>,
}

impl Interest {
    /// Creates the choice from mappings and the default rules.
    pub fn new(mappings: Vec<ResourceMapping>) -> Self {
        Self { mappings }
    }

    /// Whether an event may acquire or release a resource. A TraceLogging event carries its name. The name of a
    /// manifest event is in its description, which is known only in time order, so such an event always may.
    pub fn may_be(&self, event: &Event<'_>) -> bool {
        let EventId::Manifest { id, .. } = event.id else { return false };
        let Some(schema) = schema_item(event.extended) else { return true };
        let name = event_name(schema).unwrap_or_default();
        is_usual_name(name) || self.mappings.iter().any(|mapping| mapping.is_of_event(name, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{SchemaSource, encoded_item};

    fn schema(provider: &str, task: &str, opcode: &str) -> Schema {
        Schema {
            source: SchemaSource::EventInfo,
            provider: provider.into(),
            guid: Guid([5; 16]),
            id: 7,
            version: 0,
            task: task.into(),
            opcode: opcode.into(),
            fields: Default::default(),
        }
    }

    #[test]
    fn task_opcode_or_name_give_the_meaning_of_an_event() {
        let rules = Rules::default();
        let acquire = Meaning::Resource(ResourceAction::Acquire, 0);
        let release = Meaning::Resource(ResourceAction::Release, 0);
        for (task, opcode, expected) in [
            ("AcquireResource", "", acquire),
            ("ACQUIRERESOURCE", "Info", acquire),
            ("Pool", "ReleaseResource", release),
            ("AcquireResourceEx", "", Meaning::Ignored),
            ("Acquire", "Resource", Meaning::Ignored),
            ("", "", Meaning::Ignored),
        ] {
            assert_eq!(rules.meaning(&schema("P", task, opcode)), expected, "{task}/{opcode}");
        }
    }

    #[test]
    fn a_mapping_precedes_the_default_rules() {
        let words =
            "P/Pool/Take acquire handle=Block; {05050505-0505-0505-0505-050505050505}/7 release";
        let rules = Rules::new(ResourceMapping::from_words(words).unwrap());
        let taken = rules.meaning(&schema("p", "pool", "take"));
        assert_eq!(taken, Meaning::Resource(ResourceAction::Acquire, 0));
        assert_eq!(rules.fields(0).handle, "Block");
        let by_id = rules.meaning(&schema("Q", "AcquireResource", ""));
        assert_eq!(by_id, Meaning::Resource(ResourceAction::Release, 1));
        let usual = Schema { id: 8, ..schema("Q", "AcquireResource", "") };
        assert_eq!(rules.meaning(&usual), Meaning::Resource(ResourceAction::Acquire, 2));
        assert_eq!(rules.fields(2).handle, "Handle");
    }

    #[test]
    fn events_of_another_family_wait_only_for_a_mapping_that_names_their_provider() {
        let (_, runtime) = PROVIDERS[0];
        let of = |words: &str| {
            let mappings = ResourceMapping::from_words(words).unwrap();
            Rules::new(mappings).of_family(runtime, 143)
        };
        assert_eq!(Rules::default().of_family(runtime, 143), OfFamily::Nothing);
        for (words, expected) in [
            ("*/142 acquire", OfFamily::Nothing),
            ("*/143 acquire", OfFamily::Described),
            ("Contoso/Load acquire", OfFamily::Described),
            ("microsoft-windows-dotnetruntime/Load acquire", OfFamily::Anything),
            ("*/1 acquire; e13c0d23-ccbc-4e12-931b-d9cc2eee27e4/143 acquire", OfFamily::Anything),
            ("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4/144 acquire", OfFamily::Nothing),
        ] {
            assert_eq!(of(words), expected, "{words}");
        }
    }

    fn may_be(interest: &Interest, name: Option<&str>) -> bool {
        let item = |name: &str| {
            let schema = [&[0], name.as_bytes(), &[0]].concat();
            let size = (schema.len() as u16 + 2).to_le_bytes();
            encoded_item(11, &[&size[..], &schema].concat(), false)
        };
        let extended = name.map(item).unwrap_or_default();
        let id = EventId::Manifest { guid: Guid([1; 16]), id: 0 };
        interest.may_be(&Event { id, extended: &extended, ..Event::default() })
    }

    #[test]
    fn only_a_trace_logging_event_can_be_judged_at_once() {
        let usual = Interest::default();
        assert!(may_be(&usual, None));
        assert!(may_be(&usual, Some("ACQUIREresource")));
        assert!(!may_be(&usual, Some("AcquireResources")));
        assert!(!may_be(&usual, Some("PoolAlloc")));
        let mappings = ResourceMapping::from_words("Contoso/PoolAlloc acquire").unwrap();
        assert!(may_be(&Interest::new(mappings), Some("PoolAlloc")));
        assert!(!usual.may_be(&Event { id: EventId::Hook(0x1120), ..Event::default() }));
    }
}
