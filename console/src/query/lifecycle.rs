//! Creation, end and lifetime of objects, and who takes over when a filter removed the creation.

use std::ops::Range;

use handlescope_model::EventKind;

use super::selection::EventMask;

/// The lifetime of an object whose creation or end is unknown, as filters see it: 9999 s.
pub(crate) const UNKNOWN_LIFETIME_NS: i64 = 9_999_000_000_000;

/// Nanoseconds between creation and end; `None` when one of them is unknown.
pub(crate) fn lifetime_ns(create: Option<usize>, end: Option<usize>, times: &[i64]) -> Option<i64> {
    Some(times.get(end?)?.saturating_sub(*times.get(create?)?))
}

/// The first creation among the events that are left: object create, else the first map or handle
/// create, else the first duplicate.
pub(crate) fn first_create(kinds: &[u32], events: Range<usize>, left: &EventMask) -> Option<usize> {
    let mut best: Option<(u32, usize)> = None;
    for event in events.filter(|&event| left.contains(event)) {
        let Some(rank) = kinds.get(event).and_then(|&kind| create_rank(kind)) else { continue };
        if best.is_none_or(|(known, _)| rank < known) {
            best = Some((rank, event));
        }
    }
    best.map(|(_, event)| event)
}

/// How much an event says about the creation of its object, 0 being most; `None` for no creation.
pub(crate) fn create_rank(kind: u32) -> Option<u32> {
    match EventKind::from_code(kind)? {
        EventKind::ObjectCreate => Some(0),
        EventKind::HandleCreate | EventKind::Map => Some(1),
        EventKind::HandleDuplicate => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUPLICATE: u32 = EventKind::HandleDuplicate as u32;
    const CREATE: u32 = EventKind::HandleCreate as u32;
    const OBJECT: u32 = EventKind::ObjectCreate as u32;
    const CLOSE: u32 = EventKind::HandleClose as u32;

    #[test]
    fn an_object_create_wins_over_earlier_handles_and_a_handle_create_over_earlier_duplicates() {
        let all = EventMask::All;
        assert_eq!(first_create(&[DUPLICATE, CREATE, OBJECT], 0..3, &all), Some(2));
        assert_eq!(first_create(&[DUPLICATE, CREATE, CREATE], 0..3, &all), Some(1));
        assert_eq!(first_create(&[CLOSE, DUPLICATE, DUPLICATE], 0..3, &all), Some(1));
        assert_eq!(first_create(&[CLOSE], 0..1, &all), None);
    }

    #[test]
    fn only_events_that_are_left_can_take_over() {
        let left = EventMask::Some(vec![false, false, true]);
        assert_eq!(first_create(&[OBJECT, CREATE, DUPLICATE], 0..3, &left), Some(2));
    }

    #[test]
    fn a_lifetime_needs_creation_and_end() {
        let times = [5, 9];
        assert_eq!(lifetime_ns(Some(0), Some(1), &times), Some(4));
        assert_eq!(lifetime_ns(None, Some(1), &times), None);
        assert_eq!(lifetime_ns(Some(0), None, &times), None);
    }
}
