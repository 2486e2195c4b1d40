//! Mappings in words: `PROVIDER/EVENT acquire handle=FIELD size=FIELD allocator=FIELD`, with `;` between several.

use super::{MappingError, ResourceFields, ResourceMapping};

/// Most mappings of an extract: each is tried on each kind of event.
const MAX_MAPPINGS: usize = 1000;

impl ResourceMapping {
    /// Mappings in words.
    ///
    /// # Errors
    /// What is wrong with the first that is none.
    pub fn of_words(text: &str) -> Result<Vec<Self>, MappingError> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let mappings: Vec<Self> = parts.map(one).collect::<Result<_, _>>()?;
        checked(mappings)
    }
}

/// The mappings, if it is a usual number of them.
pub(super) fn checked(
    mappings: Vec<ResourceMapping>,
) -> Result<Vec<ResourceMapping>, MappingError> {
    match mappings.len() {
        0 => Err(MappingError::Empty),
        found if found > MAX_MAPPINGS => Err(MappingError::TooMany { found, most: MAX_MAPPINGS }),
        _ => Ok(mappings),
    }
}

fn one(text: &str) -> Result<ResourceMapping, MappingError> {
    let mut words = text.split_whitespace();
    let (event, action) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut handle, mut size, mut allocator) = (None, None, None);
    for word in words {
        let unknown =
            || MappingError::UnknownField { place: text.to_owned(), found: word.to_owned() };
        let (name, field) = word.split_once('=').ok_or_else(unknown)?;
        let (name, slot) = match name.to_ascii_lowercase().as_str() {
            "handle" => ("handle", &mut handle),
            "size" => ("size", &mut size),
            "allocator" => ("allocator", &mut allocator),
            _ => return Err(unknown()),
        };
        if field.is_empty() {
            return Err(unknown());
        }
        if slot.replace(field.to_owned()).is_some() {
            return Err(MappingError::Twice { place: text.to_owned(), found: name });
        }
    }
    let usual = ResourceFields::default();
    let fields = ResourceFields {
        handle: handle.unwrap_or(usual.handle),
        size: size.unwrap_or(usual.size),
        allocator: allocator.unwrap_or(usual.allocator),
    };
    ResourceMapping::new(event, action, text, fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::ResourceAction;

    #[test]
    fn several_mappings_stand_in_one_text() {
        let text = "Contoso.Pool/Alloc/Start acquire handle=Block size=Bytes; \
                    */7 RELEASE allocator=Pool;";
        let found = ResourceMapping::of_words(text).unwrap();
        let [alloc, free] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (alloc.provider.as_str(), alloc.event.as_str()),
            ("Contoso.Pool", "Alloc/Start")
        );
        assert_eq!(alloc.action, ResourceAction::Acquire);
        let ResourceFields { handle, size, allocator } = &alloc.fields;
        assert_eq!([handle, size, allocator], ["Block", "Bytes", "Allocator"]);
        assert_eq!(
            (free.action, free.fields.allocator.as_str()),
            (ResourceAction::Release, "Pool")
        );
        assert!(alloc.is_of_provider("contoso.pool", "") && !alloc.is_of_provider("Contoso", ""));
        assert!(free.is_of_provider("any", "") && free.is_of_event(b"Free", 7));
        assert!(alloc.is_of_event(b"alloc/START", 3) && !alloc.is_of_event(b"alloc", 3));
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, said) in [
            ("", "no mapping is given"),
            ("Alloc acquire", "\"Alloc\" is not a PROVIDER/EVENT; write the name or GUID"),
            ("/Alloc acquire", "is not a PROVIDER/EVENT"),
            ("P/Alloc", "nothing is neither acquire nor release"),
            ("P/Alloc open", "\"open\" is neither acquire nor release"),
            ("P/Alloc acquire Block", "\"Block\" is none of handle=FIELD"),
            ("P/Alloc acquire handle=", "is none of handle=FIELD"),
            ("P/Alloc acquire bytes=Size", "\"bytes=Size\" is none of"),
            ("P/Alloc acquire size=A size=B", "size= is given twice"),
            ("P/\u{202e} x", "P/\\u{202e} x: \"x\""),
        ] {
            let error = ResourceMapping::of_words(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let many = "*/1 acquire;".repeat(1001);
        assert!(matches!(ResourceMapping::of_words(&many), Err(MappingError::TooMany { .. })));
    }
}
