//! Divides work among threads.

use std::iter::once;
use std::thread;

use handlescope_model::guard::joined;

/// Processes each item on its own thread. The first item is processed on this thread, so a single item needs no other.
///
/// Returns the results in the order of the items, or the first error in that order.
pub fn side_by_side<T: Send, R: Send, E: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let work = &work;
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let first = work(first);
        let results = threads.into_iter().map(|thread| joined(thread.join()));
        once(first).chain(results).collect()
    })
}

/// Returns the length of the chunks that divide `items` evenly among `threads`; at least 1.
pub fn chunk_length(items: usize, threads: usize) -> usize {
    items.div_ceil(threads).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let doubled = side_by_side(0..5, |item| Ok::<_, ()>(item * 2));
        assert_eq!(doubled, Ok(vec![0, 2, 4, 6, 8]));
        assert_eq!(side_by_side(0..0, Ok::<_, ()>), Ok(vec![]));
    }

    #[test]
    fn the_error_is_that_of_the_first_item_that_has_one() {
        let odd = side_by_side(0..5, |item| if item % 2 == 0 { Ok(item) } else { Err(item) });
        assert_eq!(odd, Err(1));
    }

    #[test]
    fn one_item_is_worked_on_by_this_thread() {
        let this = thread::current().id();
        let thread = side_by_side([()], |()| Ok::<_, ()>(thread::current().id()));
        assert_eq!(thread, Ok(vec![this]));
    }
}
