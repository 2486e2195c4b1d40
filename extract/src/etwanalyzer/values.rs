//! The values of members: numbers, texts, rows of tables.

use std::collections::BTreeMap;

use handlescope_model::TypeId;
use handlescope_model::tables::{Frames, Methods, StackEvents, Stacks, Symbols, TraceInfo};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};

use super::held;
use super::record::{Fill, Member, Nullable};

/// The rows of a table of ours.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rows<T>(pub(super) Vec<T>);

impl<T: DeserializeOwned> Member for Rows<T> {
    const EXPECTED: &'static str = "a list of rows";

    fn list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            held::take::<T, A::Error>()?;
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
                    // The columns of a row, each up to eight bytes for the most part.
                    held::take::<[u64; 8], A::Error>()?;
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

/// Texts by the ids of types; what is not an id is passed over.
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

// An integer that does not fit is none.
optional! {
    String, "a string", text(value: &str) => Some(value.to_owned());
    bool, "true or false", flag(value: bool) => Some(value);
    i64, "a 64-bit integer", integer(value: i64) => Some(value);
    u64, "a 64-bit integer", integer(value: i64) => Some(value as u64);
    u32, "a 64-bit integer", integer(value: i64) => u32::try_from(value).ok();
    usize, "a 64-bit integer", integer(value: i64) => usize::try_from(value).ok();
}

/// A member that is written, but passed over in reading.
#[derive(Debug, Default, Serialize)]
pub(super) struct Unread<T>(pub(super) T);

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
