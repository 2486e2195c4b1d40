//! JSON member by member into what it is for, without a tree in between.
//!
//! The rules are those of ETWAnalyzer's reader: names in any case, unknown members are skipped,
//! missing ones and nulls keep their default.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeSeed};

/// An object some of whose members are read.
pub(super) trait Record<'de> {
    /// Names of the members that are read.
    const MEMBERS: &'static [&'static str];

    /// Takes the value of one of them.
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error>;
}

/// Fills a record; says whether there was an object, not null.
pub(super) struct Fill<'a, T>(pub(super) &'a mut T);

impl<'de, T: Record<'de>> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Record<'de>> Visitor<'de> for Fill<'_, T> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(name) = map.next_key_seed(Name(T::MEMBERS))? {
            match name {
                Some(name) => self.0.member(name, &mut map)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(true)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
}

/// The name of a member as it is written in the list, or nothing for one that is not read.
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

/// Hands the records of a list out one by one; null is a list without any, and a null in the list
/// is a record with nothing but defaults, so that the others keep their numbers.
pub(super) struct Each<F, T> {
    each: F,
    record: PhantomData<T>,
}

impl<T, F: FnMut(T)> Each<F, T> {
    pub(super) fn new(each: F) -> Self {
        Self { each, record: PhantomData }
    }
}

impl<'de, T: Record<'de> + Default, F: FnMut(T)> DeserializeSeed<'de> for Each<F, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Record<'de> + Default, F: FnMut(T)> Visitor<'de> for Each<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut record = T::default();
        while list.next_element_seed(Fill(&mut record))?.is_some() {
            (self.each)(std::mem::take(&mut record));
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Hands the rows of a table out one by one; null is a table without any.
pub(super) struct EachRow<F, T> {
    each: F,
    row: PhantomData<T>,
}

impl<T, F: FnMut(T)> EachRow<F, T> {
    pub(super) fn new(each: F) -> Self {
        Self { each, row: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for EachRow<F, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachRow<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            (self.each)(row);
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Hands the texts of a list out one by one, in place; null is the empty text.
pub(super) struct EachText<F>(pub(super) F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for EachText<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for EachText<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(OneText(&mut self.0))?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Hands one text out.
pub(super) struct OneText<'a, F>(pub(super) &'a mut F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for OneText<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<F: FnMut(&str)> Visitor<'_> for OneText<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        (self.0)("");
        Ok(())
    }
}

/// Hands the members of an object out whose values are texts, as in a dictionary.
pub(super) struct EachPair<F>(pub(super) F);

impl<'de, F: FnMut(String, String)> DeserializeSeed<'de> for EachPair<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(String, String)> Visitor<'de> for EachPair<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with texts")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, Text(value))) = map.next_entry::<String, Text>()? {
            (self.0)(key, value.unwrap_or_default());
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// An integer of up to 64 bits, signed or not; the same 64 bits either way. Null is none.
pub(super) struct Int(pub(super) Option<i64>);

/// A text; null is none.
pub(super) struct Text(pub(super) Option<String>);

/// A truth value; null is none.
pub(super) struct Flag(pub(super) Option<bool>);

macro_rules! value {
    ($value:ident, $what:literal, { $($visit:item)+ }) => {
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Of;
                impl Visitor<'_> for Of {
                    type Value = $value;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_unit<E: Error>(self) -> Result<$value, E> {
                        Ok($value(None))
                    }

                    $($visit)+
                }
                deserializer.deserialize_any(Of)
            }
        }
    };
}

value!(Int, "a 64-bit integer", {
    fn visit_i64<E: Error>(self, value: i64) -> Result<Int, E> {
        Ok(Int(Some(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Int, E> {
        Ok(Int(Some(value as i64)))
    }
});

value!(Text, "a string", {
    fn visit_str<E: Error>(self, value: &str) -> Result<Text, E> {
        Ok(Text(Some(value.to_owned())))
    }
});

value!(Flag, "true or false", {
    fn visit_bool<E: Error>(self, value: bool) -> Result<Flag, E> {
        Ok(Flag(Some(value)))
    }
});

impl Int {
    /// As an unsigned number of 32 bits; one that does not fit is none.
    pub(super) fn u32(self) -> Option<u32> {
        self.0.and_then(|value| u32::try_from(value).ok())
    }

    /// The 64 bits without sign.
    pub(super) fn u64(self) -> Option<u64> {
        self.0.map(|value| value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug, PartialEq)]
    struct Sample {
        number: Option<i64>,
        text: Option<String>,
    }

    impl<'de> Record<'de> for Sample {
        const MEMBERS: &'static [&'static str] = &["Number", "Text"];

        fn member<A: MapAccess<'de>>(
            &mut self,
            name: &'static str,
            map: &mut A,
        ) -> Result<(), A::Error> {
            match name {
                "Number" => self.number = map.next_value::<Int>()?.0,
                _ => self.text = map.next_value::<Text>()?.0,
            }
            Ok(())
        }
    }

    fn samples(text: &str) -> Result<Vec<Sample>, serde_json::Error> {
        let mut found = Vec::new();
        Each::new(|sample| found.push(sample))
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))?;
        Ok(found)
    }

    #[test]
    fn names_in_any_case_are_known_and_unknown_members_are_skipped() {
        let text = r#"[{"number":1,"x":[{"Number":[[{}]]}],"TEXT":"a"}]"#;
        let expected = Sample { number: Some(1), text: Some("a".into()) };
        assert_eq!(samples(text).unwrap(), [expected]);
    }

    #[test]
    fn nulls_and_missing_members_keep_the_default() {
        let found = samples(r#"[{"Number":null,"Text":null},{},null]"#).unwrap();
        assert_eq!(found, [Sample::default(), Sample::default(), Sample::default()]);
        assert_eq!(samples("null").unwrap(), []);
    }

    #[test]
    fn all_64_bits_survive_with_and_without_sign() {
        let text = r#"[{"Number":-67604145713824},{"Number":18446744073709551615}]"#;
        let numbers: Vec<_> = samples(text).unwrap().into_iter().map(|s| s.number).collect();
        assert_eq!(numbers, [Some(-67604145713824), Some(-1)]);
    }

    #[test]
    fn what_is_of_another_kind_is_an_error() {
        for text in ["{}", "[1]", r#"[{"Number":"x"}]"#, r#"[{"Number":1.5}]"#, "[{]", "[{}"] {
            assert!(samples(text).is_err(), "{text}");
        }
    }
}
