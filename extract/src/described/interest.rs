//! Which events the thread that reads hands on.

use super::rules::is_usual_name;
use crate::etl::{Event, EventId};
use crate::mapping::ResourceMapping;
use crate::metadata::{event_name, schema_item};

/// Chooses the events that may acquire or release something, before their descriptions are known.
#[derive(Debug, Clone, Default)]
pub struct Interest {
    mappings: Vec<ResourceMapping>,
}

impl Interest {
    /// The choice with these mappings besides what is usual.
    pub fn new(mappings: Vec<ResourceMapping>) -> Self {
        Self { mappings }
    }

    /// Whether an event may be one of these: a TraceLogging event says so itself, any other event of a manifest only
    /// when its description is known, which comes in time order.
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
    use crate::etl::Guid;
    use crate::metadata::encoded_item;

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
        let mappings = ResourceMapping::of_words("Contoso/PoolAlloc acquire").unwrap();
        assert!(may_be(&Interest::new(mappings), Some("PoolAlloc")));
        assert!(!usual.may_be(&Event { id: EventId::Hook(0x1120), ..Event::default() }));
    }
}
