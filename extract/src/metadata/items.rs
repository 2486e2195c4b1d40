//! Extended items between header and payload of a manifest event.

use crate::payload::Payload;

/// EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL and _PROV_TRAITS.
pub(super) const SCHEMA: u16 = 11;
pub(super) const TRAITS: u16 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedItem<'a> {
    /// EVENT_HEADER_EXT_TYPE_… of `evntcons.h`.
    pub kind: u16,
    pub data: &'a [u8],
}

/// The items of [`Event::extended`](crate::etl::Event); ends at one that does not fit.
pub fn extended_items(mut bytes: &[u8]) -> impl Iterator<Item = ExtendedItem<'_>> {
    std::iter::from_fn(move || {
        let mut p = Payload::new(bytes, 8);
        let (size, kind, _link, length) = (p.u16()?, p.u16()?, p.u16()?, p.u16()?);
        let data = p.bytes(usize::from(length))?;
        bytes = bytes.get(usize::from(size).max(8)..).unwrap_or_default();
        Some(ExtendedItem { kind, data })
    })
}

/// The first item of a kind.
pub(super) fn item(extended: &[u8], kind: u16) -> Option<&[u8]> {
    extended_items(extended).find(|item| item.kind == kind).map(|item| item.data)
}

/// An item as it stands in an event; `more` when another one follows.
#[cfg(test)]
pub(crate) fn encoded_item(kind: u16, data: &[u8], more: bool) -> Vec<u8> {
    let size = (8 + data.len()).next_multiple_of(8);
    let head = [size as u16, kind, u16::from(more), data.len() as u16];
    let mut item: Vec<u8> = head.into_iter().flat_map(u16::to_le_bytes).collect();
    item.extend(data);
    item.resize(size, 0);
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_their_kind_and_lying_ones_end_them() {
        let mut bytes = vec![24, 0, 6, 0, 1, 0, 16, 0];
        bytes.extend([0; 8]);
        bytes.extend(7_u64.to_le_bytes());
        bytes.extend([16, 0, 12, 0, 0, 0, 3, 0, 1, 2, 3, 0, 0, 0, 0, 0]);
        assert_eq!(item(&bytes, TRAITS), Some(&[1, 2, 3][..]));
        assert_eq!(item(&bytes, 6).and_then(|data| data.get(8..)), Some(&7_u64.to_le_bytes()[..]));
        bytes[30] = 200;
        assert_eq!(extended_items(&bytes).count(), 1);
        // A size of 0 does not repeat an item for ever.
        assert_eq!(extended_items(&[0; 64]).count(), 8);
    }
}
