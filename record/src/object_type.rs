//! The kernel's filter of handle events by object type.

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::error::{MAX_TYPES, OptionError};

/// Number of characters of a name that the filter compares.
const TAG_BYTES: usize = 4;

/// Types that leak, spelled like the kernel does. The filter compares bytes, so `event` would match nothing.
const KNOWN: [&str; 23] = [
    "ALPC Port",
    "Desktop",
    "Directory",
    "EtwConsumer",
    "EtwRegistration",
    "Event",
    "File",
    "IoCompletion",
    "IRTimer",
    "Job",
    "Key",
    "Mutant",
    "Partition",
    "Process",
    "Section",
    "Semaphore",
    "Session",
    "SymbolicLink",
    "Thread",
    "Timer",
    "Token",
    "TpWorkerFactory",
    "WaitCompletionPacket",
];

/// A type of kernel objects, identified by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectType {
    name: String,
    tag: [u8; TAG_BYTES],
}

impl ObjectType {
    fn new(name: &str) -> Result<ObjectType, OptionError> {
        let name = name.trim();
        if name.is_empty() {
            return Err(OptionError::EmptyType);
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ') {
            return Err(OptionError::TypeNotAscii { name: name.to_owned() });
        }
        let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name));
        let name = known.copied().unwrap_or(name);
        let mut tag = [b' '; TAG_BYTES];
        for (target, byte) in tag.iter_mut().zip(name.bytes()) {
            *target = byte;
        }
        Ok(ObjectType { name: name.to_owned(), tag })
    }

    /// Returns the name of the type; a known one is spelled like the kernel does.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value that the kernel compares: the first four characters of the name, padded with spaces
    /// (etwcontroller).
    pub fn filter(&self) -> u32 {
        u32::from_le_bytes(self.tag)
    }
}

impl Serialize for ObjectType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ObjectType", 3)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("tag", &String::from_utf8_lossy(&self.tag))?;
        fields.serialize_field("filter", &format_args!("{:#010x}", self.filter()))?;
        fields.end()
    }
}

/// `EventTraceObjectTypeFilterInformation` (ntwmi.h, `EVENT_TRACE_INFORMATION_CLASS`).
const TYPE_FILTER_CLASS: u32 = 17;

/// The object types whose handles are recorded; empty for all types. The kernel does not distinguish types that start
/// with the same four characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ObjectTypes(Vec<ObjectType>);

impl ObjectTypes {
    /// Parses a list such as `Event;File`.
    ///
    /// # Errors
    /// If a name is empty or not ASCII, or there are more than four types.
    pub fn parse(text: &str) -> Result<ObjectTypes, OptionError> {
        let mut types: Vec<ObjectType> = Vec::new();
        for name in text.split(';') {
            let new = ObjectType::new(name)?;
            if !types.iter().any(|known| known.tag == new.tag) {
                types.push(new);
            }
        }
        match types.len() {
            0..=MAX_TYPES => Ok(ObjectTypes(types)),
            count => Err(OptionError::TooManyTypes { count }),
        }
    }

    /// Whether handles of all types are recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the request that sets the filter of a session, for `NtSetSystemInformation` (ntwmi.h,
    /// `EVENT_TRACE_TAG_FILTER_INFORMATION`): the class, padded to 8 bytes, the session's handle, and a number for each
    /// type.
    pub fn request(&self, session: u64) -> Vec<u32> {
        let (low, high) = (session as u32, (session >> 32) as u32);
        let filters = self.iter().map(ObjectType::filter);
        [TYPE_FILTER_CLASS, 0, low, high].into_iter().chain(filters).collect()
    }

    /// Iterates over the types in the given order.
    pub fn iter(&self) -> impl Iterator<Item = &ObjectType> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<String> {
        let types = ObjectTypes::parse(text).expect(text);
        types.iter().map(|kind| String::from_utf8_lossy(&kind.tag).into_owned()).collect()
    }

    #[test]
    fn the_filter_has_the_first_four_characters_filled_up_with_spaces() {
        assert_eq!(tags("Event;File;Key;ALPC Port"), ["Even", "File", "Key ", "ALPC"]);
        let event = ObjectTypes::parse("Event").expect("a type");
        // Like pool tags: the first character is the lowest byte.
        assert_eq!(event.iter().map(ObjectType::filter).collect::<Vec<_>>(), [0x6E65_7645]);
    }

    #[test]
    fn the_request_has_class_session_and_filter() {
        let types = ObjectTypes::parse("Event;Key").expect("types");
        assert_eq!(
            types.request(0x1122_3344_5566_7788),
            [17, 0, 0x5566_7788, 0x1122_3344, 0x6E65_7645, 0x2079_654B]
        );
    }

    #[test]
    fn known_types_are_written_as_the_kernel_does_and_unknown_types_stay() {
        assert_eq!(tags("event; FILE ;iocompletion"), ["Even", "File", "IoCo"]);
        assert_eq!(tags("dxgkSharedResource"), ["dxgk"]);
    }

    #[test]
    fn types_that_are_equal_for_the_kernel_count_once() {
        let types = "IoCompletion;IoCompletionReserve;Event;event;File;Key";
        assert_eq!(tags(types), ["IoCo", "Even", "File", "Key "]);
    }

    #[test]
    fn a_text_that_is_no_list_of_four_types_is_refused() {
        for (text, expected) in [
            ("", OptionError::EmptyType),
            ("Event;;File", OptionError::EmptyType),
            ("Event; ", OptionError::EmptyType),
            ("Evént", OptionError::TypeNotAscii { name: "Evént".to_owned() }),
            ("!Event", OptionError::TypeNotAscii { name: "!Event".to_owned() }),
            ("Ev*", OptionError::TypeNotAscii { name: "Ev*".to_owned() }),
            ("Ev\tent", OptionError::TypeNotAscii { name: "Ev\tent".to_owned() }),
            ("Event;File;Key;Section;Thread", OptionError::TooManyTypes { count: 5 }),
        ] {
            assert_eq!(ObjectTypes::parse(text), Err(expected), "{text}");
        }
    }
}
