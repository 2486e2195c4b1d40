//! The maximum at any one time.

/// Time of a change, in nanoseconds since session start, and the amount of the change.
pub type Change = (i64, i64);

/// The most that there is at any time, after all changes of that time; 0 before the first of them.
pub fn most_at_once(mut changes: Vec<Change>) -> u64 {
    changes.sort_unstable_by_key(|(time_ns, _)| *time_ns);
    most_in_order(changes)
}

/// Like [`most_at_once`], for changes in the order of their times.
pub fn most_in_order(changes: impl IntoIterator<Item = Change>) -> u64 {
    let (mut previous_ns, mut sum, mut most) = (i64::MIN, 0_i64, 0);
    for (time_ns, change) in changes {
        if time_ns != previous_ns {
            most = sum.max(most);
        }
        (previous_ns, sum) = (time_ns, sum.saturating_add(change));
    }
    u64::try_from(sum.max(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_does_not_depend_on_the_order_of_changes() {
        assert_eq!(most_at_once(vec![(5, 1), (1, 1), (3, -1), (2, 1), (9, -1)]), 2);
        assert_eq!(most_at_once(vec![(1, 4096), (2, 512), (3, -4096)]), 4608);
        assert_eq!(most_at_once(Vec::new()), 0);
    }

    #[test]
    fn changes_of_one_time_are_one() {
        assert_eq!(most_at_once(vec![(1, 10), (2, 20), (2, -10)]), 20, "a reallocation");
        assert_eq!(most_at_once(vec![(7, 1), (7, -1)]), 0);
    }

    #[test]
    fn numbers_of_any_size_do_no_harm() {
        assert_eq!(most_at_once(vec![(1, i64::MAX), (2, i64::MAX)]), i64::MAX as u64);
        assert_eq!(most_at_once(vec![(i64::MIN, i64::MIN), (i64::MAX, -1)]), 0);
    }
}
