//! The handle part: objects with their events, one object after the other.

use std::collections::BTreeMap;

use handlescope_model::TypeId;
use serde::de::MapAccess;

use super::super::record::{Elements, Fill, Member, Record};
use super::super::records::ObjectRecord;

/// Reads the handle part and hands each object out when it is complete.
pub(super) struct HandlePart<F> {
    /// Type names by id.
    pub(super) types: BTreeMap<TypeId, String>,
    objects: Elements<EachObject<F>>,
}

struct EachObject<F>(F);

impl<F: FnMut(ObjectRecord)> HandlePart<F> {
    pub(super) fn new(each: F) -> Self {
        Self { types: BTreeMap::new(), objects: Elements(EachObject(each)) }
    }
}

impl<F: FnMut(ObjectRecord)> Record for HandlePart<F> {
    const MEMBERS: &'static [&'static str] = &["ObjectTypeMap", "ObjectReferences"];

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "ObjectTypeMap" => map.next_value_seed(Fill(&mut self.types)),
            _ => map.next_value_seed(Fill(&mut self.objects)),
        }
    }
}

impl<F: FnMut(ObjectRecord)> Member for EachObject<F> {
    const EXPECTED: &'static str = ObjectRecord::EXPECTED;

    fn null(&mut self) {
        (self.0)(ObjectRecord::default());
    }

    fn object<'de, A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let mut object = ObjectRecord::default();
        object.object(map)?;
        (self.0)(object);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use handlescope_model::EventKind;
    use serde::de::DeserializeSeed;

    use super::*;

    fn read(text: &str) -> (BTreeMap<TypeId, String>, Vec<ObjectRecord>) {
        let mut objects = Vec::new();
        let mut part = HandlePart::new(|object| objects.push(object));
        Fill(&mut part)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        (part.types, objects)
    }

    #[test]
    fn every_list_gives_events_of_its_kind() {
        let (_, mut objects) = read(
            r#"{"ObjectReferences":[{"ObjectPtr":-1,"ObjectType":16,"Name":"x",
              "CreateEvent":{"RefCountChange":1},"DestroyEvent":null,
              "HandleCreateEvents":[{"HandleValue":18446744073709551615,"TimeNs":3,"StackIdx":1,"ProcessIdx":2,"ThreadId":7}],
              "HandleDuplicateEvents":null,"HandleCloseEvents":[{}],
              "RefChanges":[{"RefCountChange":-2},{"RefCountChange":3}],
              "FileMapEvents":[{"ViewBase":4096}],"FileUnmapEvents":[],
              "Existing":[{"Handle":4,"Process":1},{}]}]}"#,
        );
        let object = &mut objects[0];
        let events = object.take_events();
        let kinds: Vec<EventKind> = events.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                EventKind::ObjectCreate,
                EventKind::HandleCreate,
                EventKind::HandleClose,
                EventKind::Dereference,
                EventKind::Reference,
                EventKind::Map
            ]
        );
        assert_eq!((object.pointer, object.type_id), (Some(-1), Some(16)));
        let (_, create) = &events[1];
        assert_eq!((create.handle, create.tid, create.process), (Some(u64::MAX), Some(7), Some(2)));
        let existing: Vec<_> =
            object.existing.iter().flatten().map(|h| (h.handle, h.process)).collect();
        assert_eq!(existing, [(Some(4), Some(1)), (None, None)]);
    }

    #[test]
    fn types_may_come_last_or_not_at_all() {
        let (types, objects) = read(
            r#"{"ObjectReferences":[null,{}],"objecttypemap":{"16":"Event","x":"y","17":null}}"#,
        );
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            [(TypeId(16), "Event".into()), (TypeId(17), String::new())]
        );
        assert_eq!(objects.len(), 2);
        assert!(read("{}").0.is_empty());
    }
}
