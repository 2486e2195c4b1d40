//! Amounts at two points of a trace and between them.

use crate::amounts::Amount;
use crate::growth::Lifetime;

/// Maximum number of objects named as examples of a group.
const SAMPLES: usize = 3;

/// Two points in time, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointSpan {
    /// The first point; older acquisitions do not count as opened. `None` for the start.
    pub after_ns: Option<i64>,
    /// The second point; `None` for the end.
    pub until_ns: Option<i64>,
}

/// Amounts of a group at two points of a trace, and between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PointAmounts {
    /// Acquired after the first point and not after the second.
    pub opened: Amount,
    /// The part of these still there at the second point.
    pub kept: Amount,
    /// Acquired in the trace and there at the first point.
    pub at_first: Amount,
    /// Acquired in the trace and there at the second point.
    pub at_second: Amount,
    /// Ids of up to three kept objects; allocations have none.
    pub sample_ids: Vec<u64>,
}

impl PointAmounts {
    /// Counts something with this lifetime and returns whether it is kept. `never_ends` says that nothing ended it;
    /// otherwise a missing end time is just unknown.
    pub fn add(
        &mut self,
        PointSpan { after_ns, until_ns }: PointSpan,
        Lifetime { opened_ns, closed_ns }: Lifetime,
        never_ends: bool,
        amount: Amount,
    ) -> bool {
        // An end at an unknown time is still an end.
        let outlives = |point: Option<i64>| {
            never_ends || point.zip(closed_ns).is_some_and(|(point, closed_ns)| closed_ns > point)
        };
        let is_after = after_ns.is_none_or(|after| opened_ns > after);
        let is_until = until_ns.is_none_or(|until| opened_ns <= until);
        let is_left = is_until && outlives(until_ns);
        for (is_in_sum, sum) in [
            (is_after && is_until, &mut self.opened),
            (is_after && is_left, &mut self.kept),
            (!is_after && outlives(after_ns), &mut self.at_first),
            (is_left, &mut self.at_second),
        ] {
            if is_in_sum {
                sum.add(amount);
            }
        }
        is_after && is_left
    }

    /// Adds the parts of one allocation, which count once.
    pub fn add_once(&mut self, parts: &Self) {
        self.merge(parts, |amount| Amount { count: amount.count.min(1), ..amount });
    }

    /// Adds the amounts of another group.
    pub fn add_all(&mut self, group: &Self) {
        self.merge(group, |amount| amount);
    }

    fn merge(&mut self, group: &Self, adjusted: impl Fn(Amount) -> Amount) {
        self.opened.add(adjusted(group.opened));
        self.kept.add(adjusted(group.kept));
        self.at_first.add(adjusted(group.at_first));
        self.at_second.add(adjusted(group.at_second));
    }

    /// Names a kept object as an example.
    pub fn sample(&mut self, id: u64) {
        if self.sample_ids.len() < SAMPLES && !self.sample_ids.contains(&id) {
            self.sample_ids.push(id);
        }
    }
}
