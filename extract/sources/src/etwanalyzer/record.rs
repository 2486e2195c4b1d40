//! JSON objects with members declared once, for reading and writing, and the values of members: numbers, texts, table
//! rows.
//!
//! Reading follows the rules of ETWAnalyzer's reader: names match in any case, unknown members are skipped, and missing
//! ones and nulls keep their default. There is no tree in between.
//!
//! The memory for records is counted per thread. A record is larger than the shortest JSON for it, and a packed file
//! may hold millions of `{}`. The parser has no place for the count, and one file is read by one thread.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use handlescope_model::TypeId;
use handlescope_model::tables::{Frames, Methods, StackEvents, Stacks, Symbols, TraceInfo};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, Serialize};

/// Target of a member's value; accepts certain kinds of JSON.
pub trait Member {
    const EXPECTED: &'static str;
    /// Describes a list in messages.
    const LIST: &'static str = "a list of objects";

    fn read<'de, D: Deserializer<'de>>(&mut self, value: D) -> Result<(), D::Error>
    where
        Self: Sized,
    {
        value.deserialize_any(Fill(self))
    }

    fn null(&mut self) {}

    /// Returns whether a truth value is accepted; likewise the next two methods.
    fn flag(&mut self, _: bool) -> bool {
        false
    }

    /// Integers have up to 64 bits; signed and unsigned ones arrive as the same bits.
    fn integer(&mut self, _: i64) -> bool {
        false
    }

    fn text(&mut self, _: &str) -> bool {
        false
    }

    fn list<'de, A: SeqAccess<'de>>(&mut self, _: A) -> Result<(), A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::EXPECTED))
    }

    fn object<'de, A: MapAccess<'de>>(&mut self, _: A) -> Result<(), A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::EXPECTED))
    }

    /// Whether it is left out when writing.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Reads a value into an existing one.
pub struct Fill<'a, T>(pub &'a mut T);

impl<'de, T: Member> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.read(deserializer)
    }
}

impl<'de, T: Member> Visitor<'de> for Fill<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.null();
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        taken::<T, E>(self.0.flag(value), Unexpected::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        taken::<T, E>(self.0.integer(value), Unexpected::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        taken::<T, E>(self.0.integer(value as i64), Unexpected::Unsigned(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        taken::<T, E>(self.0.text(value), Unexpected::Str(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.object(map)
    }
}

fn taken<T: Member, E: Error>(is_taken: bool, value: Unexpected<'_>) -> Result<(), E> {
    if is_taken { Ok(()) } else { Err(E::invalid_type(value, &T::EXPECTED)) }
}

/// An object with some members that are read.
pub trait Record {
    /// Names of the members that are read.
    const MEMBERS: &'static [&'static str];

    /// Reads the value of one of them.
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error>;
}

/// Declares the members of a record and the fields they are read into.
macro_rules! members {
    ($name:ident { $($member:literal => $field:ident,)+ }) => {
        impl $crate::etwanalyzer::record::Record for $name {
            const MEMBERS: &'static [&'static str] = &[$($member),+];

            fn member<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                name: &'static str,
                map: &mut A,
            ) -> Result<(), A::Error> {
                match name {
                    $($member => {
                        map.next_value_seed($crate::etwanalyzer::record::Fill(&mut self.$field))
                    })+
                    _ => Ok(()),
                }
            }
        }

        impl $crate::etwanalyzer::record::Nullable for $name {}
    };
}

/// Declares records: the names, fields and types of their members, in the order they are written.
macro_rules! records {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $member:literal => $field:ident: $type:ty,)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Default, serde::Serialize)]
        pub struct $name {
            $(
                $(#[$doc])*
                #[serde(
                    rename = $member,
                    skip_serializing_if = "crate::etwanalyzer::record::Member::is_absent"
                )]
                pub $field: $type,
            )+
        }

        $crate::etwanalyzer::record::members! { $name { $($member => $field,)+ } }
    )+};
}

pub(crate) use {members, records};

impl<T: Record> Member for T {
    const EXPECTED: &'static str = "an object";

    fn object<'de, A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name(T::MEMBERS))? {
            match name {
                Some(name) => self.member(name, &mut map)?,
                None => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

/// A member's name as spelled in the list, or nothing if the member is not read.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let mut names = self.0.iter().copied();
        let exact = names.clone().find(|name| *name == text);
        Ok(exact.or_else(|| names.find(|name| name.eq_ignore_ascii_case(text))))
    }
}

/// A value that may be left out as a whole.
pub trait Nullable: Member + Default {
    /// Returns the value for null, if null is allowed.
    fn of_null() -> Option<Self> {
        None
    }
}

/// Null is an empty list.
impl<T: Member + Default> Nullable for Vec<T> {
    fn of_null() -> Option<Self> {
        Some(Self::new())
    }
}

impl<T: Nullable> Member for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn null(&mut self) {
        *self = T::of_null();
    }

    fn list<'de, A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        self.get_or_insert_default().list(list)
    }

    fn object<'de, A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.insert(T::default()).object(map)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// A null in a list is an element with default values, so that the other elements keep their numbers.
impl<T: Member + Default> Member for Vec<T> {
    const EXPECTED: &'static str = T::LIST;

    fn list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let mut element = T::default();
        while list.next_element_seed(Fill(&mut element))?.is_some() {
            take::<T, A::Error>()?;
            self.push(std::mem::take(&mut element));
        }
        Ok(())
    }
}

/// A list whose elements are read one after the other into the same value.
pub struct Elements<T>(pub T);

impl<T: Member> Member for Elements<T> {
    const EXPECTED: &'static str = T::LIST;

