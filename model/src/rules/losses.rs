//! Time spans in which events of a trace may be missing.

/// Time spans in which events may be missing, in one unit of time. The first and the last moment of a span are
/// included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LossTimes {
    /// First and last moment of each span, in order; spans do not touch.
    spans: Vec<(i64, i64)>,
    is_anywhere: bool,
}

impl LossTimes {
    /// Creates the spans from the first and last moment of each loss; `None` means a loss that may be anywhere.
    pub fn new(losses: impl IntoIterator<Item = Option<(i64, i64)>>) -> Self {
        let (mut unsorted, mut is_anywhere) = (Vec::new(), false);
        for loss in losses {
            match loss {
                Some((from, to)) => unsorted.push((from, to.max(from))),
                None => is_anywhere = true,
            }
        }
        unsorted.sort_unstable();
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for (from, to) in unsorted {
            match spans.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => spans.push((from, to)),
            }
        }
        Self { spans, is_anywhere }
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && !self.is_anywhere
    }

    /// Whether events are missing at an unknown time.
    pub fn is_anywhere(&self) -> bool {
        self.is_anywhere
    }

    /// Returns the first and last moment of each known span, in order; spans do not touch.
    pub fn spans(&self) -> &[(i64, i64)] {
        &self.spans
    }

    /// Whether an event between two times, inclusive, may be missing.
    pub fn is_between(&self, from: i64, to: i64) -> bool {
        self.within(from, to).is_some()
    }

    /// Returns the first and the last moment between two times, inclusive, at which an event may be missing.
    pub fn within(&self, from: i64, to: i64) -> Option<(i64, i64)> {
        if from > to {
            return None;
        }
        if self.is_anywhere {
            return Some((from, to));
        }
        let first = self.spans.partition_point(|(_, end)| *end < from);
        let last = self.spans.partition_point(|(start, _)| *start <= to).checked_sub(1)?;
        let ((start, _), (_, end)) = (self.spans.get(first)?, self.spans.get(last)?);
        (first <= last).then_some((from.max(*start), to.min(*end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_touch_are_joined() {
        let times = LossTimes::new([Some((5, 7)), Some((1, 2)), Some((7, 9)), Some((2, 3))]);
        assert_eq!(times.spans(), [(1, 3), (5, 9)]);
        assert!(!times.is_empty() && !times.is_anywhere());
        assert!(LossTimes::default().is_empty());
    }

    #[test]
    fn a_time_is_narrowed_to_the_losses_in_it() {
        let times = LossTimes::new([Some((10, 20)), Some((30, 40))]);
        for (from, to, expected) in [
            (0, 9, None),
            (0, 10, Some((10, 10))),
            (0, 50, Some((10, 40))),
            (15, 35, Some((15, 35))),
            (20, 25, Some((20, 20))),
            (21, 29, None),
            (12, 18, Some((12, 18))),
            (41, 99, None),
            (18, 12, None),
        ] {
            assert_eq!(times.within(from, to), expected, "{from} to {to}");
            assert_eq!(times.is_between(from, to), expected.is_some());
        }
    }

    #[test]
    fn a_loss_whose_time_is_not_known_narrows_nothing() {
        let times = LossTimes::new([Some((10, 20)), None]);
        assert_eq!(times.within(50, 60), Some((50, 60)));
        assert_eq!(times.within(60, 50), None);
        assert!(times.is_anywhere());
    }
}