    fn list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Fill(&mut self.0))?.is_some() {}
        Ok(())
    }
}

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Sets the memory budget for records, in bytes.
pub fn allow(bytes: u64) {
    LEFT.set(bytes);
}

/// Takes the memory of one more list element from the budget.
pub fn take<T, E: Error>() -> Result<(), E> {
    let left = LEFT.get().checked_sub(size_of::<T>() as u64);
    LEFT.set(left.ok_or_else(|| E::custom(TOO_MUCH))?);
    Ok(())
}

/// Message for an exhausted memory budget.
pub const TOO_MUCH: &str = "its records exceed the memory limit for a file of this size";

/// Rows of one of our own tables.
#[derive(Debug, Default, Serialize)]
pub struct Rows<T>(pub Vec<T>);

impl<T: DeserializeOwned> Member for Rows<T> {
    const EXPECTED: &'static str = "a list of rows";

    fn list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            take::<T, A::Error>()?;
            self.0.push(row);
        }
        Ok(())
    }
}

impl<T: DeserializeOwned + Default> Nullable for Rows<T> {}

macro_rules! tables {
    ($($table:ident)+) => {$(
        impl Member for $table {
            const EXPECTED: &'static str = "a list of rows";

            fn list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
                while let Some(row) = list.next_element()? {
                    // The columns of a row; most have at most eight bytes.
                    take::<[u64; 8], A::Error>()?;
                    self.push(row);
                }
                Ok(())
            }
        }
    )+};
}

tables! { Frames Methods StackEvents Stacks Symbols }

impl Member for Option<TraceInfo> {
    const EXPECTED: &'static str = "a row";

    fn read<'de, D: Deserializer<'de>>(&mut self, value: D) -> Result<(), D::Error> {
        *self = Option::deserialize(value)?;
        Ok(())
    }
}

/// Texts by type id; invalid ids are skipped.
impl Member for BTreeMap<TypeId, String> {
    const EXPECTED: &'static str = "an object with texts";

    fn object<'de, A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(id) = map.next_key::<String>()? {
            let mut name = String::new();
            map.next_value_seed(Fill(&mut name))?;
            if let Ok(id) = id.parse() {
                self.insert(TypeId(id), name);
            }
        }
        Ok(())
    }
}

impl Member for String {
    const EXPECTED: &'static str = "a string";
    const LIST: &'static str = "a list of strings";

    fn text(&mut self, value: &str) -> bool {
        value.clone_into(self);
        true
    }
}

macro_rules! optional {
    ($($type:ty, $expected:literal, $take:ident($value:ident: $from:ty) => $into:expr;)+) => {$(
        impl Member for Option<$type> {
            const EXPECTED: &'static str = $expected;

            fn null(&mut self) {
                *self = None;
            }

            fn $take(&mut self, $value: $from) -> bool {
                *self = $into;
                true
            }

            fn is_absent(&self) -> bool {
                self.is_none()
            }
        }
    )+};
}

// An integer that does not fit becomes `None`.
optional! {
    String, "a string", text(value: &str) => Some(value.to_owned());
    bool, "true or false", flag(value: bool) => Some(value);
    i64, "a 64-bit integer", integer(value: i64) => Some(value);
    u64, "a 64-bit integer", integer(value: i64) => Some(value as u64);
    u32, "a 64-bit integer", integer(value: i64) => u32::try_from(value).ok();
    usize, "a 64-bit integer", integer(value: i64) => usize::try_from(value).ok();
}

/// A member that is written but not read.
#[derive(Debug, Default, Serialize)]
pub struct Unread<T>(pub T);

impl<T: Serialize> Member for Unread<T> {
    const EXPECTED: &'static str = "anything";

    fn read<'de, D: Deserializer<'de>>(&mut self, value: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(value).map(drop)
    }
}

impl<T: Serialize> Member for Option<Unread<T>> {
    const EXPECTED: &'static str = "anything";

    fn read<'de, D: Deserializer<'de>>(&mut self, value: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(value).map(drop)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    records! {
        #[derive(PartialEq)]
        Sample {
            "Number" => number: Option<i64>,
            "Text" => text: Option<String>,
        }
    }

    fn samples(text: &str) -> Result<Vec<Sample>, serde_json::Error> {
        let mut samples = Vec::new();
        Fill(&mut samples)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))?;
        Ok(samples)
    }

    #[test]
    fn names_in_any_case_are_known_and_unknown_members_are_skipped() {
        let text = r#"[{"number":1,"x":[{"Number":[[{}]]}],"TEXT":"a"}]"#;
        let expected = Sample { number: Some(1), text: Some("a".into()) };
        assert_eq!(samples(text).unwrap(), [expected]);
    }

    #[test]
    fn nulls_and_missing_members_keep_the_default() {
        let rows = samples(r#"[{"Number":null,"Text":null},{},null]"#).unwrap();
        assert_eq!(rows, [Sample::default(), Sample::default(), Sample::default()]);
        assert_eq!(samples("null").unwrap(), []);
    }

    #[test]
    fn all_64_bits_survive_with_and_without_sign() {
        let text = r#"[{"Number":-67604145713824},{"Number":18446744073709551615}]"#;
        let numbers: Vec<_> = samples(text).unwrap().into_iter().map(|s| s.number).collect();
        assert_eq!(numbers, [Some(-67604145713824), Some(-1)]);
    }

    #[test]
    fn a_value_of_a_different_type_is_an_error() {
        for text in ["{}", "[1]", r#"[{"Number":"x"}]"#, r#"[{"Number":1.5}]"#, "[{]", "[{}"] {
            assert!(samples(text).is_err(), "{text}");
        }
    }
}
